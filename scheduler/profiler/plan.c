/* Plans: which runs a design gives, in which order, and what a run is called. See plan.h. */
#include "scheduler/profiler/plan.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/text/text.h"

#define LHS_DRAWS 64 /* the draw with the fewest settings twice is kept */
#define SEED_BITS 30 /* programs that keep a seed in 32 bits take it */

/* ---- settings ---- */

size_t profile_grid_size(const struct profile_design *d)
{
	size_t n = 1;

	for (size_t i = 0; i < d->n_factors; i++) {
		if (n > PROFILE_MAX_GRID / d->factor[i].n_levels)
			return SIZE_MAX;
		n *= d->factor[i].n_levels;
	}
	return n;
}

size_t profile_settings_planned(const struct profile_design *d)
{
	if (d->kind == PROFILE_LHS)
		return d->lhs_runs;
	if (d->kind == PROFILE_FULL)
		return profile_grid_size(d);
	return (size_t)1 << d->n_factors; /* at most PROFILE_MAX_FACTORS of them */
}

void profile_grid_at(const struct profile_design *d, size_t setting, uint16_t *out_level)
{
	for (size_t i = d->n_factors; i-- > 0;) { /* the last factor turns fastest */
		out_level[i] = (uint16_t)(setting % d->factor[i].n_levels);
		setting /= d->factor[i].n_levels;
	}
}

static uint32_t setting_of(const struct profile_design *d, const uint16_t *level)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_factors; i++)
		n = n * d->factor[i].n_levels + level[i];
	return (uint32_t)n;
}

/* Of numbers the smallest and the largest, of words the first and the last. */
static uint16_t extreme(const struct profile_factor *f, bool high)
{
	size_t best = high ? f->n_levels - 1 : 0;

	for (size_t i = 0; f->number && i < f->n_levels; i++) {
		if (high ? atof(f->level[i]) > atof(f->level[best])
			 : atof(f->level[i]) < atof(f->level[best]))
			best = i;
	}
	return (uint16_t)best;
}

