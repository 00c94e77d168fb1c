/* Comparisons for tests. See compare_bed.h. */
#include "tests/unit/sim/compare_bed.h"

#include "tests/support/test.h"

struct compare_result *compare_bed_run(struct compare_params p, const char *policies)
{
	struct sim_policy policy[SIM_MAX_POLICIES];
	struct compare_result *r = NULL;
	struct err err = { 0 };

	p.policy = policy;
	p.trace.seed = p.seed = 1;
	p.level = 0.95;
	if (sim_policies_parse(policies, policy, SIM_MAX_POLICIES, &p.n_policies, &err) ||
	    pool_new(0, &p.pool, &err) || compare_run(&p, &r, &err))
		fail_msg("%s", err.text);
	pool_free(p.pool);
	return r;
}
