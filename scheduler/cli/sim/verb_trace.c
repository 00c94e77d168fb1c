/* postrider trace: reads any trace, checks it, and says what is in it or writes it in our own format. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/mem.h"
#include "common/stats.h"
#include "common/text/text.h"
#include "scheduler/cli/cli.h"
#include "sim/trace/trace.h"

struct summary {
	double span_s; /* from the first arrival to the last */
	double rate; /* arrivals per s; NaN: one job, or all at once */
	double slo[5]; /* least, quartiles, most; NaN: none */
	size_t objectives, best_effort, recurring, open_epochs;
	double cpus_mean;
	uint32_t cpus_most;
	size_t *jobs_of; /* by tenant */
	size_t *jobs_of_kind;
};

static void summary_release(struct summary *s)
{
	free(s->jobs_of);
	free(s->jobs_of_kind);
}

/* Quartiles by the nearest rank. */
static int find_quartiles(const struct trace *t, struct summary *s)
{
	double *v = mem_array(t->n_jobs, sizeof *v);
	size_t n = 0;

	if (!v)
		return -1;
	for (size_t i = 0; i < t->n_jobs; i++)
		if (!isnan(t->job[i].slo_s))
			v[n++] = t->job[i].slo_s;
	stats_sort(v, n);
	for (size_t i = 0; i < 5; i++) {
		size_t rank = (size_t)ceil((double)(i * n) / 4.0);

		s->slo[i] = n ? v[rank ? rank - 1 : 0] : NAN;
	}
	s->objectives = n;
	free(v);
	return 0;
}

static int summarise(const struct trace *t, struct summary *s)
{
	double cpus = 0.0;

	s->jobs_of = mem_calloc(t->n_tenants, sizeof *s->jobs_of);
	s->jobs_of_kind = mem_calloc(t->n_kinds, sizeof *s->jobs_of_kind);
	if (!s->jobs_of || !s->jobs_of_kind || find_quartiles(t, s))
		return -1;
	for (size_t i = 0; i < t->n_jobs; i++) {
		const struct trace_job *j = &t->job[i];
		const struct trace_kind *k = &t->kind[j->kind];

		s->jobs_of[j->tenant]++;
		s->jobs_of_kind[j->kind]++;
		s->best_effort += j->best_effort;
		s->recurring += j->recurring != 0;
		s->open_epochs += !isnan(k->epochs_from);
		cpus += k->cpus;
		if (k->cpus > s->cpus_most)
			s->cpus_most = k->cpus;
	}
	s->cpus_mean = cpus / (double)t->n_jobs;
	s->span_s = (double)(t->job[t->n_jobs - 1].arrival_ns - t->job[0].arrival_ns) / 1e9;
	/* As many gaps as there are jobs, but one. */
	s->rate = s->span_s > 0.0 ? (double)(t->n_jobs - 1) / s->span_s : NAN;
	return 0;
}

/* ---- for programs ---- */

static void json_quartiles(struct json_writer *w, const struct summary *s)
{
	static const char *const name[] = { "min", "q1", "median", "q3", "max" };

	json_kv_open(w, "slo_s", '{');
	json_kv_int(w, "jobs", (long long)s->objectives);
	for (size_t i = 0; i < 5; i++)
		json_kv_number(w, name[i], s->slo[i]);
	json_close(w, '}');
}

static void json_names(struct json_writer *w, const char *key, char **name, size_t n)
{
	json_kv_open(w, key, '[');
	for (size_t i = 0; i < n; i++)
		json_put_string(w, name[i]);
	json_close(w, ']');
}

static void print_json(const struct trace *t, const struct summary *s, struct strbuf *out)
{
	struct json_writer w;
	char print[24];

	json_begin(&w, out, true);
	json_open(&w, '{');
	json_kv_string(&w, "name", t->name);
	json_kv_string(&w, "about", t->about);
	snprintf(print, sizeof print, "%016" PRIx64, t->fingerprint);
	json_kv_string(&w, "fingerprint", print);
	json_kv_int(&w, "jobs", (long long)t->n_jobs);
	json_kv_number(&w, "span_s", s->span_s);
	json_kv_number(&w, "arrivals_per_s", s->rate);
	json_kv_int(&w, "kinds", (long long)t->n_kinds);
	json_names(&w, "columns", t->column, t->n_columns);
	json_names(&w, "types", t->type, t->n_types);
	json_kv_open(&w, "tenants", '[');
	for (size_t i = 0; i < t->n_tenants; i++) {
		json_open(&w, '{');
		json_kv_string(&w, "name", t->tenant[i]);
		json_kv_number(&w, "weight", t->weight[i]);
		json_kv_int(&w, "jobs", (long long)s->jobs_of[i]);
		json_close(&w, '}');
	}
	json_close(&w, ']');
	json_quartiles(&w, s);
	json_kv_open(&w, "cpus", '{');
	json_kv_number(&w, "mean", s->cpus_mean);
	json_kv_int(&w, "max", s->cpus_most);
	json_close(&w, '}');
	json_kv_int(&w, "best_effort", (long long)s->best_effort);
	json_kv_int(&w, "recurring", (long long)s->recurring);
	json_kv_int(&w, "open_epochs", (long long)s->open_epochs);
	json_names(&w, "notices", t->notice, t->n_notices);
	json_close(&w, '}');
	strbuf_puts(out, "\n");
}

