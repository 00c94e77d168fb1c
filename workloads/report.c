/* Prints the epochs and the result of a training job. See program.h. */
#include "workloads/program.h"

#include <math.h>

#include "common/json/json.h"
#include "common/text/text.h"

static void put_phases(struct json_writer *w, const struct train_phases *p)
{
	json_kv_number(w, "fetch_s", p->fetch_s);
	json_kv_number(w, "compute_s", p->compute_s);
	json_kv_number(w, "sync_s", p->sync_s);
	json_kv_number(w, "test_s", p->test_s);
	json_kv_number(w, "cpu_s", p->cpu_s);
	json_kv_number(w, "test_cpu_s", p->test_cpu_s);
}

static void put_line(FILE *to, struct strbuf *line)
{
	strbuf_puts(line, "\n");
	fputs(strbuf_text(line), to);
	fflush(to);
	strbuf_release(line);
}

static void put_percent(struct strbuf *line, double share)
{
	if (isnan(share))
		strbuf_puts(line, "      -");
	else
		strbuf_printf(line, "%6.2f %%", 100.0 * share);
}

void report_epoch(FILE *to, bool json, const struct train_params *p, const struct train_epoch *e)
{
	struct strbuf line = { 0 };
	struct json_writer w;

	if (json) {
		json_begin(&w, &line, false);
		json_open(&w, '{');
		json_kv_string(&w, "event", "epoch");
		json_kv_int(&w, "epoch", (long long)e->epoch);
		json_kv_number(&w, "loss", e->loss);
		json_kv_number(&w, "accuracy", e->accuracy);
		json_kv_number(&w, "elapsed_s", e->elapsed_s);
		put_phases(&w, &e->phases);
		json_kv_number(&w, "max_rss_mb", e->max_rss_mb);
		json_close(&w, '}');
	} else {
		strbuf_printf(&line, "epoch %3zu/%zu  loss %.4f  accuracy ", e->epoch, p->epochs, e->loss);
		put_percent(&line, e->accuracy);
		strbuf_printf(&line, "  %8.2f s  (fetch %.2f, compute %.2f, sync %.2f)", e->elapsed_s,
			      e->phases.fetch_s, e->phases.compute_s, e->phases.sync_s);
	}
	put_line(to, &line);
}

void report_result(FILE *to, bool json, const struct train_params *p, const struct train_result *r)
{
	struct strbuf line = { 0 };
	struct json_writer w;
	char took[32];

	if (json) {
		json_begin(&w, &line, false);
		json_open(&w, '{');
		json_kv_string(&w, "event", "result");
		json_kv_string(&w, "network", p->net->name);
		json_kv_int(&w, "workers", p->workers);
		json_kv_int(&w, "batch", (long long)p->batch);
		json_kv_int(&w, "epochs", (long long)r->epochs);
		json_kv_int(&w, "samples", (long long)p->train->n);
		json_kv_number(&w, "lr", p->rate);
		json_kv_number(&w, "decay", p->decay);
		json_kv_int(&w, "seed", (long long)p->seed);
		json_kv_int(&w, "steps", (long long)r->steps);
		json_kv_number(&w, "loss", r->loss);
		json_kv_number(&w, "accuracy", r->accuracy);
		json_kv_number(&w, "elapsed_s", r->elapsed_s);
		put_phases(&w, &r->phases);
		json_kv_number(&w, "start_cpu_s", r->start_cpu_s);
		json_kv_number(&w, "job_cpu_s", r->job_cpu_s);
		json_kv_number(&w, "max_rss_mb", r->max_rss_mb);
		json_kv_bool(&w, "stopped", r->stopped_by != 0);
		json_close(&w, '}');
	} else {
		strbuf_printf(&line, "%s: %s, %u worker%s, batch %zu, %zu epoch%s: accuracy ",
			      r->stopped_by ? "stopped" : "done", p->net->name, p->workers,
			      p->workers == 1 ? "" : "s", p->batch, r->epochs, r->epochs == 1 ? "" : "s");
		put_percent(&line, r->accuracy);
		strbuf_printf(&line, " in %s, peak memory %.0f MB", text_seconds(r->elapsed_s, took),
			      r->max_rss_mb);
	}
	put_line(to, &line);
}
