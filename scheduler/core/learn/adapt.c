/* Scores in, corrections out: adapt.h says what and why. A track holds the scores of a family, of a type, or
 * of all. */
#include "scheduler/core/learn/adapt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/stats.h"
#include "predictors/models/conformal.h"

#define TOP 3
#define TRACKS 64 /* types remembered at a time, and as many families: the one unused for longest goes */
#define WINDOW 200 /* scores behind a quantile */
#define RECENT 30 /* scores behind a bias */
#define HOSTILE 0.45 /* the 62.5 % point of a normal distribution is 0.32; shares of a window vary */

struct track {
	int type;
	uint64_t family; /* 0: all of its type */
	uint64_t used_at; /* by the count of observations; 0: free */
	uint64_t n; /* scores so far */
	double score[WINDOW]; /* the latest, a ring */
	double around[WINDOW]; /* the same less the bias of their time */
	double sorted[WINDOW]; /* those, ascending */
	uint32_t user[WINDOW], sorted_user[WINDOW]; /* whose they are */
	bool mixed; /* of more than one user */
	double median; /* of the latest scores */
	size_t n_latest; /* how many these are */
	uint32_t top[TOP]; /* the users with most of them, and how many: 0: nobody */
	size_t n_top[TOP];
};

struct adapt {
	unsigned without; /* of the layers */
	uint64_t observed;
	double spread; /* of the model's errors in log time; NaN: not known */
	struct track pool, type[TRACKS], family[TRACKS];
};

int adapt_new(unsigned without, struct adapt **out, struct err *err)
{
	struct adapt *a = mem_calloc(1, sizeof *a);

	if (!a)
		return err_nomem(err, "the scores of ended jobs");
	a->without = without;
	a->spread = NAN;
	*out = a;
	return 0;
}

void adapt_free(struct adapt *a)
{
	free(a);
}

static void forget(struct track *t)
{
	t->used_at = t->n = 0;
	t->median = 0.0;
	t->n_latest = 0;
	t->mixed = false;
}

void adapt_reset(struct adapt *a, double spread)
{
	forget(&a->pool);
	for (size_t i = 0; i < TRACKS; i++) {
		forget(&a->type[i]);
		forget(&a->family[i]);
	}
	a->spread = spread > 0.0 && isfinite(spread) ? spread : NAN;
}

bool adapt_is_empty(const struct adapt *a)
{
	return a->pool.n == 0;
}

static double spread_known(const struct adapt *a)
{
	return isnan(a->spread) ? ADAPT_SPREAD : a->spread;
}

bool adapt_plausible(const struct adapt *a, double predicted_s, double actual_s, bool known)
{
	double most = fmax(log(known ? ADAPT_PLAUSIBLE : ADAPT_PLAUSIBLE_STRANGER),
			   ADAPT_PLAUSIBLE_SPREADS * spread_known(a));

	return predicted_s > 0.0 && actual_s > 0.0 && fabs(log(actual_s) - log(predicted_s)) <= most;
}

/* ---- tracks ---- */

/* Tracks are claimed from the first on and are given back all at once, so a free one ends the search. */
static const struct track *find(const struct track *track, int type, uint64_t family)
{
	for (size_t i = 0; i < TRACKS && track[i].used_at; i++)
		if (track[i].type == type && track[i].family == family)
			return &track[i];
	return NULL;
}

static const struct track *find_type(const struct adapt *a, int type)
{
	return type < 0 ? NULL : find(a->type, type, 0);
}

static const struct track *find_family(const struct adapt *a, struct adapt_who who)
{
	return who.family ? find(a->family, who.type, who.family) : NULL;
}

/* The one of this type and family, or a free one, or the one unused for longest. */
static struct track *claim(struct track *track, int type, uint64_t family)
{
	struct track *t = (struct track *)find(track, type, family);

	if (t)
		return t;
	t = track;
	for (size_t i = 1; i < TRACKS; i++)
		if (track[i].used_at < t->used_at)
			t = &track[i];
	forget(t);
	t->type = type;
	t->family = family;
	return t;
}

static size_t in_window(const struct track *t)
{
	return t->n < WINDOW ? (size_t)t->n : WINDOW;
}

