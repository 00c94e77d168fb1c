/* The cluster over time: the first jobs of one replay as bars, told apart by colour and by a second sign,
 * and below them the cpus in use. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/mem.h"
#include "common/stats.h"
#include "sim/report/chart.h"

#define MOST_JOBS 80
#define FEWEST_JOBS 12
#define PITCH 9.0 /* from bar to bar */
#define LOAD_HEIGHT 90.0
#define MAX_EDGES 20000 /* starts and ends in the window */
#define READABLE 0.012 /* of the width: a bar of median length shorter than this is hard to see */

static const struct {
	size_t colour, shape;
	const char *text;
} look[OUTCOME_STATES] = {
	[OUTCOME_REJECTED] = { 3, 6, "rejected" },
	[OUTCOME_MET] = { 2, LEGEND_BAR, "limit met" },
	[OUTCOME_MISSED] = { 1, LEGEND_HATCHED, "limit missed" },
	[OUTCOME_DONE] = { 0, LEGEND_OPEN, "ended, no limit" },
	[OUTCOME_FAILED] = { 6, LEGEND_HATCHED, "failed" },
	[OUTCOME_REFUSED] = { 4, 7, "refused: queue full" },
	[OUTCOME_DROPPED] = { 3, 7, "given up: no chance left" },
};

struct timeline {
	const struct report_data *d;
	const struct report_job **all; /* of the replay, by arrival */
	size_t n_all, n; /* shown: the first n */
	double from_s, to_s;
	double unit_s; /* of the axis */
	const char *unit;
	struct svg_point *step; /* time and cpus in use from then on */
	size_t n_steps;
	double slots; /* NaN: not known */
	size_t policy;
};

static bool was_run(const struct report_job *j)
{
	return isfinite(j->start_s) && isfinite(j->end_s) && j->end_s >= j->start_s &&
	       j->state != OUTCOME_REJECTED && j->state != OUTCOME_REFUSED && j->state != OUTCOME_DROPPED;
}

static int by_arrival(const void *a, const void *b)
{
	const struct report_job *x = *(const struct report_job *const *)a,
				*y = *(const struct report_job *const *)b;

	if (x->arrival_s != y->arrival_s)
		return x->arrival_s < y->arrival_s ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

static size_t collect(struct timeline *t, size_t policy)
{
	size_t n = 0;

	for (size_t i = 0; i < t->d->n_jobs; i++) {
		const struct report_job *j = &t->d->job[i];

		if (j->policy == policy && j->replication == t->d->first_replication &&
		    isfinite(j->arrival_s))
			t->all[n++] = j;
	}
	return n;
}

static void window_of(struct timeline *t)
{
	t->from_s = t->all[0]->arrival_s;
	t->to_s = t->all[t->n - 1]->arrival_s;
	for (size_t i = 0; i < t->n; i++)
		if (was_run(t->all[i]))
			t->to_s = fmax(t->to_s, t->all[i]->end_s);
	if (!(t->to_s > t->from_s))
		t->to_s = t->from_s + 1.0;
}

/* As many of the first jobs as leave bars that can be seen: where jobs come rarely, fewer. */
static void choose_window(struct timeline *t)
{
	t->n = t->n_all < MOST_JOBS ? t->n_all : MOST_JOBS;
	for (;;) {
		double length[MOST_JOBS];
		size_t n = 0;

		window_of(t);
		for (size_t i = 0; i < t->n; i++)
			if (was_run(t->all[i]))
				length[n++] = t->all[i]->end_s - t->all[i]->start_s;
		if (t->n <= FEWEST_JOBS || !n || stats_median(length, n) >= READABLE * (t->to_s - t->from_s))
			return;
		t->n = t->n * 3 / 4 > FEWEST_JOBS ? t->n * 3 / 4 : FEWEST_JOBS;
	}
}

static void choose_unit(struct timeline *t)
{
	static const struct {
		double at_least, unit_s;
		const char *name;
	} known[] = { { 172800, 86400, "days" }, { 10800, 3600, "hours" }, { 600, 60, "minutes" } };

	t->unit_s = 1.0;
	t->unit = "seconds";
	for (size_t i = sizeof known / sizeof *known; i-- > 0;)
		if (t->to_s - t->from_s >= known[i].at_least) {
			t->unit_s = known[i].unit_s;
			t->unit = known[i].name;
		}
}

/* ---- the load ---- */

struct edge {
	double at_s, cpus;
};

static int by_time(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->at_s != y->at_s)
		return x->at_s < y->at_s ? -1 : 1;
	return (x->cpus > y->cpus) - (x->cpus < y->cpus); /* ends go first */
}

