/* Judges the runs of a journal, writes its tables and estimates the time that is left. See table.h. */
#include "scheduler/profiler/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/mem.h"

/* ---- verdicts ---- */

#define SAME_OTHER_LOAD 0.5 /* processes; beside more or less other work, times are not expected to agree */

struct measured {
	uint32_t setting;
	uint32_t run;
	double time_s;
};

static int by_setting(const void *a, const void *b)
{
	const struct measured *x = a, *y = b;

	if (x->setting != y->setting)
		return x->setting < y->setting ? -1 : 1;
	return (x->time_s > y->time_s) - (x->time_s < y->time_s);
}

static bool beside_the_same_work(const struct profile_journal *j, const struct measured *m, size_t n)
{
	double low = INFINITY, high = -INFINITY;

	for (size_t i = 0; i < n; i++) { /* fmin and fmax pass over what was not measured */
		low = fmin(low, j->run[m[i].run].other_load);
		high = fmax(high, j->run[m[i].run].other_load);
	}
	return !(high - low > SAME_OTHER_LOAD);
}

/* The n replications of one setting, by time. */
static void judge_setting(const struct profile_journal *j, const struct measured *m, size_t n,
			  struct profile_verdict *v)
{
	double mean = 0.0, squares = 0.0, middle, far = -1.0;
	size_t farthest = 0;

	if (n < 2)
		return;
	for (size_t i = 0; i < n; i++)
		mean += m[i].time_s / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (m[i].time_s - mean) * (m[i].time_s - mean);
	v->cv[v->n_cv++] = sqrt(squares / (double)(n - 1)) / mean;
	if (j->design->max_spread <= 0.0 || (m[n - 1].time_s - m[0].time_s) / mean <= j->design->max_spread ||
	    !beside_the_same_work(j, m, n))
		return;
	middle = 0.5 * (m[(n - 1) / 2].time_s + m[n / 2].time_s);
	for (size_t i = 0; i < n; i++) {
		bool may = j->run[m[i].run].tries < j->design->tries;

		v->status[m[i].run] = PROFILE_UNSTABLE;
		if (may && fabs(m[i].time_s - middle) > far) {
			far = fabs(m[i].time_s - middle);
			farthest = i;
		}
	}
	if (far >= 0.0)
		v->apart[m[farthest].run] = true;
}

int profile_judge(const struct profile_journal *j, struct profile_verdict *out, struct err *err)
{
	size_t n = j->plan->n, k = 0;
	struct profile_verdict v = { .status = mem_calloc(n, sizeof *v.status),
				     .apart = mem_calloc(n, sizeof *v.apart),
				     .cv = mem_calloc(n, sizeof *v.cv) };
	struct measured *m = mem_calloc(n, sizeof *m);

	if (!v.status || !v.apart || !v.cv || !m) {
		profile_verdict_release(&v);
		free(m);
		return err_nomem(err, "%zu runs", n);
	}
	for (size_t i = 0; i < n; i++) {
		const struct profile_outcome *o = &j->run[i];

		v.status[i] = o->status;
		if (!o->done || o->status != PROFILE_OK || profile_outcome_cut(o))
			continue;
		if (j->design->max_spread > 0.0 && profile_outcome_spread(o) > j->design->max_spread) {
			v.status[i] = PROFILE_UNSTABLE;
			v.apart[i] = o->tries < j->design->tries;
			continue;
		}
		m[k++] = (struct measured){ j->plan->run[i].setting, (uint32_t)i, profile_outcome_time(o) };
	}
	qsort(m, k, sizeof *m, by_setting);
	for (size_t i = 0, to; i < k; i = to) {
		for (to = i + 1; to < k && m[to].setting == m[i].setting;)
			to++;
		judge_setting(j, m + i, to - i, &v);
	}
	for (size_t i = 0; i < n; i++) {
		if (!j->run[i].done)
			continue;
		v.n_ok += v.status[i] == PROFILE_OK;
		v.n_failed += v.status[i] == PROFILE_FAILED;
		v.n_timeout += v.status[i] == PROFILE_TIMEOUT;
		v.n_unstable += v.status[i] == PROFILE_UNSTABLE;
	}
	free(m);
	*out = v;
	return 0;
}

