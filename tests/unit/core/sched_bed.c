/* A scheduler on the model of hand_model.h. */
#include "tests/unit/core/sched_bed.h"

const double b32 = 32, b64 = 64, b128 = 128, b512 = 512;

struct sched_params params(const struct bed *b, const char *policy, uint32_t slots)
{
	return (struct sched_params){ .policy = hand_policy(policy),
				      .model = b->m,
				      .machine = { .cores = 2, .slots = slots, .memory_mb = INFINITY },
				      .max_jobs = 1000,
				      .seed = 7 };
}

void make(struct bed *b, const char *policy, uint32_t slots)
{
	struct sched_params p;

	memset(b, 0, sizeof *b);
	hand_disk = 0.0;
	b->m = hand_model(!strcmp(policy, "courier") ? &hand_forest : &hand_hybrid);
	b->values = hand_values(b->m);
	p = params(b, policy, slots);
	remake(b, &p);
}

void remake(struct bed *b, const struct sched_params *p)
{
	sched_free(b->s);
	b->s = NULL;
	if (sched_new(p, &b->s, &b->err))
		fail_msg("%s", b->err.text);
}

void drop(struct bed *b)
{
	sched_free(b->s);
	job_values_release(&b->values);
	model_free(b->m);
}

struct sched_request job(const struct bed *b, uint64_t id, double slo_s)
{
	return (struct sched_request){ .id = id,
				       .values = &b->values,
				       .cpus = 2,
				       .slo_s = slo_s,
				       .confidence = 0.9,
				       .memory_mb = NAN,
				       .memory_mb_per_record = NAN,
				       .max_memory_mb = NAN };
}

enum sched_verdict submit(struct bed *b, int64_t now_s, const struct sched_request *r)
{
	if (sched_submit(b->s, now_s * S, r, &b->d, &b->verdict, &b->err))
		fail_msg("%s", b->err.text);
	return b->verdict;
}

enum sched_verdict submit_batch(struct bed *b, int64_t now_s, uint64_t id, const double *batch, double slo_s)
{
	struct sched_request r = job(b, id, slo_s);

	r.batch = batch;
	r.n_batches = 1;
	return submit(b, now_s, &r);
}

uint64_t next(struct bed *b, int64_t now_s)
{
	uint64_t id = 0;

	return sched_next(b->s, now_s * S, &id, &b->d) ? id : 0;
}

void near(double a, double b)
{
	if (!(fabs(a - b) <= 1e-9 * fabs(b) + 1e-9))
		fail_msg("%.15g is not %.15g", a, b);
}
