/* Scores in, corrections out: adapt.h says what and why. A track holds the scores of a type, or of all. */
#include "scheduler/core/adapt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/stats.h"
#include "predictors/models/conformal.h"

#define PERCENTS 101

struct track {
	int type;
	uint64_t used_at; /* by the count of observations; 0: free */
	uint64_t n; /* scores so far */
	double *around; /* the last `window` scores less the bias of their time, a ring */
	double *sorted; /* the same, ascending */
	double *recent; /* the last scores themselves, a ring */
	double median; /* of those */
	double raise[PERCENTS]; /* of the level, by confidence */
};

struct adapt {
	size_t max_types, window, recent;
	double step;
	bool no_bias;
	uint64_t observed;
	uint64_t promised[PERCENTS], kept[PERCENTS];
	struct track pool, *track;
	double *scratch; /* of a median */
	double *memory; /* of all of the arrays */
};

/* ---- making ---- */

static double *hand_out(struct track *t, const struct adapt *a, double *memory)
{
	t->around = memory;
	t->sorted = t->around + a->window;
	t->recent = t->sorted + a->window;
	return t->recent + a->recent;
}

int adapt_new(const struct adapt_params *p, struct adapt **out, struct err *err)
{
	struct adapt a = {
		.max_types = p->max_types ? p->max_types : 64,
		.window = p->window ? p->window : 200,
		.recent = p->recent ? p->recent : 30,
		.step = p->step == 0.0  ? 0.005
			: p->step < 0.0 ? 0.0
					: p->step,
		.no_bias = p->no_bias,
	};
	struct adapt *new;
	double *memory;

	if (a.max_types > ADAPT_MAX_TYPES || a.window < 20 || a.window > ADAPT_MAX_WINDOW || a.recent < 5 ||
	    a.recent > ADAPT_MAX_RECENT || !(a.step <= 0.5))
		return err_fail(
			err, ERR_ARG,
			"adaptation over %zu types, a window of %zu, %zu recent scores, step %g: need at "
			"most %d, 20 to %d, 5 to %d, at most 0.5",
			a.max_types, a.window, a.recent, a.step, ADAPT_MAX_TYPES, ADAPT_MAX_WINDOW,
			ADAPT_MAX_RECENT);
	new = mem_alloc(sizeof *new);
	a.track = mem_calloc(a.max_types, sizeof *a.track);
	a.memory = memory =
		mem_array((a.max_types + 1) * (2 * a.window + a.recent) + a.recent, sizeof *memory);
	if (!new || !a.track || !memory) {
		free(new);
		free(a.track);
		free(memory);
		return err_nomem(err, "the scores of %zu job types", a.max_types);
	}
	memory = hand_out(&a.pool, &a, memory);
	for (size_t i = 0; i < a.max_types; i++)
		memory = hand_out(&a.track[i], &a, memory);
	a.scratch = memory;
	*new = a;
	*out = new;
	return 0;
}

void adapt_free(struct adapt *a)
{
	if (!a)
		return;
	free(a->track);
	free(a->memory);
	free(a);
}

static void forget(struct track *t)
{
	t->used_at = t->n = 0;
	t->median = 0.0;
	memset(t->raise, 0, sizeof t->raise);
}

void adapt_reset(struct adapt *a)
{
	forget(&a->pool);
	for (size_t i = 0; i < a->max_types; i++)
		forget(&a->track[i]);
}

/* ---- tracks ---- */

static const struct track *find(const struct adapt *a, int type)
{
	for (size_t i = 0; type >= 0 && i < a->max_types; i++)
		if (a->track[i].used_at && a->track[i].type == type)
			return &a->track[i];
	return NULL;
}

/* The type's own, or a free one, or that of the type unused for longest. */
static struct track *claim(struct adapt *a, int type)
{
	struct track *oldest = &a->track[0];

