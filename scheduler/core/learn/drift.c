/* The drift alarm: drift.h says what it does and why. */
#include "scheduler/core/learn/drift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/stats.h"

#define CUT 2.0 /* spreads; beyond it a score counts no more */
#define REMEMBERED 64 /* scores behind an estimate of the shift */
#define TYPES 64 /* watched at a time; a new one takes the place of the one unused for longest */
#define SHIFT 0.2 /* looked for: times a fifth longer, or as much shorter */
#define RUN_LENGTH 25000.0 /* jobs to a false alarm, on average */

struct side {
	double sum;
	uint64_t since; /* jobs since it was 0 */
};

struct watch {
	int type;
	uint64_t used_at; /* by the count of observations; 0: free */
	uint64_t jobs, seen; /* since an acknowledgement; ever: the ring's count */
	bool alarm;
	struct side up, down;
	double score[REMEMBERED]; /* a ring */
};

struct drift {
	double centre, spread, slack, threshold;
	uint64_t observed;
	struct watch pool, watch[TYPES];
};

/* Jobs until one side of a CUSUM of standard normal z passes h, with slack k. */
static double run_length_of(double h, double k)
{
	double x = 2.0 * k * (h + 1.166);

	return (exp(x) - 1.0 - x) / (2.0 * k * k);
}

static double threshold_for(double slack)
{
	double low = 0.0, high = 200.0;

	for (int i = 0; i < 100; i++) {
		double mid = (low + high) / 2.0;

		/* two sides, either of which may raise it */
		if (run_length_of(mid, slack) < 2.0 * RUN_LENGTH)
			low = mid;
		else
			high = mid;
	}
	return high;
}

int drift_reference_of(const double *score, size_t n, struct drift_reference *out, struct err *err)
{
	/* of a standard normal z, the mean of min(z^2, CUT^2) */
	const double normal = erf(CUT / M_SQRT2) - 2.0 * CUT * exp(-CUT * CUT / 2.0) / sqrt(2.0 * M_PI) +
			      CUT * CUT * erfc(CUT / M_SQRT2);
	double centre = stats_mean(score, n), spread = stats_sd(score, n);

	if (n < 8)
		return err_fail(err, ERR_NODATA, "%zu scores; the drift alarm needs 8 to compare with", n);
	for (int i = 0; i < 200; i++) { /* each round comes closer by a tenth or more */
		double sum = 0.0, squares = 0.0;

		for (size_t k = 0; k < n; k++) {
			double z = fmin(fmax((score[k] - centre) / spread, -CUT), CUT);

			sum += z;
			squares += z * z;
		}
		centre += spread * sum / (double)n;
		spread *= sqrt(squares / (double)n / normal);
	}
	if (!isfinite(centre) || !isfinite(spread) || !(spread > 0.0))
		return err_fail(err, ERR_NUMERIC,
				"%zu scores around %g with a spread of %g are not a reference", n, centre,
				spread);
	*out = (struct drift_reference){ .centre = centre, .spread = spread, .n = n };
	return 0;
}

int drift_new(const struct drift_reference *r, struct drift **out, struct err *err)
{
	double error = 0.5 / sqrt((double)r->n); /* half that of the centre, in spreads */
	struct drift *d;

	if (!isfinite(r->centre) || !(r->spread > 0.0) || !isfinite(r->spread) || r->n < 8)
		return err_fail(
			err, ERR_ARG,
			"%zu scores around %g with a spread of %g: need 8 or more, numbers, a spread above 0",
			r->n, r->centre, r->spread);
	d = mem_calloc(1, sizeof *d);
	if (!d)
		return err_nomem(err, "a drift alarm");
	d->centre = r->centre;
	d->spread = r->spread * (1.0 + 0.75 * error); /* 0.71 for normal scores not cut */
	/* Below half a spread the test would wait for ever for evidence; beyond two, cut scores would hardly
	 * pass the slack, and smaller shifts would not be seen. */
	d->slack = fmin(fmax(0.5 * log1p(SHIFT) / d->spread, 0.25), 0.9);
	d->threshold = threshold_for(d->slack);
	d->slack += error;
	*out = d;
	return 0;
}

void drift_free(struct drift *d)
{
	free(d);
}

static const struct watch *find(const struct drift *d, int type)
{
	for (size_t i = 0; i < TYPES && type >= 0; i++)
		if (d->watch[i].used_at && d->watch[i].type == type)
			return &d->watch[i];
	return type < 0 ? &d->pool : NULL;
}

static struct watch *claim(struct drift *d, int type)
{
	struct watch *w = (struct watch *)find(d, type);

	if (w)
		return w;
	w = &d->watch[0];
	for (size_t i = 1; i < TYPES; i++)
		if (d->watch[i].used_at < w->used_at)
			w = &d->watch[i];
	*w = (struct watch){ .type = type };
	return w;
}

static void add(const struct drift *d, struct side *s, double z)
{
	double sum = s->sum + z - d->slack;

	s->sum = fmin(fmax(sum, 0.0), 2.0 * d->threshold);
	s->since = s->sum > 0.0 ? s->since + 1 : 0;
}

static bool see(const struct drift *d, struct watch *w, double score)
{
	double z = fmin(fmax((score - d->centre) / d->spread, -CUT), CUT);
	bool before = w->alarm;

	w->score[w->seen++ % REMEMBERED] = score;
	w->jobs++;
	add(d, &w->up, z);
	add(d, &w->down, -z);
	w->alarm = before || fmax(w->up.sum, w->down.sum) > d->threshold;
	return w->alarm && !before;
}

bool drift_observe(struct drift *d, int type, double predicted_s, double actual_s)
{
	struct watch *watch[] = { &d->pool, NULL };
	bool raised = false;

	if (!(predicted_s > 0.0 && actual_s > 0.0 && isfinite(predicted_s) && isfinite(actual_s)))
		return false;
	d->observed++;
	watch[1] = type >= 0 ? claim(d, type) : NULL;
	for (size_t i = 0; i < 2 && watch[i]; i++) {
		watch[i]->used_at = d->observed;
		raised |= see(d, watch[i], log(actual_s) - log(predicted_s));
	}
	return raised;
}

/* The median of the scores since then, or of as many as are remembered. */
static double shift_of(const struct drift *d, const struct watch *w, uint64_t since)
{
	size_t n = since < REMEMBERED ? (size_t)since : REMEMBERED;
	double score[REMEMBERED];

	for (size_t i = 0; i < n; i++)
		score[i] = w->score[(w->seen - 1 - i) % REMEMBERED];
	return n ? 100.0 * expm1(stats_median(score, n) - d->centre) : NAN;
}

bool drift_evidence(const struct drift *d, int type, struct drift_evidence *out)
{
	const struct watch *w = find(d, type);
	const struct side *s;

	*out = (struct drift_evidence){ 0 };
	if (!w || !w->used_at)
		return false;
	s = w->up.sum >= w->down.sum ? &w->up : &w->down;
	*out = (struct drift_evidence){
		.alarm = w->alarm,
		.slower = s == &w->up,
		.jobs = w->jobs,
		.since = s->since,
		.shift_percent = shift_of(d, w, s->since),
		.statistic = s->sum,
		.threshold = d->threshold,
	};
	return true;
}

void drift_acknowledge(struct drift *d, int type)
{
	struct watch *w = (struct watch *)find(d, type);

	if (!w)
		return;
	w->alarm = false;
	w->up = w->down = (struct side){ 0 };
	w->jobs = 0;
}
