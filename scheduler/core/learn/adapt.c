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
#define MAX_FAMILIES 64 /* remembered at a time, as types are */
#define HOSTILE 0.45 /* the 62.5 % point of a normal distribution is 0.32; shares of a window vary */

struct track {
	int type;
	uint64_t family; /* 0: all of its type */
	uint64_t used_at; /* by the count of observations; 0: free */
	uint64_t n; /* scores so far */
	double *score; /* the last `window` scores, a ring */
	double *around; /* the same less the bias of their time */
	double *sorted; /* those, ascending */
	uint32_t *user, *sorted_user; /* whose they are */
	bool mixed; /* of more than one user */
	double median; /* of the latest scores */
	size_t n_latest; /* how many these are */
	uint32_t top[TOP]; /* the users with most of them, and how many: 0: nobody */
	size_t n_top[TOP];
};

struct user_count { /* the scores of one user in a window */
	uint32_t user;
	uint32_t n, taken; /* n 0: free */
};

struct adapt {
	size_t max_types, window, recent;
	bool no_bias, no_quantile;
	uint64_t observed;
	double spread; /* of the model's errors in log time; NaN: not known */
	struct track pool, *track, *kin; /* of all, of types, of families */
	struct user_count *count; /* scratch: a hash of twice the window */
	double *scratch; /* of a median */
	double *memory; /* of all of the arrays */
	uint32_t *users; /* the same */
};

/* ---- making ---- */

static size_t count_slots(const struct adapt *a)
{
	size_t n = 1;

	while (n < 2 * a->window)
		n *= 2;
	return n;
}

static void hand_out(struct track *t, const struct adapt *a, size_t place)
{
	t->score = a->memory + 3 * a->window * place;
	t->around = t->score + a->window;
	t->sorted = t->around + a->window;
	t->user = a->users + 2 * a->window * place;
	t->sorted_user = t->user + a->window;
}

static void release(struct adapt *a)
{
	free(a->track);
	free(a->kin);
	free(a->count);
	free(a->memory);
	free(a->users);
	free(a->scratch);
}

int adapt_new(const struct adapt_params *p, struct adapt **out, struct err *err)
{
	struct adapt a = {
		.max_types = p->max_types ? p->max_types : 64,
		.window = p->window ? p->window : 200,
		.recent = p->recent ? p->recent : 30,
		.no_bias = p->no_bias,
		.no_quantile = p->no_quantile,
		.spread = NAN,
	};
	struct adapt *new;

	if (a.max_types > ADAPT_MAX_TYPES || a.window < 20 || a.window > ADAPT_MAX_WINDOW || a.recent < 5 ||
	    a.recent > ADAPT_MAX_RECENT)
		return err_fail(err, ERR_ARG,
				"adaptation over %zu types, a window of %zu, %zu recent scores: need at most "
				"%d, 20 to "
				"%d, 5 to %d",
				a.max_types, a.window, a.recent, ADAPT_MAX_TYPES, ADAPT_MAX_WINDOW,
				ADAPT_MAX_RECENT);
	new = mem_alloc(sizeof *new);
	a.track = mem_calloc(a.max_types, sizeof *a.track);
	a.kin = mem_calloc(MAX_FAMILIES, sizeof *a.kin);
	a.count = mem_array(count_slots(&a), sizeof *a.count);
	a.memory = mem_array((a.max_types + MAX_FAMILIES + 1) * 3 * a.window, sizeof *a.memory);
	a.users = mem_array((a.max_types + MAX_FAMILIES + 1) * 2 * a.window, sizeof *a.users);
	a.scratch = mem_array(a.window, sizeof *a.scratch);
	if (!new || !a.track || !a.kin || !a.count || !a.memory || !a.users || !a.scratch) {
		free(new);
		release(&a);
		return err_nomem(err, "the scores of %zu job types", a.max_types);
	}
	hand_out(&a.pool, &a, 0);
	for (size_t i = 0; i < a.max_types; i++)
		hand_out(&a.track[i], &a, i + 1);
	for (size_t i = 0; i < MAX_FAMILIES; i++)
		hand_out(&a.kin[i], &a, a.max_types + i + 1);
	*new = a;
	*out = new;
	return 0;
}