	for (size_t i = 0; i < a->max_types; i++) {
		struct track *t = &a->track[i];

		if (t->used_at && t->type == type)
			return t;
		if (t->used_at < oldest->used_at)
			oldest = t;
	}
	forget(oldest);
	oldest->type = type;
	return oldest;
}

static size_t in_window(const struct adapt *a, const struct track *t)
{
	return t->n < a->window ? (size_t)t->n : a->window;
}

/* The first place whose value is not below v. */
static size_t place_of(const double *sorted, size_t n, double v)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (sorted[mid] < v)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void add_score(struct adapt *a, struct track *t, double score, double around)
{
	size_t n = in_window(a, t), at = (size_t)(t->n % a->window), n_recent, to;

	if (n == a->window) {
		size_t from = place_of(t->sorted, n, t->around[at]);

		memmove(t->sorted + from, t->sorted + from + 1, (n - 1 - from) * sizeof *t->sorted);
		n--;
	}
	to = place_of(t->sorted, n, around);
	memmove(t->sorted + to + 1, t->sorted + to, (n - to) * sizeof *t->sorted);
	t->sorted[to] = t->around[at] = around;
	t->recent[t->n % a->recent] = score;
	t->n++;
	n_recent = t->n < a->recent ? (size_t)t->n : a->recent;
	memcpy(a->scratch, t->recent, n_recent * sizeof *a->scratch);
	t->median = stats_median(a->scratch, n_recent);
}

/* ---- the bias ---- */

/* By half the distance of the quartiles, as for the normal distribution: tails do not count. NaN: not
 * known. */
static double spread_of(const struct adapt *a, const struct track *t)
{
	size_t n = in_window(a, t);

	return n < 8 ? NAN : (t->sorted[(3 * n) / 4] - t->sorted[n / 4]) / 1.349;
}

/* The median of n scores has the variance pi/2 spread^2 / n. What of its distance from the parent's bias
 * could be that is taken off (the positive part of James and Stein), so that chance alone moves estimates
 * little and a real shift is followed nearly whole. And until `recent` are there their number weighs in as
 * well: with few scores a single far one would pass for a shift. */
static double drawn_to(double parent, const struct adapt *a, const struct track *t)
{
	double n = t->n < a->recent ? (double)t->n : (double)a->recent, away = t->median - parent;
	double own = spread_of(a, t), spread = isnan(own) ? spread_of(a, &a->pool) : own;
	double chance = 2.0 * 1.5708 * spread * spread / n,
	       square = away * away; /* n = 0: not finite, or NaN */

	if (!(square > chance)) /* nor where the spread is not known */
		return parent;
	return parent + away * (1.0 - chance / square) * n / (n + 10.0 * (1.0 - n / (double)a->recent));
}

static double log_bias(const struct adapt *a, const struct track *t)
{
	double pooled = a->no_bias ? 0.0 : drawn_to(0.0, a, &a->pool);

	return a->no_bias || !t ? pooled : drawn_to(pooled, a, t);
}

double adapt_bias(const struct adapt *a, int type)
{
	return exp(log_bias(a, find(a, type)));
}

/* ---- observing ---- */

static int percent_of(double confidence)
{
	return (int)lround(100.0 * confidence);
}

/* The level may pass 1 (quantile() goes beyond the largest score then) or fall, but not so far that it
 * would take long to come back. */
static void learn_level(const struct adapt *a, struct track *t, double confidence, bool kept)
{
	double *raise = &t->raise[percent_of(confidence)], rest = 1.0 - confidence;

	*raise += a->step * (kept ? -rest : confidence);
	*raise = fmin(fmax(*raise, -fmin(3.0 * rest, 0.9 * confidence)), 2.0 * rest);
}