void profile_verdict_release(struct profile_verdict *v)
{
	if (!v)
		return;
	free(v->status);
	free(v->apart);
	free(v->cv);
	*v = (struct profile_verdict){ 0 };
}

size_t profile_repeat(const struct profile_journal *j, const struct profile_verdict *v)
{
	for (size_t i = 0; i < j->plan->n; i++) {
		if (v->apart[i])
			return i;
	}
	return SIZE_MAX;
}

/* ---- tables ---- */

/* The columns of the default schema come first, in its order. */
static const char *const first_column[] = { "network", "cpus", "njobs", "batch", "epochs", "samples", NULL };

static bool is_first(const char *name)
{
	for (size_t i = 0; first_column[i]; i++) {
		if (!strcmp(first_column[i], name))
			return true;
	}
	return false;
}

/* A copy that was cut is a run of as many epochs as it had. */
static void put_level(struct strbuf *out, const char *name, const char *level, const struct profile_copy *c)
{
	if (c && c->cut_epochs > 0.0 && !strcmp(name, "epochs"))
		csv_put_number(out, c->cut_epochs);
	else
		csv_put(out, level);
	strbuf_puts(out, ",");
}

/* The settings of a row, or their names where level is NULL; each followed by a comma. */
static void put_settings(const struct profile_design *d, const uint16_t *level, const struct profile_copy *c,
			 struct strbuf *out)
{
	static const uint16_t any[PROFILE_MAX_FACTORS];

	for (size_t i = 0; first_column[i]; i++) {
		const char *value = profile_value(d, level ? level : any, first_column[i]);

		if (!value)
			continue;
		put_level(out, first_column[i], level ? value : first_column[i], c);
	}
	for (size_t i = 0; i < d->n_factors + d->n_fixed; i++) {
		const struct profile_factor *f = profile_factor_at(d, i);

		if (is_first(f->name) || f->free)
			continue;
		put_level(out, f->name, level ? f->level[i < d->n_factors ? level[i] : 0] : f->name, c);
	}
}

static void put_number(struct strbuf *out, double v)
{
	char text[32];

	/* Six decimals are microseconds, or bytes of a megabyte; the rest is noise. */
	if (!isnan(v)) {
		snprintf(text, sizeof text, "%.6f", v);
		strbuf_puts(out, text);
	}
	strbuf_puts(out, ",");
}

/* The phases that some run told of, a bit each. */
static unsigned phases_told(const struct profile_journal *j)
{
	unsigned told = 0;

	for (size_t i = 0; i < j->plan->n; i++) {
		for (size_t c = 0; j->run[i].done && c < j->run[i].n_copies; c++)
			told |= j->run[i].copy[c].phases.told;
	}
	return told;
}

/* Is one of the runs that are done beside another kind of job? */
static bool has_beside(const struct profile_journal *j)
{
	struct strbuf text = { 0 };
	bool has = false;

	for (size_t i = 0; i < j->plan->n && !has; i++) {
		if (j->run[i].done)
			profile_put_beside(j->design, &j->plan->run[i], &text);
		has = text.len;
	}
	strbuf_release(&text);
	return has;
}

static void put_beside(const struct profile_journal *j, size_t run, struct strbuf *out)
{
	struct strbuf text = { 0 };

	profile_put_beside(j->design, &j->plan->run[run], &text);
	csv_put(out, strbuf_text(&text));
	strbuf_puts(out, ",");
	out->failed |= text.failed;
	strbuf_release(&text);
}

/* A copy that was cut may be of a setting that was measured as well: it is no replication of that. */
static uint32_t replication_of(const struct profile_journal *j, size_t run, const struct profile_copy *c)
{
	uint32_t own = j->plan->run[run].replication;

	return c->cut_epochs > 0.0 ? (uint32_t)(j->design->replications + 3 + run) : own;
}