/* The place in the rings of the score before which `back` have come since. */
static size_t latest(const struct track *t, size_t back)
{
	return (size_t)((t->n - 1 - back) % WINDOW);
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

struct user_count { /* the scores of one user in a window */
	uint32_t user;
	size_t n, taken;
};

static struct user_count *count_of(struct user_count *of, size_t *n, uint32_t user)
{
	for (size_t i = 0; i < *n; i++)
		if (of[i].user == user)
			return &of[i];
	of[*n] = (struct user_count){ .user = user };
	return &of[(*n)++];
}

static void note_top(struct track *t, uint32_t user, size_t n)
{
	for (size_t i = 0; i < TOP; i++) {
		if (n <= t->n_top[i])
			continue;
		memmove(t->top + i + 1, t->top + i, (TOP - 1 - i) * sizeof *t->top);
		memmove(t->n_top + i + 1, t->n_top + i, (TOP - 1 - i) * sizeof *t->n_top);
		t->top[i] = user;
		t->n_top[i] = n;
		return;
	}
}

/* The latest scores of every user, as many as the user's share of the window, and their median. With several
 * users twice as many are taken, because the part that could be false is subtracted as well as the part that
 * could be chance. */
static void take_latest(struct track *t)
{
	size_t n = in_window(t), most = t->mixed ? 2 * RECENT : RECENT, wanted = n < most ? n : most,
	       users = 0;
	struct user_count of[WINDOW];
	double score[WINDOW];

	t->n_latest = 0;
	memset(t->n_top, 0, sizeof t->n_top);
	for (size_t i = 0; i < (t->mixed ? n : 1); i++)
		count_of(of, &users, t->user[latest(t, i)])->n += t->mixed ? 1 : n;
	for (size_t i = 0; i < n && (t->mixed || i < wanted); i++) { /* from the newest on */
		struct user_count *own = count_of(of, &users, t->user[latest(t, i)]);

		/* rounded up: a user with a single score has a say */
		if (own->taken >= (own->n * wanted + n - 1) / n)
			continue;
		own->taken++;
		score[t->n_latest++] = t->score[latest(t, i)];
	}
	for (size_t i = 0; i < users; i++)
		note_top(t, of[i].user, of[i].taken);
	t->median = stats_median(score, t->n_latest);
}

static void add_score(struct track *t, uint32_t user, double score, double around)
{
	size_t n = in_window(t), at = (size_t)(t->n % WINDOW), to;

	if (n == WINDOW) {
		size_t from = place_of(t->sorted, n, t->around[at]);

		while (t->sorted_user[from] != t->user[at])
			from++; /* equal ones of others */
		memmove(t->sorted + from, t->sorted + from + 1, (n - 1 - from) * sizeof *t->sorted);
		memmove(t->sorted_user + from, t->sorted_user + from + 1,
			(n - 1 - from) * sizeof *t->sorted_user);
		n--;
	}
	to = place_of(t->sorted, n, around);
	memmove(t->sorted + to + 1, t->sorted + to, (n - to) * sizeof *t->sorted);
	memmove(t->sorted_user + to + 1, t->sorted_user + to, (n - to) * sizeof *t->sorted_user);
	t->sorted[to] = t->around[at] = around;
	t->sorted_user[to] = t->user[at] = user;
	t->score[at] = score;
	t->n++;
	t->mixed = false;
	for (size_t i = 0; i <= n && !t->mixed; i++)
		t->mixed = t->user[i] != user;
	take_latest(t);
}

/* ---- the bias ---- */

/* By half the distance of the quartiles, as for the normal distribution: tails do not count. NaN: not
 * known. */
static double spread_of(const struct track *t)
{
	size_t n = in_window(t);

	return n < 8 ? NAN : (t->sorted[(3 * n) / 4] - t->sorted[n / 4]) / 1.349;
}

/* The median of n scores has the variance pi/2 spread^2 / n. What of its distance from the parent's bias
 * could be that is taken off (the positive part of James and Stein), so that chance alone moves estimates
 * little and a real shift is followed nearly whole. And until RECENT are there their number weighs in as
 * well: with few scores a single far one would pass for a shift. mixed: as far as it could be a fifth of the
 * scores that lie, it is taken off as well; the median of normal scores then moves by HOSTILE spreads. */
static double drawn_to(double parent, double median, size_t n_scores, double spread, bool mixed)
{
	double n = n_scores < RECENT ? (double)n_scores : RECENT, away = median - parent;
	double lies = mixed ? HOSTILE * spread : 0.0;
	double chance = 2.0 * (1.5708 * spread * spread / (double)n_scores + lies * lies),
	       square = away * away; /* n = 0: not finite, or NaN */

	if (!(square > chance)) /* nor where the spread is not known */
		return parent;
	return parent + away * (1.0 - chance / square) * n / (n + 10.0 * (1.0 - n / RECENT));
}

/* Do the latest scores tell this user something that two others, or one, could not have made up? */
static bool trusted(const struct track *t, uint32_t user)
{
	size_t own = 0, others = 0, n_others = 0;

	for (size_t i = 0; i < TOP; i++) {
		if (t->n_top[i] && t->top[i] == user)
			own = t->n_top[i];
		else if (n_others++ < 2)
			others += t->n_top[i];
	}
	return 2 * own >= t->n_latest || 2 * others < t->n_latest;
}

/* Up to `most` of the user's own latest scores. */
static size_t own_latest(const struct track *t, uint32_t user, size_t most, double *out)
{
	size_t n = in_window(t), n_own = 0;

	for (size_t i = 0; i < n && n_own < most; i++)
		if (t->user[latest(t, i)] == user)
			out[n_own++] = t->score[latest(t, i)];
	return n_own;
}

static double bias_of(double parent, const struct adapt *a, const struct track *t, uint32_t user)
{
	double own = spread_of(t), spread = isnan(own) ? spread_of(&a->pool) : own, score[RECENT];
	size_t n;

	if (!t->n)
		return parent;
	/* A user without a score takes the spread to be the model's at least: somebody who repeats a lie
	 * makes all scores look closer together than they are. */
	if (!isnan(a->spread) && spread < a->spread && !own_latest(t, user, 1, score))
		spread = a->spread;
	if (trusted(t, user))
		return drawn_to(parent, t->median, t->n < RECENT ? (size_t)t->n : t->n_latest, spread,
				t->mixed);
	n = own_latest(t, user, RECENT, score);
	return n ? drawn_to(parent, stats_median(score, n), n, spread_known(a), false) : parent;
}

/* Of all, of the type and of the family, as far as there are scores (NULL: none). */
static double log_bias(const struct adapt *a, const struct track *type, const struct track *family,
		       uint32_t user)
{
	double bias;

	if (a->without & LAYER_BIAS)
		return 0.0;
	bias = bias_of(0.0, a, &a->pool, user);
	bias = type ? bias_of(bias, a, type, user) : bias;
	return family ? bias_of(bias, a, family, user) : bias;
}

double adapt_bias(const struct adapt *a, struct adapt_who who)
{
	return exp(log_bias(a, find_type(a, who.type), find_family(a, who), who.user));
}

double adapt_bias_shown(const struct adapt *a, int type)
{
	const struct track *t = find_type(a, type);

	return exp(log_bias(a, t, NULL, t && t->n ? t->top[0] : a->pool.top[0]));
}

/* ---- observing ---- */

bool adapt_observe(struct adapt *a, struct adapt_who who, double predicted_s, double actual_s)
{
	struct track *track[] = { &a->pool, NULL, NULL };
	double score, around;

	if (!(predicted_s > 0.0 && actual_s > 0.0 && isfinite(predicted_s) && isfinite(actual_s)))
		return false;
	a->observed++;
	if (who.type >= 0)
		track[1] = claim(a->type, who.type, 0);
	if (who.family)
		track[2] = claim(a->family, who.type, who.family);
	score = log(actual_s) - log(predicted_s); /* the ratio itself may not fit */
	around = score - log_bias(a, track[1], track[2], who.user);
	for (size_t i = 0; i < 3; i++) {
		if (!track[i])
			continue;
		add_score(track[i], who.user, score, around);
		track[i]->used_at = a->observed;
	}
	return true;
}

/* ---- the quantile ---- */

/* 0 while there are fewer scores than a confidence needs, 1 when half a window of them is there, or twice
 * those needed. */
static double weight_of(size_t n, size_t needed)
{
	size_t enough = WINDOW / 2;

	if (needed > n)
		return 0.0;
	if (enough < 2 * needed)
		enough = 2 * needed < WINDOW ? 2 * needed : WINDOW;
	return n >= enough ? 1.0 : (double)(n - needed + 1) / (double)(enough - needed + 1);
}

/* The scores of a user among those of a window, ascending; all of them where nobody else has any. */
static size_t own_sorted(const struct track *t, uint32_t user, double *room, const double **out)
{
	size_t n = in_window(t), n_own = 0;

	*out = t->sorted;
	if (!t->mixed)
		return n && t->user[0] == user ? n : 0;
	*out = room;
	for (size_t i = 0; i < n; i++)
		if (t->sorted_user[i] == user)
			room[n_own++] = t->sorted[i];
	return n_own;
}

/* Of rank ceil((n+1) confidence); the largest where there are too few. */
static double rank_score(const double *sorted, size_t n, double confidence)
{
	double rank = ceil(((double)n + 1.0) * confidence * (1.0 - 1e-12));

	return sorted[rank > 1.0 ? (size_t)fmin(rank, (double)n) - 1 : 0];
}

/* From the user's own scores, as far as they carry the confidence. What all users say moves the model's
 * quantile by a little only. */
static double quantile(const struct adapt *a, const struct track *t, uint32_t user, double confidence,
		       double model_q)
{
	double limit = trusted(t, user) ? ADAPT_OTHERS * spread_known(a) : 0.0, weight, all, room[WINDOW];
	size_t n = in_window(t), n_own;
	const double *own;

	n_own = own_sorted(t, user, room, &own);
	if (n_own == n)
		return rank_score(own, n, confidence);
	weight = weight_of(n_own, conformal_needed(confidence));
	all = rank_score(t->sorted, n, confidence);
	if (!isnan(model_q))
		all = fmin(fmax(all, model_q - limit), model_q + limit);
	return weight > 0.0 ? weight * rank_score(own, n_own, confidence) + (1.0 - weight) * all : all;
}

double adapt_quantile(const struct adapt *a, struct adapt_who who, double confidence, double model_q)
{
	const struct track *track[] = { &a->pool, find_type(a, who.type), find_family(a, who) };
	double q = model_q;

	for (size_t i = 0; i < 3 && !(a->without & LAYER_QUANTILE); i++) {
		const struct track *t = track[i];
		double weight = t ? weight_of(in_window(t), conformal_needed(confidence)) : 0.0;

		if (weight > 0.0 && isnan(q)) /* nothing else is there */
			weight = 1.0;
		if (weight > 0.0)
			q = weight * quantile(a, t, who.user, confidence, model_q) +
			    (weight < 1.0 ? (1.0 - weight) * q : 0.0);
	}
	return q;
}