/* All jobs of the replay that run in the window, shown as bars or not. */
static int find_load(struct timeline *t, struct err *err)
{
	struct edge *edge = mem_calloc(MAX_EDGES, sizeof *edge);
	size_t n = 0;
	double in_use = 0.0;

	t->step = mem_calloc(2 * MAX_EDGES + 2, sizeof *t->step);
	if (!edge || !t->step) {
		free(edge);
		return err_nomem(err, "a figure");
	}
	for (size_t i = 0; i < t->n_all && n + 2 <= MAX_EDGES; i++) {
		const struct report_job *j = t->all[i];

		if (!was_run(j) || !(j->cpus > 0.0) || j->start_s > t->to_s)
			continue;
		edge[n++] = (struct edge){ j->start_s, j->cpus };
		edge[n++] = (struct edge){ j->end_s, -j->cpus };
	}
	qsort(edge, n, sizeof *edge, by_time);
	t->step[t->n_steps++] = (struct svg_point){ t->from_s, 0.0 };
	for (size_t i = 0; i < n && edge[i].at_s <= t->to_s; i++) {
		double before = in_use;

		in_use += edge[i].cpus;
		if (i + 1 < n && edge[i + 1].at_s == edge[i].at_s)
			continue;
		if (t->step[t->n_steps - 1].y != before)
			before = t->step[t->n_steps - 1].y;
		t->step[t->n_steps++] = (struct svg_point){ edge[i].at_s, before };
		t->step[t->n_steps++] = (struct svg_point){ edge[i].at_s, in_use };
	}
	free(edge);
	return 0;
}

static double most_in_use(const struct timeline *t)
{
	double most = 0.0;

	for (size_t i = 0; i < t->n_steps; i++)
		most = fmax(most, t->step[i].y);
	return most;
}

/* ---- drawing ---- */

static double time_x(const struct timeline *t, const struct chart *c, double s)
{
	return chart_x(c, (s - t->from_s) / t->unit_s);
}

static void bar_title(const struct timeline *t, const struct report_job *j, char *buf, size_t size)
{
	int column = csv_column(t->d->jobs, "job");

	snprintf(buf, size, "job %.40s: %s, arrived at %s, took %s of %s",
		 column < 0 ? "" : csv_cell(t->d->jobs, j->row, (size_t)column), look[j->state].text,
		 word_seconds(j->arrival_s), was_run(j) ? word_seconds(j->end_s - j->arrival_s) : "no time",
		 isfinite(j->slo_s) ? word_seconds(j->slo_s) : "no limit");
}

static void draw_job(struct strbuf *out, const struct timeline *t, const struct chart *c,
		     const struct report_job *j, double y)
{
	double arrived = time_x(t, c, j->arrival_s), deadline_s = j->arrival_s + j->slo_s;
	char title[192];

	bar_title(t, j, title, sizeof title);
	svg_open(out, "job", title);
	if (was_run(j)) {
		double start = time_x(t, c, j->start_s), end = time_x(t, c, j->end_s);

		svg_line(out, "axis", arrived, y + PITCH / 2.0, start, y + PITCH / 2.0);
		chart_patch(out, look[j->state].colour, look[j->state].shape, start, y + 1.0,
			    fmax(end - start, 1.5), PITCH - 2.0);
	} else {
		svg_mark(out, look[j->state].colour, look[j->state].shape, arrived, y + PITCH / 2.0);
	}
	if (was_run(j) && deadline_s > j->end_s) /* which bar a stroke belongs to */
		svg_line(out, "grid", time_x(t, c, j->end_s), y + PITCH / 2.0,
			 time_x(t, c, fmin(deadline_s, t->to_s)), y + PITCH / 2.0);
	if (was_run(j) && deadline_s <= t->to_s)
		svg_line(out, "axis", time_x(t, c, deadline_s), y, time_x(t, c, deadline_s), y + PITCH);
	svg_close(out);
}

static void draw_load(struct strbuf *out, const struct timeline *t, struct chart *c)
{
	struct svg_point *line = mem_array(t->n_steps + 1, sizeof *line);

	if (!line) {
		out->failed = true;
		return;
	}
	svg_axis_init(&c->y, 0.0, isnan(t->slots) ? most_in_use(t) : fmax(most_in_use(t), t->slots), false,
		      3);
	chart_frame(out, c, t->unit, "cpus in use", true);
	if (!isnan(t->slots))
		svg_line(out, "mean", c->left, chart_y(c, t->slots), c->right, chart_y(c, t->slots));
	for (size_t i = 0; i < t->n_steps; i++)
		line[i] = (struct svg_point){ time_x(t, c, t->step[i].x), chart_y(c, t->step[i].y) };
	line[t->n_steps] = (struct svg_point){ time_x(t, c, t->to_s), line[t->n_steps - 1].y };
	svg_series_line(out, 0, line, t->n_steps + 1);
	free(line);
}