/* ---- for people ---- */

enum { SHOWN_ROWS = 12 };

/* "network=lenet5 epochs=1..4 cpus=2" */
static void put_kind(const struct trace *t, const struct trace_kind *k, char *out, size_t size)
{
	size_t n = (size_t)snprintf(out, size, "cpus=%" PRIu32, k->cpus);

	for (size_t i = 0; i < t->n_columns && n < size; i++)
		if (k->value[i])
			n += (size_t)snprintf(out + n, size - n, " %s=%s", t->column[i], k->value[i]);
	if (!isnan(k->epochs_from) && n < size)
		n += (size_t)snprintf(out + n, size - n, " epochs=%g..%g", k->epochs_from, k->epochs_to);
	for (size_t i = 0; i < k->n_batches && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s%g", i ? "|" : " batches=", k->batch[i]);
}

static void print_kinds(const struct trace *t, const struct summary *s, struct strbuf *out, bool colour)
{
	struct cli_table table;
	char text[600], share[32];
	bool *done = mem_calloc(t->n_kinds, sizeof *done);

	cli_table_init(&table, "lrr");
	cli_table_add(&table, "kind");
	cli_table_add(&table, "jobs");
	cli_table_add(&table, "share");
	table.failed |= !done;
	/* The most frequent first; of a handful, so searching is cheap enough. */
	for (size_t row = 0; done && row < t->n_kinds && row < SHOWN_ROWS; row++) {
		size_t best = t->n_kinds;

		for (size_t i = 0; i < t->n_kinds; i++)
			if (!done[i] && (best == t->n_kinds || s->jobs_of_kind[i] > s->jobs_of_kind[best]))
				best = i;
		done[best] = true;
		put_kind(t, &t->kind[best], text, sizeof text);
		cli_table_add(&table, "%s", text);
		cli_table_add(&table, "%zu", s->jobs_of_kind[best]);
		cli_table_add(&table, "%s",
			      cli_percent((double)s->jobs_of_kind[best] / (double)t->n_jobs, share));
	}
	cli_table_print(&table, out, colour);
	if (t->n_kinds > SHOWN_ROWS)
		strbuf_printf(out, "... and %zu more kinds\n", t->n_kinds - SHOWN_ROWS);
	cli_table_release(&table);
	free(done);
}

static void print_tenants(const struct trace *t, const struct summary *s, struct strbuf *out, bool colour)
{
	struct cli_table table;
	char weight[32], share[32];

	cli_table_init(&table, "lrrr");
	cli_table_add(&table, "tenant");
	cli_table_add(&table, "weight");
	cli_table_add(&table, "jobs");
	cli_table_add(&table, "share");
	for (size_t i = 0; i < t->n_tenants && i < SHOWN_ROWS; i++) {
		cli_table_add(&table, "%s", t->tenant[i]);
		cli_table_add(&table, "%s", cli_number(t->weight[i], weight));
		cli_table_add(&table, "%zu", s->jobs_of[i]);
		cli_table_add(&table, "%s", cli_percent((double)s->jobs_of[i] / (double)t->n_jobs, share));
	}
	cli_table_print(&table, out, colour);
	if (t->n_tenants > SHOWN_ROWS)
		strbuf_printf(out, "... and %zu more tenants\n", t->n_tenants - SHOWN_ROWS);
	cli_table_release(&table);
}

static void print_text(const struct cli *c, const struct trace *t, const struct summary *s,
		       struct strbuf *out)
{
	char a[32], b[32], d[32], e[32], f[32];

	strbuf_printf(out, "%s: %s\n", cli_clean(t->name), cli_clean(t->about));
	if (!isnan(s->rate))
		strbuf_printf(out, "arrivals    %s a second, one in %s\n", cli_number(s->rate, a),
			      text_seconds(1.0 / s->rate, b));
	if (s->objectives)
		strbuf_printf(out, "limits      %zu jobs: %s, %s, %s, %s, %s (least, quartiles, most)\n",
			      s->objectives, text_seconds(s->slo[0], a), text_seconds(s->slo[1], b),
			      text_seconds(s->slo[2], d), text_seconds(s->slo[3], e),
			      text_seconds(s->slo[4], f));
	else
		strbuf_puts(out, "limits      none\n");
	strbuf_printf(out, "cpus        %s a job on average, at most %" PRIu32 "\n",
		      cli_number(s->cpus_mean, a), s->cpus_most);
	if (s->best_effort || s->recurring || s->open_epochs)
		strbuf_printf(out, "of these    %zu best effort, %zu recurring, %zu with open epochs\n",
			      s->best_effort, s->recurring, s->open_epochs);
	strbuf_puts(out, "\n");
	print_kinds(t, s, out, cli_colour_stdout(c));
	strbuf_puts(out, "\n");
	print_tenants(t, s, out, cli_colour_stdout(c));
}

/* ---- the verb ---- */

static bool ends_in(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);

	return n > m && strcasecmp(path + n - m, end) == 0;
}

