/* Coverage over time and over seeds: how many run times stayed within their bound among the first ten jobs
 * that started in a replication, the next, and so on; and in the replications where the fewest and the most
 * did. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/csv.h"
#include "common/mem.h"
#include "sim/report/chart.h"

static const size_t last_of[] = { 10, 25, 50, 100, 250, 500, 1000, SIZE_MAX }; /* jobs of each stretch */
#define STRETCHES (sizeof last_of / sizeof *last_of)
#define ROWS (STRETCHES + 2)

struct count {
	double runs, within;
};

struct coverage {
	const struct report_data *d;
	const struct report_job **job; /* with a bound, by replication and start */
	size_t n, replications;
	struct count *by_stretch; /* [stretch * replications + replication] */
	struct count *by_replication;
	char label[ROWS][64];
	struct interval value[ROWS];
	struct count count[ROWS];
	size_t n_rows;
};

static bool has_bound(const struct report_job *j)
{
	return (j->state == OUTCOME_MET || j->state == OUTCOME_MISSED || j->state == OUTCOME_DONE) &&
	       isfinite(j->upper_s) && isfinite(j->run_s) && isfinite(j->start_s);
}

static int by_start(const void *a, const void *b)
{
	const struct report_job *x = *(const struct report_job *const *)a,
				*y = *(const struct report_job *const *)b;

	if (x->replication != y->replication)
		return x->replication < y->replication ? -1 : 1;
	if (x->start_s != y->start_s)
		return x->start_s < y->start_s ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

static int collect(struct coverage *c, struct err *err)
{
	size_t rank = 0, replication = 0, stretch = 0;

	c->job = mem_calloc(c->d->n_jobs + 1, sizeof(struct report_job *));
	if (!c->job)
		return err_nomem(err, "a figure");
	for (size_t i = 0; i < c->d->n_jobs; i++)
		if (c->d->job[i].policy == c->d->focus && has_bound(&c->d->job[i]))
			c->job[c->n++] = &c->d->job[i];
	qsort(c->job, c->n, sizeof *c->job, by_start);
	for (size_t i = 0; i < c->n; i++)
		c->replications += !i || c->job[i]->replication != c->job[i - 1]->replication;
	c->by_stretch = mem_calloc(STRETCHES * (c->replications + 1), sizeof *c->by_stretch);
	c->by_replication = mem_calloc(c->replications + 1, sizeof *c->by_replication);
	if (!c->by_stretch || !c->by_replication)
		return err_nomem(err, "a figure");
	for (size_t i = 0; i < c->n; i++) {
		bool within = c->job[i]->run_s <= c->job[i]->upper_s;
		struct count *s;

		if (i && c->job[i]->replication != c->job[i - 1]->replication) {
			replication++;
			rank = stretch = 0;
		}
		if (++rank > last_of[stretch])
			stretch++;
		s = &c->by_stretch[stretch * c->replications + replication];
		s->runs++;
		s->within += within;
		c->by_replication[replication].runs++;
		c->by_replication[replication].within += within;
	}
	return 0;
}

static double share_of(const struct count *c)
{
	return c->runs > 0.0 ? c->within / c->runs : NAN;
}

/* Over replications where there are several, and they differ; else by the runs. */
static int add_stretch(struct coverage *c, size_t stretch, struct err *err)
{
	const struct count *of = &c->by_stretch[stretch * c->replications];
	double *share = mem_array(c->replications, sizeof *share);
	struct count all = { 0 };
	struct interval t;
	char *label = c->label[c->n_rows];

	if (!share)
		return err_nomem(err, "a figure");
	for (size_t i = 0; i < c->replications; i++) {
		share[i] = share_of(&of[i]);
		all.runs += of[i].runs;
		all.within += of[i].within;
	}
	t = metrics_interval(share, c->replications, c->d->level);
	free(share);
	if (!(all.runs > 0.0))
		return 0;
	if (!(t.low < t.high))
		t = metrics_wilson(all.within, all.runs, c->d->level);
	if (last_of[stretch] == SIZE_MAX)
		snprintf(label, sizeof c->label[0], "jobs from %zu on", last_of[stretch - 1] + 1);
	else
		snprintf(label, sizeof c->label[0], "jobs %zu to %zu", stretch ? last_of[stretch - 1] + 1 : 1,
			 last_of[stretch]);
	c->value[c->n_rows] = (struct interval){ t.mean, fmax(t.low, 0.0), fmin(t.high, 1.0) };
	c->count[c->n_rows++] = all;
	return 0;
}

/* The replication with the lowest (sign 1) or highest (-1) share. */
static void add_extreme(struct coverage *c, double sign, const char *text)
{
	size_t at = 0;

	for (size_t i = 1; i < c->replications; i++)
		if (sign * share_of(&c->by_replication[i]) < sign * share_of(&c->by_replication[at]))
			at = i;
	snprintf(c->label[c->n_rows], sizeof c->label[0], "%s of %zu seeds", text, c->replications);
	c->count[c->n_rows] = c->by_replication[at];
	c->value[c->n_rows++] =
		metrics_wilson(c->by_replication[at].within, c->by_replication[at].runs, c->d->level);
}

static double asked(const struct coverage *c)
{
	const struct report_policy *p = &c->d->policies.policy[c->d->focus];

	return p->n_calibrations == 1 ? p->calibration[0].confidence : NAN; /* several: no single stroke */
}

static void write_out(struct coverage *c, struct report_figure *f)
{
	static const char *const series[] = { "share within the bound" };
	const char *label[ROWS];
	double target[ROWS];
	struct chart_rows rows = { .label = label,
				   .n_rows = c->n_rows,
				   .series = series,
				   .n_series = 1,
				   .value = c->value,
				   .target = isnan(asked(c)) ? NULL : target,
				   .x_label = "within their bound; stroke: asked",
				   .title = "Coverage over time and seeds" };

	strbuf_puts(&f->csv, "stretch,runs,within,share,low,high\n");
	for (size_t i = 0; i < c->n_rows; i++) {
		label[i] = c->label[i];
		target[i] = asked(c);
		csv_put(&f->csv, label[i]);
		chart_cells(&f->csv,
			    (double[]){ c->count[i].runs, c->count[i].within, c->value[i].mean,
					c->value[i].low, c->value[i].high },
			    5);
	}
	strbuf_printf(&f->see, "%s: of the first ten jobs that started %s stayed within their bound",
		      c->d->policies.policy[c->d->focus].name, word_percent(c->value[0].mean));
	if (c->replications > 1)
		strbuf_printf(&f->see, "; between the seeds it was %s to %s over all jobs",
			      word_percent(c->value[c->n_rows - 2].mean),
			      word_percent(c->value[c->n_rows - 1].mean));
	if (!isnan(asked(c)))
		strbuf_printf(&f->see, "; %s was asked", word_percent(asked(c)));
	strbuf_puts(&f->see, ".");
	chart_both(f, chart_draw_rows, &rows);
	f->table = true;
}

static int make_coverage(const struct report_data *d, struct report_figure *f, struct err *err)
{
	struct coverage c = { .d = d };
	int rc = 0;

	if (d->focus < d->policies.n)
		rc = collect(&c, err);
	if (!rc && !c.n)
		f->missing = "No job of the policy has a bound of its run time.";
	for (size_t i = 0; !rc && c.n && i < STRETCHES; i++)
		rc = add_stretch(&c, i, err);
	if (!rc && c.n) {
		if (c.replications > 1) {
			add_extreme(&c, 1.0, "lowest");
			add_extreme(&c, -1.0, "highest");
		}
		write_out(&c, f);
	}
	free(c.job);
	free(c.by_stretch);
	free(c.by_replication);
	return rc;
}

const struct report_figure_ops report_fig_coverage = { "coverage", "Coverage over time and seeds",
						       make_coverage };