static void count_states(const struct timeline *t, size_t seen[OUTCOME_STATES])
{
	memset(seen, 0, OUTCOME_STATES * sizeof *seen);
	for (size_t i = 0; i < t->n; i++)
		seen[t->all[i]->state]++;
}

static void draw(struct strbuf *out, const struct chart_size *size, const void *what)
{
	const struct timeline *t = what;
	struct legend_entry entry[OUTCOME_STATES];
	struct chart c = { .left = 40.0, .right = size->width - 16.0 };
	size_t n_entries = 0, seen[OUTCOME_STATES];

	count_states(t, seen);
	for (size_t s = 0; s < OUTCOME_STATES; s++)
		if (seen[s])
			entry[n_entries++] =
				(struct legend_entry){ look[s].text, look[s].colour, look[s].shape };
	c.top = chart_legend(NULL, entry, n_entries, 2.0, 0.0, size->width - 4.0) + 34.0;
	c.bottom = c.top + PITCH * (double)t->n + 6.0;
	chart_begin(out, size, c.bottom + 62.0 + LOAD_HEIGHT + 46.0, "Timeline of the cluster");
	chart_legend(out, entry, n_entries, 2.0, 0.0, size->width - 4.0);
	svg_axis_init(&c.x, 0.0, (t->to_s - t->from_s) / t->unit_s, false, size->narrow ? 4 : 10);
	c.y = (struct svg_axis){ .low = 0.0, .high = 1.0 };
	chart_frame(out, &c, NULL, "jobs, by arrival", false);
	for (size_t i = 0; i < t->n; i++)
		draw_job(out, t, &c, t->all[i], c.top + 3.0 + PITCH * (double)i);
	c.top = c.bottom + 62.0;
	c.bottom = c.top + LOAD_HEIGHT;
	draw_load(out, t, &c);
	svg_end(out);
}

static void say(const struct timeline *t, struct strbuf *out)
{
	size_t seen[OUTCOME_STATES], said = 0;

	count_states(t, seen);
	strbuf_printf(out, "The first %zu of %s jobs under %s in the first replication: ", t->n,
		      word_count((double)t->n_all), t->d->policies.policy[t->policy].name);
	for (size_t s = 0; s < OUTCOME_STATES; s++)
		if (seen[s])
			strbuf_printf(out, "%s%zu %s", said++ ? ", " : "", seen[s], outcome_state_name[s]);
	strbuf_printf(out, ". At most %s", word_number(most_in_use(t)));
	if (!isnan(t->slots))
		strbuf_printf(out, " of %s", word_number(t->slots));
	strbuf_puts(out,
		    " cpus were in use. A thin line is waiting, a bar running, an upright stroke the moment "
		    "the job had to end by.");
}

static void put_csv(const struct timeline *t, struct strbuf *csv)
{
	int column = csv_column(t->d->jobs, "job");

	strbuf_puts(csv, "job,outcome,cpus,arrival_s,start_s,end_s,deadline_s\n");
	for (size_t i = 0; i < t->n; i++) {
		const struct report_job *j = t->all[i];
		const double v[] = { j->cpus, j->arrival_s, j->start_s, j->end_s, j->arrival_s + j->slo_s };

		csv_put(csv, column < 0 ? "" : csv_cell(t->d->jobs, j->row, (size_t)column));
		strbuf_printf(csv, ",%s", outcome_state_name[j->state]);
		chart_cells(csv, v, sizeof v / sizeof *v);
	}
}

static int make(struct timeline *t, struct report_figure *f, struct err *err)
{
	int rc;

	qsort(t->all, t->n_all, sizeof(struct report_job *), by_arrival);
	choose_window(t);
	choose_unit(t);
	rc = find_load(t, err);
	if (rc)
		return rc;
	say(t, &f->see);
	put_csv(t, &f->csv);
	chart_both(f, draw, t);
	f->table = true;
	return 0;
}

static int make_timeline(const struct report_data *d, struct report_figure *f, struct err *err)
{
	struct timeline t = { .d = d, .policy = d->focus };
	int rc = 0;

	if (!d->jobs) {
		f->missing = "jobs.csv is not in the folder.";
		return 0;
	}
	t.all = mem_calloc(d->n_jobs + 1, sizeof(struct report_job *));
	if (!t.all)
		return err_nomem(err, "a figure");
	t.slots = json_number(json_get(json_get(d->compare, "cluster"), "slots"), NAN);
	t.n_all = collect(&t, d->focus);
	for (size_t p = 0; p < d->policies.n && !t.n_all; p++) {
		t.n_all = collect(&t, p);
		t.policy = p;
	}
	if (!t.n_all)
		f->missing = "jobs.csv has no job.";
	else
		rc = make(&t, f, err);
	free(t.all);
	free(t.step);
	return rc;
}

const struct report_figure_ops report_fig_timeline = { "timeline", "Timeline of the cluster", make_timeline };