void adapt_free(struct adapt *a)
{
	if (!a)
		return;
	release(a);
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
	for (size_t i = 0; i < a->max_types; i++)
		forget(&a->track[i]);
	for (size_t i = 0; i < MAX_FAMILIES; i++)
		forget(&a->kin[i]);
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
static const struct track *find(const struct adapt *a, int type)
{
	for (size_t i = 0; type >= 0 && i < a->max_types && a->track[i].used_at; i++)
		if (a->track[i].type == type)
			return &a->track[i];
	return NULL;
}

static const struct track *find_family(const struct adapt *a, struct adapt_who who)
{
	for (size_t i = 0; who.family && i < MAX_FAMILIES && a->kin[i].used_at; i++)
		if (a->kin[i].family == who.family && a->kin[i].type == who.type)
			return &a->kin[i];
	return NULL;
}

/* The one of this type and family among n, or a free one, or the one unused for longest. */
static struct track *claim(struct track *track, size_t n, int type, uint64_t family)
{
	struct track *oldest = &track[0];

	for (size_t i = 0; i < n; i++) {
		struct track *t = &track[i];

		if (t->used_at && t->type == type && t->family == family)
			return t;
		if (t->used_at < oldest->used_at)
			oldest = t;
	}
	forget(oldest);
	oldest->type = type;
	oldest->family = family;
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

static struct user_count *count_of(struct adapt *a, uint32_t user)
{
	size_t mask = count_slots(a) - 1, at = (user * 0x9e3779b1u) & mask;

	while (a->count[at].n && a->count[at].user != user)
		at = (at + 1) & mask;
	a->count[at].user = user;
	return &a->count[at];
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
static void take_latest(struct adapt *a, struct track *t)
{
	size_t n = in_window(a, t), most = t->mixed ? 2 * a->recent : a->recent;
	size_t wanted = n < most ? n : most;

	t->n_latest = 0;
	memset(t->n_top, 0, sizeof t->n_top);
	if (t->mixed) {
		memset(a->count, 0, count_slots(a) * sizeof *a->count);
		for (size_t i = 0; i < n; i++)
			count_of(a, t->user[i])->n++;
	}
	for (size_t i = 0; i < n && (t->mixed || i < wanted); i++) { /* from the newest on */
		size_t at = (size_t)((t->n - 1 - i) % a->window);
		struct user_count *of = t->mixed ? count_of(a, t->user[at]) : NULL;

		/* rounded up: a user with a single score has a say */
		if (of && of->taken >= (of->n * wanted + n - 1) / n)
			continue;
		if (of)
			of->taken++;
		a->scratch[t->n_latest++] = t->score[at];
	}
	if (!t->mixed) {
		t->top[0] = t->user[(t->n - 1) % a->window];
		t->n_top[0] = t->n_latest;
	}
	for (size_t i = 0; t->mixed && i < count_slots(a); i++)
		if (a->count[i].taken)
			note_top(t, a->count[i].user, a->count[i].taken);
	t->median = stats_median(a->scratch, t->n_latest);
}

/* Are there others in the window, of which this user has the newest score? */
static bool has_others(const struct adapt *a, const struct track *t, uint32_t user)
{
	size_t n = in_window(a, t);

	if (!t->mixed) /* all others are of one user */
		return n > 1 && t->user[(t->n - 2) % a->window] != user;
	for (size_t i = 0; i < n; i++)
		if (t->user[i] != user)
			return true;
	return false;
}

static void add_score(struct adapt *a, struct track *t, uint32_t user, double score, double around)
{
	size_t n = in_window(a, t), at = (size_t)(t->n % a->window), to;

	if (n == a->window) {
		size_t from = place_of(t->sorted, n, t->around[at]);

		while (t->mixed && t->sorted_user[from] != t->user[at])
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
	t->mixed = has_others(a, t, user);
	take_latest(a, t);
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
 * well: with few scores a single far one would pass for a shift. mixed: as far as it could be a fifth of the
 * scores that lie, it is taken off as well; the median of normal scores then moves by HOSTILE spreads. */
static double drawn_to(double parent, const struct adapt *a, double median, size_t n_scores, double spread,
		       bool mixed)
{
	double n = n_scores < a->recent ? (double)n_scores : (double)a->recent, away = median - parent;
	double lies = mixed ? HOSTILE * spread : 0.0;
	double chance = 2.0 * (1.5708 * spread * spread / (double)n_scores + lies * lies),
	       square = away * away; /* n = 0: not finite, or NaN */

	if (!(square > chance)) /* nor where the spread is not known */
		return parent;
	return parent + away * (1.0 - chance / square) * n / (n + 10.0 * (1.0 - n / (double)a->recent));
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

static double clamp(double v, double low, double high)
{
	return fmin(fmax(v, low), high);
}

/* The user's own latest scores, of which the caller's array has room for `recent`. */
static size_t own_latest(const struct adapt *a, const struct track *t, uint32_t user, double *out)
{
	size_t n = in_window(a, t), n_own = 0;

	for (size_t i = 0; i < n && n_own < a->recent; i++) {
		size_t at = (size_t)((t->n - 1 - i) % a->window);

		if (t->user[at] == user)
			out[n_own++] = t->score[at];
	}
	return n_own;
}

/* Does the user have a score in the window? Needed only where there are scores of several users: where one
 * user has all, the newest is one of them. */
static bool has_own(const struct adapt *a, const struct track *t, uint32_t user)
{
	size_t n = in_window(a, t);

	for (size_t i = 0; i < n; i++)
		if (t->user[(t->n - 1 - i) % a->window] == user)
			return true;
	return false;
}

static double bias_of(double parent, const struct adapt *a, const struct track *t, uint32_t user)
{
	double own = spread_of(a, t), spread = isnan(own) ? spread_of(a, &a->pool) : own;
	double latest[ADAPT_MAX_RECENT];
	size_t n;

	if (!t->n)
		return parent;
	/* Who has none to compare with takes the spread to be the model's at least: one who repeats a lie
	 * makes the scores of all look closer together than they are. */
	if (!isnan(a->spread) && spread < a->spread && !has_own(a, t, user))
		spread = a->spread;
	if (trusted(t, user))
		return drawn_to(parent, a, t->median, t->n < a->recent ? (size_t)t->n : t->n_latest, spread,
				t->mixed);
	n = own_latest(a, t, user, latest);
	return n ? drawn_to(parent, a, stats_median(latest, n), n, spread_known(a), false) : parent;
}

/* Of all, of the type and of the family, as far as there are scores (NULL: none). */
static double log_bias(const struct adapt *a, const struct track *type, const struct track *family,
		       uint32_t user)
{
	double bias = a->no_bias ? 0.0 : bias_of(0.0, a, &a->pool, user);

	if (!a->no_bias && type)
		bias = bias_of(bias, a, type, user);
	return a->no_bias || !family ? bias : bias_of(bias, a, family, user);
}

double adapt_bias(const struct adapt *a, struct adapt_who who)
{
	return exp(log_bias(a, find(a, who.type), find_family(a, who), who.user));
}

double adapt_bias_shown(const struct adapt *a, int type)
{
	const struct track *t = find(a, type);

	return exp(log_bias(a, t, NULL, t && t->n ? t->top[0] : a->pool.top[0]));
}

/* ---- observing ---- */

bool adapt_observe(struct adapt *a, struct adapt_who who, double predicted_s, double actual_s)
{
	struct track *t, *f;
	double score, around;

	if (!(predicted_s > 0.0 && actual_s > 0.0 && isfinite(predicted_s) && isfinite(actual_s)))
		return false;
	a->observed++;
	t = who.type >= 0 ? claim(a->track, a->max_types, who.type, 0) : NULL;
	f = who.family ? claim(a->kin, MAX_FAMILIES, who.type, who.family) : NULL;
	score = log(actual_s) - log(predicted_s); /* the ratio itself may not fit */
	around = score - log_bias(a, t, f, who.user);
	add_score(a, &a->pool, who.user, score, around);
	if (t) {
		add_score(a, t, who.user, score, around);
		t->used_at = a->observed;
	}
	if (f) {
		add_score(a, f, who.user, score, around);
		f->used_at = a->observed;
	}
	return true;
}

/* ---- the quantile ---- */

/* 0 while there are fewer scores than a confidence needs, 1 when half a window of them is there, or twice
 * those needed. */
static double weight_of(const struct adapt *a, size_t n, size_t needed)
{
	size_t enough = a->window / 2;

	if (needed > n)
		return 0.0;
	if (enough < 2 * needed)
		enough = 2 * needed < a->window ? 2 * needed : a->window;
	return n >= enough ? 1.0 : (double)(n - needed + 1) / (double)(enough - needed + 1);
}

/* The scores of a user among those of a window, ascending; all of them where nobody else has any. */
static size_t own_sorted(const struct adapt *a, const struct track *t, uint32_t user, double *room,
			 const double **out)
{
	size_t n = in_window(a, t), n_own = 0;

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
	double limit = trusted(t, user) ? ADAPT_OTHERS * spread_known(a) : 0.0, weight, all;
	double room[ADAPT_MAX_WINDOW];
	size_t n = in_window(a, t);
	const double *own;
	size_t n_own = own_sorted(a, t, user, room, &own);

	if (n_own == n)
		return rank_score(own, n, confidence);
	weight = weight_of(a, n_own, conformal_needed(confidence));
	all = rank_score(t->sorted, n, confidence);
	if (!isnan(model_q))
		all = clamp(all, model_q - limit, model_q + limit);
	return weight > 0.0 ? weight * rank_score(own, n_own, confidence) + (1.0 - weight) * all : all;
}

bool adapt_quantile(const struct adapt *a, struct adapt_who who, double confidence, double model_q,
		    double *out_q, enum adapt_source *out_source)
{
	const struct track *t = find(a, who.type), *f = find_family(a, who);
	double own, kin, pooled, q = model_q, model = isnan(model_q) ? 0.0 : 1.0;
	size_t needed;

	*out_q = NAN;
	*out_source = ADAPT_NONE;
	if (!(confidence > 0.0 && confidence < 1.0))
		return false;
	if (a->no_quantile)
		t = f = NULL;
	needed = conformal_needed(confidence);
	pooled = a->no_quantile ? 0.0 : weight_of(a, in_window(a, &a->pool), needed);
	own = t ? weight_of(a, in_window(a, t), needed) : 0.0;
	kin = f ? weight_of(a, in_window(a, f), needed) : 0.0;
	if (pooled > 0.0) {
		pooled = model > 0.0 ? pooled : 1.0; /* nothing else is there */
		q = pooled * quantile(a, &a->pool, who.user, confidence, model_q) +
		    (pooled < 1.0 ? (1.0 - pooled) * model_q : 0.0);
	}
	if (own > 0.0) /* what a type has the pool has, so q is a number */
		q = own * quantile(a, t, who.user, confidence, model_q) + (1.0 - own) * q;
	if (kin > 0.0)
		q = kin * quantile(a, f, who.user, confidence, model_q) + (1.0 - kin) * q;
	if (isnan(q))
		return false;
	own = 1.0 - (1.0 - own) * (1.0 - kin);
	pooled *= 1.0 - own;
	model *= 1.0 - own - pooled;
	*out_q = q;
	*out_source = own >= fmax(pooled, model) ? ADAPT_TYPE : pooled >= model ? ADAPT_POOLED : ADAPT_MODEL;
	return true;
}