static int convert(const struct cli *c, const struct trace *t, struct err *err)
{
	struct strbuf out = { 0 };
	int rc;

	if (ends_in(c->output, ".jsonl"))
		trace_write_jsonl(t, &out);
	else
		trace_write_csv(t, &out);
	rc = cli_write(c->output, &out, err);
	strbuf_release(&out);
	if (rc == 0)
		cli_notice(c, "%s written: %s", c->output, t->about);
	return rc;
}

static int show(const struct cli *c, const struct trace *t, struct err *err)
{
	struct summary s = { 0 };
	struct strbuf out = { 0 };
	int rc;

	if (summarise(t, &s)) {
		summary_release(&s);
		return err_fail(err, ERR_NOMEM, "%s: out of memory for the summary", t->name);
	}
	if (c->json)
		print_json(t, &s, &out);
	else
		print_text(c, t, &s, &out);
	summary_release(&s);
	rc = cli_write(NULL, &out, err);
	strbuf_release(&out);
	return rc;
}

int verb_trace(int argc, char **argv)
{
	struct trace_source source = { .seed = 1 };
	const char *history = NULL;
	const struct cli_option option[] = {
		{ 0, "from-history", CLI_TEXT, "PATH",
		  "take the jobs from a daemon's database or state folder, instead of TRACE", &history },
		{ 0, "map", CLI_TEXT, "FILE", "how SWF fields become jobs (configs/traces/swf-map.json)",
		  &source.map },
		{ 0, "resample", CLI_COUNT, "N", "draw N jobs from those of the trace, and gaps between them",
		  &source.resample },
		{ 0, "seed", CLI_COUNT, "N", "the seed of a generated or drawn trace (default: 1)",
		  &source.seed },
		{ 0 },
	};
	const struct cli_usage usage = {
		.verb = "trace",
		.synopsis = "TRACE [-o FILE.csv|FILE.jsonl] [options]\n"
			    "--from-history PATH [-o FILE.csv|FILE.jsonl] [options]",
		.what = "Reads and checks a trace as replay and compare do, and prints a summary. With -o it "
			"writes\n"
			"the trace in Postrider's own format instead. TRACE is a file (.csv, .jsonl, .swf, a "
			"daemon's\n"
			"postrider.db or its folder), - for CSV on standard input, or gen:KIND,key=value,... "
			"with KIND\n"
			"one of paper, poisson, bursty, daily, recurring.",
		.option = option,
		.json = true,
		.output = "write the trace to this file, as CSV or, if it ends in .jsonl, as JSON lines",
		.max_args = 1,
		.examples = "  postrider trace configs/traces/morning.csv\n"
			    "  postrider trace log.swf --map map.json -o log.csv\n"
			    "  postrider trace gen:bursty,jobs=1000,load=0.8,work=4,cores=2 --seed 7 -o "
			    "bursty.jsonl\n"
			    "  postrider trace --from-history /var/lib/postrider --json\n",
	};
	struct trace *t = NULL;
	struct err err = { 0 };
	struct cli c;
	int code, rc;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	if (!history == !c.n_args)
		return cli_usage_error(&c, history ? "give a TRACE or --from-history, not both"
						   : "something is missing: a TRACE, or --from-history PATH");
	if (c.output && c.json)
		return cli_usage_error(&c, "-o writes the trace, --json prints a summary: give one of them");
	if (c.output && !ends_in(c.output, ".csv") && !ends_in(c.output, ".jsonl") &&
	    strcmp(c.output, "-") != 0)
		return cli_usage_error(&c, "-o %s: the name must end in .csv or .jsonl", c.output);
	source.spec = history ? history : c.arg[0];
	source.history = history != NULL;
	rc = cli_check_output(c.output, &err);
	if (rc == 0)
		rc = trace_open(&source, &t, &err);
	for (size_t i = 0; rc == 0 && i < t->n_notices; i++)
		cli_notice(&c, "%s", t->notice[i]);
	if (rc == 0)
		rc = c.output ? convert(&c, t, &err) : show(&c, t, &err);
	code = rc ? cli_fail(&err) : 0;
	trace_free(t);
	return code;
}
