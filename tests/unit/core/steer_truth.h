/* Jobs of a known truth, steered by a scheduler or not, one at a time: how accurate they end and which
 * promises are kept. The short form is in test_sched_steer.c, the full one in tests/bars. */
#ifndef TESTS_STEER_TRUTH_H
#define TESTS_STEER_TRUTH_H

#include <stdint.h>

struct steer_truth {
	const char *policy;
	double spread;     /* of the logarithm of a run's pace, which the model knows to be so wide */
	double joins;      /* to this part of the jobs a neighbour comes and stays: 1.5 times as long */
	double chance;     /* that a job takes without a promise; 0: it is refused then */
	double own;        /* this part of the spread is another pace in each batch; 0: in all the same */
	unsigned jobs;
	uint64_t seed;
};

struct steer_score {
	double accuracy;   /* mean, a miss or a refusal as 0 */
	double best;       /* of the best constant batch, known in advance */
	double kept;       /* part of the promises */
	double promised, taken, changes; /* parts of the jobs; changes of one that was taken */
};
struct steer_score steer_truth_play(const struct steer_truth *t);

#endif
