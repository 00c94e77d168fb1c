/* A scheduler on the model of hand_model.h, and short ways to tell it what happens. Times are in seconds. */
#ifndef TESTS_SCHED_BED_H
#define TESTS_SCHED_BED_H

#include "tests/unit/core/hand_model.h"

#define S 1000000000LL

struct bed {
	struct model *m;
	struct job_values values;
	struct sched *s;
	struct decision d;          /* of the last submit or start */
	enum sched_verdict verdict; /* of the last submit */
	struct err err;
};

/* Two cores, no limit of memory, room for 1,000 jobs. */
struct sched_params params(const struct bed *b, const char *policy, uint32_t slots);
void make(struct bed *b, const char *policy, uint32_t slots);
void remake(struct bed *b, const struct sched_params *p); /* another scheduler in its place */
void drop(struct bed *b);

/* Two cpus, confidence 0.9, the model's batches, nothing known of memory. slo_s NaN: no limit. */
struct sched_request job(const struct bed *b, uint64_t id, double slo_s);
enum sched_verdict submit(struct bed *b, int64_t now_s, const struct sched_request *r);
/* With one batch only, so that its work is given. */
enum sched_verdict submit_batch(struct bed *b, int64_t now_s, uint64_t id, const double *batch, double slo_s);
uint64_t next(struct bed *b, int64_t now_s); /* starts the next job; 0: none starts */

void near(double a, double b); /* equal to nine digits */

extern const double b32, b64, b128, b512;

#endif