static int by_setting(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static size_t distinct(uint32_t *v, size_t n)
{
	size_t k = n > 0;

	qsort(v, n, sizeof *v, by_setting);
	for (size_t i = 1; i < n; i++)
		k += v[i] != v[i - 1];
	return k;
}

/* A Latin hypercube on levels (McKay, Beckman, Conover, Technometrics 21, 1979): run r has stratum perm(r)
 * of N, and the levels divide the strata evenly, so each level is used N / n_levels times, rounded either
 * way. */
static void lhs_draw(const struct profile_design *d, struct rng *rng, uint32_t *perm,
		     struct profile_point *out)
{
	size_t n = d->lhs_runs;

	for (size_t f = 0; f < d->n_factors; f++) {
		for (size_t i = 0; i < n; i++)
			perm[i] = (uint32_t)i;
		rng_shuffle(rng, perm, n);
		for (size_t i = 0; i < n; i++)
			out[i].level[f] = (uint16_t)((uint64_t)perm[i] * d->factor[f].n_levels / n);
	}
	for (size_t i = 0; i < n; i++)
		out[i].setting = setting_of(d, out[i].level);
}

static int lhs_make(const struct profile_design *d, struct profile_point *out, struct err *err)
{
	size_t n = d->lhs_runs, most = 0;
	struct profile_point *drawn = mem_calloc(n, sizeof *drawn);
	uint32_t *perm = mem_array(n, sizeof *perm);
	struct rng rng = rng_stream(d->seed, UINT64_MAX);

	for (int k = 0; k < LHS_DRAWS && drawn && perm && most < n; k++) {
		size_t settings;

		lhs_draw(d, &rng, perm, drawn);
		for (size_t i = 0; i < n; i++)
			perm[i] = drawn[i].setting;
		settings = distinct(perm, n);
		if (settings > most) {
			most = settings;
			memcpy(out, drawn, n * sizeof *drawn);
		}
	}
	free(drawn);
	free(perm);
	return most ? 0 : err_nomem(err, "the plan");
}

static int by_setting_and_order(const void *a, const void *b)
{
	const struct profile_point *x = *(const struct profile_point *const *)a,
				   *y = *(const struct profile_point *const *)b;

	if (x->setting != y->setting)
		return x->setting < y->setting ? -1 : 1;
	return (x > y) - (x < y);
}

/* A setting that a hypercube has twice is measured twice as often: its runs are counted through, so that no
 * two rows of the table are the same run. */
static int number_replications(struct profile_plan *p, struct err *err)
{
	struct profile_point **at = mem_array(p->n, sizeof *at);

	if (!at)
		return err_nomem(err, "the plan");
	for (size_t i = 0; i < p->n; i++)
		at[i] = &p->run[i];
	qsort(at, p->n, sizeof *at, by_setting_and_order);
	for (size_t i = 0; i < p->n; i++)
		at[i]->replication = i && at[i]->setting == at[i - 1]->setting ? at[i - 1]->replication + 1
									       : 1;
	free(at);
	return 0;
}

/* Do jobs of these two load the machine in different ways: with other cpus, or, where all have as many, as
 * other programs would? */
static bool unlike(const struct profile_design *d, const struct profile_point *a,
		   const struct profile_point *b)
{
	const struct profile_factor *cpus = profile_factor_find(d, "cpus");
	bool words = false;

	for (size_t f = 0; f < d->n_factors; f++) {
		if (&d->factor[f] == cpus)
			return a->level[f] != b->level[f];
		words |= !d->factor[f].number && a->level[f] != b->level[f];
	}
	return words;
}

/* Copies of one job show how it runs beside equal jobs. Jobs of different types and widths share the cpus in
 * other ways: a job whose processes wait for each other loses more to a narrow neighbour than an even share
 * of the cpus would cost it. */
static int add_mixed(const struct profile_design *d, const struct profile_point *one, size_t n,
		     struct profile_plan *p, struct err *err)
{
	struct rng rng = rng_stream(d->seed, UINT64_MAX - 1);
	size_t grid = profile_grid_size(d), i = 0;

	for (size_t tries = 0; i < d->mixed && tries < 1000 * d->mixed; tries++) {
		const struct profile_point *of = &one[rng_below(&rng, (uint32_t)n)];
		const struct profile_point *beside = &one[rng_below(&rng, (uint32_t)n)];
		struct profile_point *run = &p->run[p->n];

		if (profile_jobs(d, of->level) < 2 || !unlike(d, of, beside))
			continue;
		*run = *of;
		run->setting = (uint32_t)(grid + i++);
		run->replication = (uint32_t)d->replications + 1;
		run->mixed = true;
		memcpy(run->beside, beside->level, sizeof run->beside);
		p->n++;
	}
	return i == d->mixed ? 0
			     : err_fail(err, ERR_ARG,
					"mixed runs need njobs of 2 or more, and settings that differ in "
					"their cpus, or in words where the cpus are fixed");
}

#define NEIGHBOUR_RUNS 2 /* beside each */
#define NEIGHBOUR_SHARE 8 /* one of so many runs at most is beside a neighbour, but one for each may be */

static uint16_t middle(const struct profile_factor *f)
{
	return (uint16_t)((f->n_levels - 1) / 2);
}

/* The i-th setting beside a neighbour: two jobs, as few epochs as there are, another batch each time. False:
 * the design has no runs of two jobs, whose law the run could be compared with. */
static bool neighbour_setting(const struct profile_design *d, size_t i, struct profile_point *out)
{
	bool two = false;

	for (size_t f = 0; f < d->n_factors; f++) {
		const struct profile_factor *at = &d->factor[f];

		out->level[f] = middle(at);
		if (!strcmp(at->name, "epochs"))
			out->level[f] = extreme(at, false);
		if (!strcmp(at->name, "batch") && i)
			out->level[f] = extreme(at, i % 2);
		for (size_t l = 0; l < at->n_levels && !strcmp(at->name, "njobs"); l++) {
			if (!strcmp(at->level[l], "2")) {
				out->level[f] = (uint16_t)l;
				two = true;
			}
		}
	}
	return two || profile_jobs(d, out->level) == 2;
}

/* Beside jobs of other types: what these do to the job is not what copies of it do. */
static void add_neighbours(const struct profile_design *d, struct profile_plan *p)
{
	size_t grid = profile_grid_size(d) + d->mixed, most = p->n / NEIGHBOUR_SHARE, n = 0;

	for (size_t i = 0; i < NEIGHBOUR_RUNS; i++) {
		for (size_t k = 0; k < d->n_neighbours && (!i || n < most); k++) {
			const struct profile_design *other = d->neighbour[k].design;
			struct profile_point run = { .mixed = true, .neighbour = (uint32_t)k + 1 };

			if (!neighbour_setting(d, i, &run))
				return;
			run.setting = (uint32_t)(grid + i * d->n_neighbours + k);
			run.replication = (uint32_t)d->replications + 2;
			for (size_t f = 0; f < other->n_factors; f++)
				run.beside[f] = middle(&other->factor[f]);
			p->run[p->n++] = run;
			n++;
		}
	}
}

int profile_plan_make(const struct profile_design *d, struct profile_plan *out, struct err *err)
{
	size_t n = profile_settings_planned(d);
	struct profile_point *one = mem_calloc(n, sizeof *one);
	struct profile_plan p = { .run = mem_calloc(n * d->replications + d->mixed +
							    NEIGHBOUR_RUNS * d->n_neighbours,
						    sizeof *p.run) };
	uint32_t *order = mem_array(n, sizeof *order);
	int rc = one && p.run && order ? 0 : err_nomem(err, "the plan");

	if (!rc && d->kind == PROFILE_LHS)
		rc = lhs_make(d, one, err);
	for (size_t i = 0; i < n && !rc && d->kind != PROFILE_LHS; i++) {
		if (d->kind == PROFILE_FULL)
			profile_grid_at(d, i, one[i].level);
		for (size_t f = 0; f < d->n_factors && d->kind == PROFILE_TWO_LEVEL; f++)
			one[i].level[f] = extreme(&d->factor[f], i >> f & 1);
		one[i].setting = setting_of(d, one[i].level);
	}
	for (size_t r = 0; r < d->replications && !rc; r++) {
		struct rng rng = rng_stream(d->seed, r);

		for (size_t i = 0; i < n; i++)
			order[i] = (uint32_t)i;
		rng_shuffle(&rng, order, n);
		for (size_t i = 0; i < n; i++) {
			p.run[p.n] = one[order[i]];
			p.run[p.n++].replication = (uint32_t)r + 1;
		}
	}
	if (!rc && d->kind == PROFILE_LHS)
		rc = number_replications(&p, err);
	if (!rc)
		rc = add_mixed(d, one, n, &p, err);
	if (!rc)
		add_neighbours(d, &p);
	if (!rc) {
		for (size_t i = 0; i < n; i++)
			order[i] = one[i].setting;
		p.n_settings = distinct(order, n);
		*out = p;
	} else {
		free(p.run);
	}
	free(order);
	free(one);
	return rc;
}

void profile_plan_release(struct profile_plan *p)
{
	if (!p)
		return;
	free(p->run);
	*p = (struct profile_plan){ 0 };
}

/* ---- values at a point ---- */

const struct profile_factor *profile_factor_find(const struct profile_design *d, const char *name)
{
	for (size_t i = 0; i < d->n_factors + d->n_fixed; i++) {
		if (!strcmp(profile_factor_at(d, i)->name, name))
			return profile_factor_at(d, i);
	}
	return NULL;
}

const char *profile_value(const struct profile_design *d, const uint16_t *level, const char *name)
{
	const struct profile_factor *f = profile_factor_find(d, name);
	bool varies = f && f >= d->factor && f < d->factor + d->n_factors;

	return f ? f->level[varies ? level[f - d->factor] : 0] : NULL;
}

size_t profile_jobs(const struct profile_design *d, const uint16_t *level)
{
	const char *text = profile_value(d, level, "njobs");
	uint64_t n = 1;

	if (text)
		text_uint64(text, &n);
	return (size_t)n;
}

size_t profile_copies(const struct profile_design *d, const struct profile_point *p)
{
	return p->mixed ? 1 : profile_jobs(d, p->level);
}

const struct profile_design *profile_beside(const struct profile_design *d, const struct profile_point *p)
{
	return p->neighbour ? d->neighbour[p->neighbour - 1].design : d;
}

void profile_put_beside(const struct profile_design *d, const struct profile_point *p, struct strbuf *out)
{
	const struct profile_design *other = profile_beside(d, p);
	bool differs = p->neighbour;
	const char *between = p->neighbour ? " " : "";

	for (size_t f = 0; f < d->n_factors && p->mixed && !p->neighbour; f++)
		differs |= !d->factor[f].number && p->level[f] != p->beside[f];
	if (p->neighbour)
		strbuf_puts(out, d->neighbour[p->neighbour - 1].name);
	for (size_t i = 0; differs && i < other->n_factors + other->n_fixed; i++) {
		const struct profile_factor *f = profile_factor_at(other, i);
		const char *value = f->level[i < other->n_factors ? p->beside[i] : 0];

		if (f->number || strpbrk(value, " ,="))
			continue;
		strbuf_printf(out, "%s%s=%s", between, f->name, value);
		between = ",";
	}
}

double profile_processes(const struct profile_design *d, const struct profile_point *p)
{
	const char *own = profile_value(d, p->level, "cpus"),
		   *other = profile_value(profile_beside(d, p), p->beside, "cpus");
	double jobs = (double)profile_jobs(d, p->level);

	if (!own)
		return 0.0;
	return p->mixed ? atof(own) + (other ? atof(other) : 1.0) * (jobs - 1.0) : atof(own) * jobs;
}

static void put_levels(const struct profile_design *d, const uint16_t *level, struct strbuf *out)
{
	for (size_t i = 0; i < d->n_factors; i++)
		strbuf_printf(out, "%s%s=%s", i ? " " : "", d->factor[i].name, d->factor[i].level[level[i]]);
}

void profile_describe(const struct profile_design *d, const struct profile_point *p, struct strbuf *out)
{
	put_levels(d, p->level, out);
	if (p->mixed) {
		strbuf_puts(out, " beside ");
		if (p->neighbour)
			strbuf_puts(out, d->neighbour[p->neighbour - 1].name);
		else
			put_levels(d, p->beside, out);
	}
	if (d->n_factors == 0)
		strbuf_puts(out, "one setting");
}

uint64_t profile_seed(const struct profile_design *d, const struct profile_point *p, size_t copy)
{
	struct rng rng = rng_stream((uint64_t)p->setting << 32 | p->replication, copy);

	return d->seed + (rng_next(&rng) >> (64 - SEED_BITS));
}
