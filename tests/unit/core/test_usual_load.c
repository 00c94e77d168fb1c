/* The load of others, foreseen from its own past: usual_load.h. */
#include "scheduler/core/learn/usual_load.h"

#include <math.h>

#include "common/rng.h"
#include "tests/support/support.h"

#define S 1000000000LL

/* A load whose logarithm jumps around a mean: each second it keeps `keep` of its distance, plus noise. */
struct jumpy {
	struct rng rng;
	double keep, noise, away;
};

static double jump(struct jumpy *j)
{
	j->away = j->keep * j->away + j->noise * rng_normal(&j->rng);
	return fmax(expm1(log(5.0) + j->away), 0.0);
}

/* Forecasts over 8 s after ten minutes: how they came true, in log(1 + load). */
struct came {
	double error, spread, error_of_now, within;
};

static struct came watch(struct jumpy j, int n)
{
	struct usual_load u = { 0 };
	struct came c = { 0 };
	double load = jump(&j);
	int64_t t = S;

	usual_load_begin(&u, t, load);
	for (int i = 0; i < 600; i++) {
		t += S;
		usual_load_pass(&u, t, load);
		load = jump(&j);
	}
	for (int i = 0; i < n; i++) {
		struct load_foreseen f = usual_load_foresee(&u, 8.0, load);
		double now = log1p(load), sum = 0.0, error;

		for (int k = 0; k < 8; k++) {
			sum += load;
			t += S;
			usual_load_pass(&u, t, load);
			load = jump(&j);
		}
		error = log1p(sum / 8.0) - log1p(f.load);
		c.error += error * error / n;
		c.spread += f.spread / n;
		c.error_of_now += pow(log1p(sum / 8.0) - now, 2.0) / n;
		c.within += (error <= 1.2816 * f.spread) / (double)n; /* the 90 % point of a normal law */
	}
	c.error = sqrt(c.error);
	c.error_of_now = sqrt(c.error_of_now);
	return c;
}

TEST(test_a_load_that_jumps_is_not_thought_to_last)
{
	struct came c = watch((struct jumpy){ rng_stream(1, 1), 0.0, 0.5, 0.0 }, 2000);

	print_message("# jumps: error %.3f, said %.3f, by what is now %.3f, within the 90 %% point %.3f\n",
		      c.error, c.spread, c.error_of_now, c.within);
	assert_true(c.error < 0.6 * c.error_of_now);
	assert_true(fabs(c.spread / c.error - 1.0) < 0.15);
	assert_true(c.within > 0.85 && c.within < 0.94);
}

TEST(test_a_load_that_drifts_is_believed_as_it_is)
{
	struct came c = watch((struct jumpy){ rng_stream(2, 1), 0.98, 0.1, 0.0 }, 2000);

	print_message("# drifts: error %.3f, said %.3f, by what is now %.3f, within the 90 %% point %.3f\n",
		      c.error, c.spread, c.error_of_now, c.within);
	assert_true(c.error < 1.1 * c.error_of_now);
	assert_true(c.spread > 0.95 * c.error && c.spread < 1.3 * c.error);
	assert_true(c.within > 0.87 && c.within < 0.95);
}

TEST(test_a_load_that_stays_is_sure)
{
	struct usual_load u = { 0 };
	struct load_foreseen f;

	usual_load_begin(&u, S, 3.0);
	f = usual_load_foresee(&u, 8.0, 3.0);
	assert_true(f.load == 3.0 && f.spread == 0.0); /* nothing is known yet */
	usual_load_pass(&u, 300 * S, 3.0);
	for (int i = 301; i < 400; i++)
		usual_load_pass(&u, i * S, 3.0);
	f = usual_load_foresee(&u, 8.0, 3.0);
	assert_true(fabs(f.load - 3.0) < 1e-9 && f.spread < 1e-9);
}

TEST(test_a_moment_that_does_not_pass_changes_nothing)
{
	struct usual_load u = { 0 }, before;

	usual_load_begin(&u, 5 * S, 1.0);
	usual_load_pass(&u, 9 * S, 2.0);
	before = u;
	usual_load_pass(&u, 9 * S, 1000.0);
	usual_load_pass(&u, 8 * S, 1000.0);
	assert_memory_equal(&u, &before, sizeof u);
	usual_load_pass(&u, INT64_MAX / 2, 1e6); /* three centuries */
	assert_true(isfinite(usual_load_foresee(&u, 1e9, 1e6).load));
}
