/* Tenants: shares, quotas, changes of them. */
#include "common/mem.h"
#include "tests/unit/core/sched_bed.h"
#include "tests/unit/core/whole_order.h"

static void make_for(struct bed *b, uint32_t slots, const struct sched_tenant *tenant, size_t n)
{
	struct sched_params p;

	make(b, "postrider", slots);
	p = params(b, "postrider", slots);
	p.window_s = 1000;
	remake(b, &p);
	if (sched_set_tenants(b->s, 0, tenant, n, &b->err))
		fail_msg("%s", b->err.text);
}

static int submit_of(struct bed *b, int64_t now_s, uint64_t id, uint32_t tenant, uint32_t cpus, double slo_s)
{
	struct sched_request r = job(b, id, slo_s);

	r.batch = &b64;
	r.n_batches = 1;
	r.cpus = cpus;
	r.tenant = tenant;
	return sched_submit(b->s, now_s * S, &r, &b->d, &b->verdict, &b->err);
}

static struct sched_share share(struct bed *b, int64_t now_s, uint32_t tenant)
{
	struct sched_share e;

	assert_int_equal(sched_share(b->s, now_s * S, tenant, &e, NULL), 0);
	return e;
}

TEST(test_usage_fades_with_the_window)
{
	const struct sched_tenant two[] = { { .weight = 1 }, { .weight = 2 } };
	struct bed b;

	make_for(&b, 4, two, 2);
	assert_true(isnan(share(&b, 0, 0).mean_standing));
	submit_of(&b, 0, 1, 0, 2, NAN);
	next(&b, 0);
	near(share(&b, 0, 0).standing, 2000); /* two cpus for a window to come */
	near(share(&b, 500, 0).usage_cpu_s, 2000 * (1 - exp(-0.5)));
	assert_int_equal(share(&b, 500, 0).cpus, 2);
	sched_remove(b.s, 500 * S, 1, NULL);
	near(share(&b, 1500, 0).usage_cpu_s, 2000 * (1 - exp(-0.5)) * exp(-1));
	assert_int_equal(share(&b, 1500, 0).cpus, 0);
	submit_of(&b, 1500, 2, 1, 2, NAN);
	near(share(&b, 1500, 1).standing, 0);
	assert_int_equal(share(&b, 1500, 1).queued, 1);
	assert_int_equal(sched_share(b.s, 0, 2, &(struct sched_share){ 0 }, NULL), -ERR_NOTFOUND);
	drop(&b);
}

/* Both have all their work there at the beginning; the one with the double weight gets two thirds. */
TEST(test_shares_follow_the_weights)
{
	const struct sched_tenant two[] = { { .weight = 1 }, { .weight = 2 } };
	double used_s[2] = { 0 };
	uint64_t running[2];
	struct bed b;

	make_for(&b, 2, two, 2);
	for (uint64_t id = 1; id <= 200; id++)
		assert_int_equal(submit_of(&b, 0, id, id <= 100 ? 0 : 1, 1, NAN), 0);
	for (int k = 0; k < 2; k++)
		running[k] = next(&b, 0);
	assert_true(running[0] && running[1]);
	for (int i = 1; i <= 120; i++) {
		uint64_t ends = running[i % 2];

		used_s[ends > 100] += 100;
		assert_int_equal(sched_remove(b.s, 50 * i * S, ends, NULL), 0);
		running[i % 2] = next(&b, 50 * i);
		assert_true(running[i % 2]);
		assert_int_equal(next(&b, 50 * i), 0);
	}
	/* in jobs of a tenth of a window, and from nothing used at the beginning */
	assert_true(fabs(used_s[1] / (used_s[0] + used_s[1]) - 2.0 / 3.0) < 0.04);
	drop(&b);
}

TEST(test_a_newcomer_is_served_before_one_who_has_had_much)
{
	const struct sched_tenant two[] = { { .weight = 1 }, { .weight = 1 } };
	struct bed b;

	make_for(&b, 2, two, 2);
	for (uint64_t id = 1; id <= 3; id++)
		submit_of(&b, 0, id, 0, 2, NAN);
	assert_int_equal(next(&b, 0), 1);
	submit_of(&b, 10, 4, 1, 2, NAN);
	sched_remove(b.s, 100 * S, 1, NULL);
	assert_int_equal(next(&b, 100), 4);
	sched_remove(b.s, 200 * S, 4, NULL);
	assert_int_equal(next(&b, 200), 2);
	drop(&b);
}

TEST(test_quotas_hold)
{
	const struct sched_tenant two[] = { { .name = "ada", .weight = 1, .max_queued = 2, .max_cpus = 2 },
					    { .weight = 1, .max_queued = 1 } };
	struct sched_waiting w;
	struct sched_estimate e;
	struct bed b;

	make_for(&b, 8, two, 2);
	assert_int_equal(submit_of(&b, 0, 1, 0, 2, NAN), 0);
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(submit_of(&b, 0, 2, 0, 1, 1000), 0);
	assert_int_equal(b.verdict, SCHED_PROMISED);
	near(b.d.candidate[0].wait_s, 100); /* foreseen */
	assert_int_equal(submit_of(&b, 0, 3, 0, 1, NAN), 0);
	assert_int_equal(next(&b, 0), 0);
	assert_int_equal(sched_waiting(b.s, 0, 2, &w, NULL), 0);
	assert_int_equal(w.why, SCHED_WAIT_QUOTA);
	near(w.needed, 1);
	near(w.available, 0);
	sched_estimate(b.s, 0, 2, &e, NULL);
	near(e.start_s, 100);
	assert_int_equal(submit_of(&b, 0, 4, 0, 1, NAN), -ERR_BUSY);
	assert_non_null(strstr(b.err.text, "ada"));
	assert_int_equal(submit_of(&b, 0, 5, 1, 1, NAN), 0);
	assert_int_equal(next(&b, 0), 5); /* another tenant passes */
	assert_int_equal(submit_of(&b, 0, 6, 1, 1, NAN), 0);
	assert_int_equal(submit_of(&b, 0, 7, 1, 1, NAN), -ERR_BUSY);
	assert_non_null(strstr(b.err.text, "tenant 1"));
	assert_int_equal(sched_remove(b.s, 0, 3, NULL), 0);
	assert_int_equal(submit_of(&b, 0, 8, 0, 3, NAN), 0); /* wider than it may ever be */
	assert_int_equal(b.verdict, SCHED_REJECTED);
	assert_true(b.d.candidate[0].reasons & REASON_TOO_WIDE);
	drop(&b);
}

