/* A campaign with a budget: which run comes next, and what the time has bought. Runs are taken by what they
 * tell and not in the order of the plan. First the plain case: one job, the middle of everything, and the
 * fewest epochs above one, so that the run tells its start from its epochs. Then each factor by itself, then
 * two at a time, and replications last; among equals the short ones first, and so larger batches before
 * smaller ones. The longest run that users will ask for comes after each factor by itself, if it has to be
 * cut; a quarter of the time is kept for it. See campaign.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/profiler/campaign.h"

/* The level of a factor in the plain case. */
static uint16_t plain_level(const struct profile_factor *f)
{
	bool least = !strcmp(f->name, "epochs") || !strcmp(f->name, "njobs");
	size_t best = f->number ? 0 : (f->n_levels - 1) / 2;

	for (size_t l = 0; f->number && l < f->n_levels; l++) {
		double v = atof(f->level[l]);
		size_t below = 0, best_below = 0;

		for (size_t i = 0; i < f->n_levels; i++) {
			below += atof(f->level[i]) < v;
			best_below += atof(f->level[i]) < atof(f->level[best]);
		}
		if (least ? below < best_below : below == (f->n_levels - 1) / 2)
			best = l;
	}
	return (uint16_t)best;
}

/* The fewest epochs from which a start-up can be told; the level of the plain case where there are none. */
static uint16_t first_level(const struct profile_factor *f)
{
	uint16_t best = plain_level(f);

	for (size_t l = 0; l < f->n_levels && !strcmp(f->name, "epochs"); l++) {
		double v = atof(f->level[l]), of_best = atof(f->level[best]);

		if (v > 1.0 && (!(of_best > 1.0) || v < of_best))
			best = (uint16_t)l;
	}
	return best;
}

static bool is_first(const struct profile_design *d, const struct profile_point *p)
{
	bool is = !p->mixed && p->replication == 1;

	for (size_t f = 0; f < d->n_factors; f++)
		is &= p->level[f] == first_level(&d->factor[f]);
	return is;
}

#define ONE_FACTOR 2 /* that differs from the plain case ... */

/* ... and a little more for jobs beside it: most jobs that are asked for are alone. */
static size_t distance(const struct profile_design *d, const struct profile_point *p)
{
	size_t n = 0;

	for (size_t f = 0; f < d->n_factors; f++)
		if (p->level[f] != plain_level(&d->factor[f]))
			n += ONE_FACTOR + !strcmp(d->factor[f].name, "njobs");
	return n;
}

struct worth { /* smaller is sooner */
	uint32_t replication;
	size_t distance;
	double takes_s; /* NaN: not known */
};

static bool sooner(const struct worth *a, const struct worth *b)
{
	if (a->replication != b->replication)
		return a->replication < b->replication;
	if (a->distance != b->distance)
		return a->distance < b->distance;
	return a->takes_s < b->takes_s;
}

/* How long a run must go on to be of use: to its end, or to that of its first epoch. */
static double least_s(const struct profile_design *d, const struct profile_point *p, double takes_s)
{
	const char *epochs = profile_value(d, p->level, "epochs");

	return epochs && atof(epochs) > 1.0 ? takes_s / atof(epochs) : takes_s;
}

/* What a user will ask for, where it does not fit into the time that is left: cut, it shows how time grows
 * with the epochs, which no short run does. SIZE_MAX: it was measured, or it fits. */
static size_t long_one(const struct profile_campaign *k, double left_s)
{
	uint32_t setting = profile_plain_case(&k->design).setting;
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < k->plan.n; i++) {
		const struct profile_point *p = &k->plan.run[i];
		double takes_s = profile_estimate_run_s(&k->estimate, &k->design, p);

		if (p->mixed || p->setting != setting)
			continue;
		if (k->journal.run[i].done)
			return SIZE_MAX;
		if (takes_s > left_s && least_s(&k->design, p, takes_s) < left_s && found == SIZE_MAX)
			found = i;
	}
	return found;
}

/* Its curve has what this shorter run would show. */
static bool is_in_longer(const struct profile_campaign *k, const struct profile_point *p)
{
	const char *epochs = profile_value(&k->design, p->level, "epochs");

	for (size_t i = 0; i < k->plan.n && epochs && !p->mixed; i++) {
		const struct profile_point *other = &k->plan.run[i];
		const struct profile_outcome *o = &k->journal.run[i];
		bool same = o->done && o->status == PROFILE_OK && !other->mixed;

		for (size_t f = 0; f < k->design.n_factors; f++)
			same &= p->level[f] == other->level[f] || !strcmp(k->design.factor[f].name, "epochs");
		if (same && o->n_copies && (double)o->copy[0].n_epochs > atof(epochs))
			return true;
	}
	return false;
}

#define LONG_SHARE 0.25 /* of the budget is kept for it in any case */

size_t profile_budget_next(const struct profile_campaign *k, double left_s)
{
	size_t best = SIZE_MAX, long_run = long_one(k, left_s);
	struct worth of_best = { 0 };

	for (size_t i = 0; i < k->plan.n && !k->journal.n_done; i++)
		if (is_first(&k->design, &k->plan.run[i]))
			return i;
	for (size_t i = 0; i < k->plan.n; i++) {
		const struct profile_point *p = &k->plan.run[i];
		double takes_s = profile_estimate_run_s(&k->estimate, &k->design, p);
		struct worth w = { p->replication + is_in_longer(k, p), distance(&k->design, p), takes_s };

		if (k->journal.run[i].done || takes_s > left_s)
			continue;
		if (best == SIZE_MAX || sooner(&w, &of_best)) {
			best = i;
			of_best = w;
		}
	}
	if (long_run != SIZE_MAX && (best == SIZE_MAX || of_best.replication > 1 ||
				     of_best.distance > ONE_FACTOR || left_s <= LONG_SHARE * k->budget_s))
		return long_run;
	return best;
}

struct profile_point profile_plain_case(const struct profile_design *d)
{
	struct profile_point p = { .replication = 1 };
	size_t setting = 0;

	for (size_t f = 0; f < d->n_factors; f++) {
		p.level[f] = plain_level(&d->factor[f]);
		for (size_t l = 0; l < d->factor[f].n_levels && !strcmp(d->factor[f].name, "epochs"); l++) {
			if (atof(d->factor[f].level[l]) > atof(d->factor[f].level[p.level[f]]))
				p.level[f] = (uint16_t)l;
		}
		setting = setting * d->factor[f].n_levels + p.level[f];
	}
	p.setting = (uint32_t)setting;
	return p;
}
