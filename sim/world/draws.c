/* The random numbers of jobs, and the texts that describe disturbances. */
#include "sim/world/draws.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/rng.h"
#include "common/text/text.h"

#define MOST_DRIFT 1000.0 /* a thousand times as long; and at least a tenth of the time */
#define LEAST_DRIFT (-0.9)
#define MOST_FACTOR 1e6

/* A stream for each thing that is drawn, so that switching one on leaves the others as they were. */
enum purpose { DRAW_TIME, DRAW_ACCURACY, DRAW_NOISE, DRAW_STRAGGLES, DRAW_FAILS, DRAW_OTHER };

struct draws draws_of(const struct disturbances *d, uint64_t seed, uint64_t job)
{
	uint64_t own = rng_stream(seed, job).state;
	struct rng time = rng_stream(own, DRAW_TIME), accuracy = rng_stream(own, DRAW_ACCURACY);
	struct rng noise = rng_stream(own, DRAW_NOISE), straggles = rng_stream(own, DRAW_STRAGGLES);
	struct rng fails = rng_stream(own, DRAW_FAILS), other = rng_stream(own, DRAW_OTHER);
	struct draws l = { .slow = 1.0, .fails_at = NAN };

	l.time_u = rng_uniform(&time);
	l.accuracy_u = rng_uniform(&accuracy);
	l.seed = rng_next(&other);
	if (!d)
		return l;
	/* log-normal with median 1: half of the jobs are faster than they would be without noise */
	if (d->noise > 0.0)
		l.slow = exp(d->noise * rng_normal(&noise));
	if (rng_uniform(&straggles) < d->stragglers)
		l.slow *= d->straggler_factor;
	if (rng_uniform(&fails) < d->failures)
		l.fails_at = rng_uniform(&fails);
	return l;
}

/* ---- from text ---- */

/* The first `len` bytes as "12.5%": 0.125. */
static bool percent(const char *text, size_t len, double *out)
{
	char digits[32];
	double v;

	if (len < 2 || len >= sizeof digits || text[len - 1] != '%')
		return false;
	memcpy(digits, text, len - 1);
	digits[len - 1] = '\0';
	if (!text_number(digits, &v))
		return false;
	*out = v / 100.0;
	return true;
}

static int not_so(const char *what, const char *text, const char *should, struct err *err)
{
	char shown[64];

	return err_fail(err, ERR_ARG, "%s '%s': %s", what, text_printable(text, shown, sizeof shown), should);
}

int disturbances_drift(const char *text, double span_s, struct disturbances *io, struct err *err)
{
	static const char *const form =
		"write it like 20%@3600 (takes 20% longer from second 3600 on; also 20%@1h), or "
		"20%@50% (from the middle of the trace on)";
	const char *at = strchr(text, '@');
	double drift, share, at_s;

	if (!at || !percent(text, (size_t)(at - text), &drift))
		return not_so("drift", text, form, err);
	if (!(drift >= LEAST_DRIFT && drift <= MOST_DRIFT))
		return not_so("drift", text, "need at least -90% and at most 100000%", err);
	if (percent(at + 1, strlen(at + 1), &share)) {
		if (!(share >= 0.0 && share <= 1.0))
			return not_so("drift", text, "the moment must be from 0% to 100% of the trace", err);
		at_s = share * span_s;
	} else if (text_duration(at + 1, &at_s, NULL)) {
		return not_so("drift", text, form, err);
	}
	io->drift = drift;
	io->drift_at_s = at_s;
	return 0;
}

int disturbances_stragglers(const char *text, struct disturbances *io, struct err *err)
{
	const char *times = strchr(text, 'x');
	double share, factor;

	if (!times || !percent(text, (size_t)(times - text), &share) || !text_number(times + 1, &factor))
		return not_so("stragglers", text, "write it like 2%x3 (2% of the jobs take 3 times as long)",
			      err);
	if (!(share >= 0.0 && share <= 1.0) || !(factor > 0.0 && factor <= MOST_FACTOR))
		return not_so("stragglers", text,
			      "need a share from 0% to 100% and a factor above 0, at most 1000000", err);
	io->stragglers = share;
	io->straggler_factor = factor;
	return 0;
}

int disturbances_failures(const char *text, struct disturbances *io, struct err *err)
{
	double share;

	if (!percent(text, strlen(text), &share))
		return not_so("failures", text, "write it like 1% (of the jobs)", err);
	if (!(share >= 0.0 && share <= 1.0))
		return not_so("failures", text, "need a share from 0% to 100%", err);
	io->failures = share;
	return 0;
}

void disturbances_to_json(const struct disturbances *d, struct json_writer *w)
{
	json_open(w, '{');
	json_kv_number(w, "noise", d->noise);
	json_kv_number(w, "drift", d->drift);
	json_kv_number(w, "drift_at_s", d->drift_at_s);
	json_kv_number(w, "stragglers", d->stragglers);
	json_kv_number(w, "straggler_factor", d->straggler_factor);
	json_kv_number(w, "failures", d->failures);
	json_close(w, '}');
}