void profile_put_table(const struct profile_journal *j, const struct profile_verdict *v, struct strbuf *out)
{
	const struct profile_design *d = j->design;
	static const uint16_t any[PROFILE_MAX_FACTORS];
	bool processes = profile_value(d, any, "cpus") != NULL, beside = has_beside(j);
	unsigned told = phases_told(j);

	put_settings(d, NULL, NULL, out);
	strbuf_printf(out, "time_s,accuracy,%sother_load,cpu_mean,iowait_mean,job_cpu_mean,job_iowait_mean,",
		      processes ? "processes," : "");
	for (size_t k = 0; k < N_PHASES; k++) {
		if (told & 1u << k)
			strbuf_printf(out, "%s,", phase_name[k]);
	}
	strbuf_printf(out, "%smax_rss_mb,replication,copy,status,started_at\n", beside ? "beside," : "");
	for (size_t i = 0; i < j->plan->n; i++) {
		const struct profile_outcome *o = &j->run[i];
		const struct profile_point *p = &j->plan->run[i];

		for (size_t c = 0; o->done && c < o->n_copies; c++) {
			const struct profile_copy *m = &o->copy[c];
			bool good = o->status == PROFILE_OK;

			put_settings(d, p->level, m, out);
			put_number(out, v->status[i] == PROFILE_OK ? m->time_s : NAN);
			put_number(out, good ? m->accuracy : NAN);
			if (processes)
				strbuf_printf(out, "%g,", profile_processes(d, p));
			put_number(out, o->other_load);
			put_number(out, o->cpu_mean);
			put_number(out, o->iowait_mean);
			put_number(out, m->job_cpu_mean);
			put_number(out, m->job_iowait_mean);
			for (size_t k = 0; k < N_PHASES; k++) {
				if (told & 1u << k)
					put_number(out, m->phases.told & 1u << k ? m->phases.s[k] : NAN);
			}
			if (beside)
				put_beside(j, i, out);
			put_number(out, m->max_rss_mb);
			strbuf_printf(out, "%u,%zu,%s,%s\n", replication_of(j, i, m), c + 1,
				      profile_status_name(v->status[i]), o->started_at);
		}
	}
}

void profile_put_curves(const struct profile_journal *j, const struct profile_verdict *v, struct strbuf *out)
{
	bool beside = has_beside(j);

	put_settings(j->design, NULL, NULL, out);
	strbuf_puts(out, beside ? "beside," : "");
	strbuf_puts(out, "replication,copy,status,epoch,elapsed_s,loss,accuracy\n");
	for (size_t i = 0; i < j->plan->n; i++) {
		const struct profile_outcome *o = &j->run[i];
		const struct profile_point *p = &j->plan->run[i];

		for (size_t c = 0; o->done && o->status == PROFILE_OK && c < o->n_copies; c++) {
			for (size_t e = 0; e < o->copy[c].n_epochs; e++) {
				const struct profile_epoch *at = &o->copy[c].epoch[e];

				put_settings(j->design, p->level, &o->copy[c], out);
				if (beside)
					put_beside(j, i, out);
				strbuf_printf(out, "%u,%zu,%s,%g,", replication_of(j, i, &o->copy[c]), c + 1,
					      profile_status_name(v->status[i]), at->epoch);
				put_number(out, at->elapsed_s);
				put_number(out, at->loss);
				csv_put_number(out, at->accuracy);
				strbuf_puts(out, "\n");
			}
		}
	}
}

/* ---- how long it will take ---- */

/* About the time from the first start to the last exit, because the copies start together. */
static double duration_s(const struct profile_outcome *o)
{
	double longest = 0.0;

	for (size_t i = 0; i < o->n_copies; i++)
		longest = fmax(longest, o->copy[i].time_s);
	return longest;
}