TEST(test_tenants_may_change_under_live_jobs)
{
	const struct sched_tenant few[] = { { .weight = 1 }, { .weight = 1 } };
	const struct sched_tenant more[] = { { .weight = 1 },
					     { .weight = 1, .max_cpus = 2 },
					     { .weight = 5 } };
	const struct sched_tenant bad[] = { { .weight = 0 }, { .weight = 1 } };
	const struct sched_tenant many[8] = { { .weight = 1 }, { .weight = 1 }, { .weight = 1 },
					      { .weight = 1 }, { .weight = 1 }, { .weight = 1 },
					      { .weight = 1 }, { .weight = 1 } };
	struct sched_request r;
	struct bed b;

	make(&b, "postrider", 4);
	r = job(&b, 1, NAN);
	submit(&b, 0, &r);
	assert_int_equal(sched_set_tenants(b.s, 0, few, 2, &b.err), -ERR_ARG); /* it has come already */
	sched_remove(b.s, 0, 1, NULL);
	assert_int_equal(sched_set_tenants(b.s, 0, few, 2, &b.err), 0);
	r.id = 2;
	r.tenant = 1;
	submit(&b, 0, &r);
	next(&b, 0);
	for (r.id = 3; r.id <= 5; r.id++) {
		r.tenant = (uint32_t)r.id % 2;
		submit(&b, 0, &r);
	}
	assert_int_equal(share(&b, 0, 1).running, 1);
	assert_int_equal(share(&b, 0, 1).queued, 2);
	assert_int_equal(share(&b, 0, 0).queued, 1);
	near(share(&b, 3600, 1).usage_cpu_s, 7200 * (1 - exp(-1)));
	assert_int_equal(sched_set_tenants(b.s, 3600 * S, bad, 2, NULL), -ERR_ARG);
	assert_int_equal(sched_set_tenants(b.s, 3600 * S, few, 0, NULL), -ERR_ARG);
	assert_int_equal(sched_set_tenants(b.s, 3600 * S, few, 1, NULL), -ERR_ARG);
	mem_fail_at(1, true);
	assert_int_equal(sched_set_tenants(b.s, 3600 * S, many, 8, NULL), -ERR_NOMEM);
	mem_fail_at(0, false);
	assert_int_equal(sched_set_tenants(b.s, 3600 * S, more, 3, NULL), 0);
	near(share(&b, 3600, 1).usage_cpu_s, 7200 * (1 - exp(-1)));
	assert_int_equal(next(&b, 3600), 4); /* the other one is at its quota now */
	assert_int_equal(next(&b, 3600), 0);
	r.id = 9;
	r.tenant = 3;
	assert_int_equal(sched_submit(b.s, 3600 * S, &r, &b.d, &b.verdict, NULL), -ERR_ARG);
	drop(&b);
}

/* The job waits for 500 s before it is started out of turn, and runs for 500 s: only that is usage. */
TEST(test_usage_counts_from_start_to_end)
{
	const struct sched_tenant one[] = { { .weight = 1 } };
	struct bed b;

	make_for(&b, 4, one, 1);
	submit_of(&b, 0, 1, 0, 2, NAN);
	assert_int_equal(sched_start_now(b.s, 500 * S, 1, &b.d, NULL), 0);
	sched_remove(b.s, 1000 * S, 1, NULL);
	near(share(&b, 2000, 0).usage_cpu_s, 2000 * (1 - exp(-0.5)) * exp(-1));
	drop(&b);
}

/* A turn raises its tenant by window x cpus / weight: the first by 2,000, the second by 1,000 / 1.1. So the
 * second has two turns, sometimes three, for one of the first. */
TEST(test_the_order_of_starts_follows_what_each_tenant_will_run)
{
	const struct sched_tenant two[] = { { .weight = 1 }, { .weight = 1.1 } };
	const uint64_t order[] = { 1, 4, 5, 6, 2, 7, 8, 3, 9 };
	struct sched_estimate e[9];
	uint64_t id[9];
	struct bed b;

	make_for(&b, 2, two, 2);
	for (uint64_t i = 1; i <= 9; i++)
		submit_of(&b, 0, i, i > 3, i > 3 ? 1 : 2, NAN);
	assert_int_equal(whole_estimates(b.s, 0, id, e, 9), 9);
	for (int i = 0; i < 9; i++)
		assert_int_equal(id[i], order[i]);
	near(e[0].start_s, 0);
	near(e[1].start_s, 100);
	near(e[2].start_s, 100); /* narrow: beside it */
	near(e[3].start_s, 200);
	drop(&b);
}
