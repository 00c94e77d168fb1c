/* The epochs that a running job told: which are kept, and that they are read as they were. */
#include <math.h>

#include "scheduler/jobs/told_epochs.h"
#include "tests/support/test.h"

/* A start-up of 3 s, epochs of 0.5 s, and 0.25 s after the last one. */
static const char *told(struct told_epochs *t, int epochs)
{
	for (int e = 1; e <= epochs; e++)
		told_epochs_add(t, e, 3.0 + 0.5 * e, e % 2 ? 1.0 - 0.5 / e : NAN);
	return told_epochs_text(t, epochs, 3.25 + 0.5 * epochs);
}

TEST(test_a_run_that_is_stopped_after_an_epoch_ends_as_the_whole_one_does)
{
	struct told_epochs t = { 0 };
	const char *text = told(&t, 5);
	struct told_epoch e;

	assert_non_null(text);
	for (int i = 1; i <= 4; i++) {
		assert_true(told_epochs_next(&text, &e));
		assert_true(e.epoch == i && fabs(e.time_s - (3.25 + 0.5 * i)) < 1e-6);
		assert_true(i % 2 ? fabs(e.accuracy - (1.0 - 0.5 / i)) < 1e-6 : isnan(e.accuracy));
	}
	assert_false(told_epochs_next(&text, &e)); /* the fifth is the run itself */
}

TEST(test_of_many_epochs_the_first_and_the_last_are_kept)
{
	for (int epochs = 2; epochs <= 1000; epochs += 37) {
		struct told_epochs t = { 0 };
		const char *text = told(&t, epochs);
		struct told_epoch e = { 0 };
		double last = 0.0, widest = 0.0;
		size_t n = 0;

		assert_non_null(text);
		assert_true(t.n <= TOLD_EPOCHS && t.at[t.n - 1].epoch == epochs);
		for (; told_epochs_next(&text, &e); n++) {
			assert_true(e.epoch > last && (n || e.epoch == 1.0));
			widest = fmax(widest, e.epoch - last);
			last = e.epoch;
		}
		assert_true(n == t.n - 1 && widest <= 1.0 + epochs / 6.0);
	}
}

TEST(test_epochs_that_do_not_reach_the_end_say_nothing)
{
	struct told_epochs t = { 0 };
	struct told_epoch e;
	const char *const damaged[] = { "", "x", "1", "1 ", "1 2", "1 2 0.5", "0 2 ;", "1 -2 ;", "1 2 x;" };

	assert_null(told(&t, 1)); /* its end is all there is */
	assert_null(told_epochs_text(&t, 12, 100.0)); /* the twelfth was not told */
	told_epochs_add(&t, 1.0, 9.0, NAN); /* again */
	told_epochs_add(&t, 2.0, NAN, NAN);
	told_epochs_add(&t, 3.0, 1.0, NAN); /* before the first */
	assert_int_equal(t.n, 1);
	for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
		const char *text = damaged[i];

		assert_false(told_epochs_next(&text, &e));
	}
}
