/* The bars of steering, with jobs of a known truth (tests/unit/core/steer_truth.h): 5,000 of each row,
 * where the unit tests have 300. At least 95 % of the accuracy of the best constant batch known in advance
 * where runs spread by 5 and 15 %, 92 % at 30 %, and 90 % where a neighbour joins that nobody foresaw;
 * promises kept at least as often as the confidence says. A refusal and a miss count as 0. */
#include <stdio.h>

#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/core/steer_truth.h"

static const struct row {
	double spread, joins, own, chance, least;
} row[] = {
	{ 0.05, 0.0, 0.0, 0.0, 0.95 },
	{ 0.15, 0.0, 0.0, 0.0, 0.95 },
	{ 0.30, 0.0, 0.0, 0.0, 0.92 },
	{ 0.15, 0.4, 0.0, 0.0, 0.90 },
	/* a run's pace differs from batch to batch by half of its spread */
	{ 0.15, 0.0, 0.5, 0.0, 0.95 },
	{ 0.30, 0.0, 0.5, 0.0, 0.92 },
	/* what cannot be promised is taken for a chance of one half */
	{ 0.30, 0.0, 0.0, 0.5, 0.92 },
	{ 0.30, 0.4, 0.0, 0.5, 0.90 },
};

TEST(test_steered_jobs_keep_their_promises_and_reach_the_best_constant_batch)
{
	printf("%-34s %10s %10s %10s %8s %8s %8s\n", "spread, neighbour, own, chance", "not", "steered",
	       "constant", "kept not", "kept", "changes");
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct steer_truth t = { .spread = row[i].spread,
					 .joins = row[i].joins,
					 .own = row[i].own,
					 .chance = row[i].chance,
					 .jobs = sanitized() ? 200 : 5000,
					 .seed = 11 };
		struct steer_score with, without;

		t.policy = "postrider:steer=no";
		without = steer_truth_play(&t);
		t.policy = "postrider";
		with = steer_truth_play(&t);
		printf("%5.2f %9.1f %8.1f %8.1f  %10.3f %10.3f %10.3f %8.3f %8.3f %8.2f\n", t.spread, t.joins,
		       t.own, t.chance, without.accuracy, with.accuracy, with.best, without.kept, with.kept,
		       with.changes);
		assert_true(with.accuracy >= row[i].least * with.best);
		assert_true(with.accuracy >= 1.05 * without.accuracy);
		assert_true(with.kept >= 0.9);
	}
}