/* Time is in proportion to epochs, as far as nobody has measured it. */
static void guess_epochs(const struct profile_factor *f, const size_t *count, double *effect)
{
	for (size_t l = 0; l < f->n_levels; l++) {
		size_t near = SIZE_MAX;
		double least = INFINITY;

		for (size_t i = 0; i < f->n_levels && !count[l]; i++) {
			double away = fabs(log(atof(f->level[i]) / atof(f->level[l])));

			if (count[i] && away < least) {
				near = i;
				least = away;
			}
		}
		if (near != SIZE_MAX)
			effect[l] = effect[near] + log(atof(f->level[l]) / atof(f->level[near]));
	}
}

/* An iteration has a fixed part and one for its records, so a level that nobody has measured takes
 * c + d / batch, through the two nearest that were. With one of them it takes the longer of what it may: as
 * long for more records, in proportion to the iterations for fewer. A run that does not fit buys nothing. */
static void guess_batches(const struct profile_factor *f, const size_t *count, double *effect)
{
	for (size_t l = 0; l < f->n_levels; l++) {
		double batch = atof(f->level[l]), at[2] = { NAN, NAN }, took[2] = { NAN, NAN }, each;
		double away[2] = { INFINITY, INFINITY };

		for (size_t i = 0; i < f->n_levels && !count[l]; i++) {
			double far = fabs(log(atof(f->level[i]) / batch));
			size_t k = far < away[0] ? 0 : 1;

			if (!count[i] || !(far < away[1]))
				continue;
			if (!k)
				at[1] = at[0], took[1] = took[0], away[1] = away[0];
			at[k] = atof(f->level[i]), took[k] = exp(effect[i]), away[k] = far;
		}
		if (isnan(at[0]))
			continue;
		each = isnan(at[1]) ? batch < at[0] ? took[0] * at[0] : 0.0
				    : fmax((took[0] - took[1]) / (1.0 / at[0] - 1.0 / at[1]), 0.0);
		effect[l] = log(fmax(took[0] + each * (1.0 / batch - 1.0 / at[0]), 0.5 * took[0]));
	}
}

void profile_estimate_make(const struct profile_journal *j, struct profile_estimate *out)
{
	size_t count[PROFILE_MAX_FACTORS][PROFILE_MAX_LEVELS] = { { 0 } };
	double sum = 0.0;

	*out = (struct profile_estimate){ 0 };
	for (size_t i = 0; i < j->plan->n; i++) {
		bool whole = j->run[i].done && !profile_outcome_cut(&j->run[i]);
		double t = whole ? duration_s(&j->run[i]) : 0.0;

		if (!(t > 0.0))
			continue;
		out->n++;
		sum += log(t);
		for (size_t f = 0; f < j->design->n_factors; f++) {
			out->effect[f][j->plan->run[i].level[f]] += log(t);
			count[f][j->plan->run[i].level[f]]++;
		}
	}
	if (!out->n)
		return;
	out->mean_log = sum / (double)out->n;
	for (size_t f = 0; f < j->design->n_factors; f++) {
		for (size_t l = 0; l < j->design->factor[f].n_levels; l++) {
			double n = (double)count[f][l];

			out->effect[f][l] = n > 0.0 ? (out->effect[f][l] - n * out->mean_log) / (n + 1.0)
						    : 0.0;
		}
		if (j->design->factor[f].number && !strcmp(j->design->factor[f].name, "epochs"))
			guess_epochs(&j->design->factor[f], count[f], out->effect[f]);
		if (j->design->factor[f].number && !strcmp(j->design->factor[f].name, "batch"))
			guess_batches(&j->design->factor[f], count[f], out->effect[f]);
	}
}

double profile_estimate_run_s(const struct profile_estimate *e, const struct profile_design *d,
			      const struct profile_point *p)
{
	double sum = e->n ? e->mean_log : NAN;

	for (size_t f = 0; f < d->n_factors; f++)
		sum += e->effect[f][p->level[f]];
	return exp(sum);
}

double profile_estimate_left_s(const struct profile_estimate *e, const struct profile_journal *j)
{
	double left = 0.0;

	for (size_t i = 0; i < j->plan->n; i++) {
		if (!j->run[i].done)
			left += profile_estimate_run_s(e, j->design, &j->plan->run[i]);
	}
	return left;
}