bool adapt_observe(struct adapt *a, int type, double confidence, double predicted_s, double upper_s,
		   double actual_s)
{
	struct track *t;
	double score, around;

	if (!(predicted_s > 0.0 && actual_s > 0.0 && isfinite(predicted_s) && isfinite(actual_s)))
		return false;
	a->observed++;
	t = type >= 0 ? claim(a, type) : NULL;
	score = log(actual_s) - log(predicted_s); /* the ratio itself may not fit */
	around = score - log_bias(a, t);
	add_score(a, &a->pool, score, around);
	if (t) {
		add_score(a, t, score, around);
		t->used_at = a->observed;
	}
	if (!isnan(upper_s) && confidence > 0.0 && confidence < 1.0) {
		bool kept = actual_s <= upper_s;

		a->promised[percent_of(confidence)]++;
		a->kept[percent_of(confidence)] += kept;
		learn_level(a, &a->pool, confidence, kept);
		if (t)
			learn_level(a, t, confidence, kept);
	}
	return true;
}

void adapt_share(const struct adapt *a, int percent, uint64_t *out_n, uint64_t *out_kept)
{
	bool known = percent >= 0 && percent < PERCENTS;

	*out_n = known ? a->promised[percent] : 0;
	*out_kept = known ? a->kept[percent] : 0;
}

/* ---- the quantile ---- */

const char *adapt_source_name(enum adapt_source s)
{
	switch (s) {
	case ADAPT_NONE: return "none";
	case ADAPT_MODEL: return "model";
	case ADAPT_POOLED: return "pooled";
	case ADAPT_TYPE: return "type";
	}
	return "unknown";
}

/* 0 while the scores cannot carry the confidence, 1 when half a window of them is there, or twice those
 * needed. */
static double weight_of(const struct adapt *a, const struct track *t, double confidence)
{
	size_t n = in_window(a, t), needed = conformal_needed(confidence), enough = a->window / 2;

	if (needed > n)
		return 0.0;
	if (enough < 2 * needed)
		enough = 2 * needed < a->window ? 2 * needed : a->window;
	return n >= enough ? 1.0 : (double)(n - needed + 1) / (double)(enough - needed + 1);
}

/* Of rank ceil((n+1) level). Where the level asks for more than the largest score, by as many upper halves of
 * the scores beyond it as the level is short in units of what it leaves out. */
static double quantile(const struct adapt *a, const struct track *t, double confidence)
{
	size_t n = in_window(a, t);
	double level = confidence + t->raise[percent_of(confidence)];
	double rank = ceil(((double)n + 1.0) * level * (1.0 - 1e-12)), most = t->sorted[n - 1];

	if (rank <= (double)n)
		return t->sorted[rank > 1.0 ? (size_t)rank - 1 : 0];
	return most +
	       (most - t->sorted[n / 2]) * 0.5 * (level - (double)n / ((double)n + 1.0)) / (1.0 - confidence);
}

bool adapt_quantile(const struct adapt *a, int type, double confidence, double model_q, double *out_q,
		    enum adapt_source *out_source)
{
	const struct track *t = find(a, type);
	double own, pooled, q = model_q, model = isnan(model_q) ? 0.0 : 1.0;

	*out_q = NAN;
	*out_source = ADAPT_NONE;
	if (!(confidence > 0.0 && confidence < 1.0))
		return false;
	pooled = weight_of(a, &a->pool, confidence);
	own = t ? weight_of(a, t, confidence) : 0.0;
	if (pooled > 0.0) {
		pooled = model > 0.0 ? pooled : 1.0; /* nothing else is there */
		q = pooled * quantile(a, &a->pool, confidence) +
		    (pooled < 1.0 ? (1.0 - pooled) * model_q : 0.0);
	}
	if (own > 0.0) /* what a type has the pool has, so q is a number */
		q = own * quantile(a, t, confidence) + (1.0 - own) * q;
	if (isnan(q))
		return false;
	pooled *= 1.0 - own;
	model *= 1.0 - own - pooled;
	*out_q = q;
	*out_source = own >= fmax(pooled, model) ? ADAPT_TYPE : pooled >= model ? ADAPT_POOLED : ADAPT_MODEL;
	return true;
}
