/* compare.json, timing.json and the folder they lie in. jobs.csv is made in record_jobs.c. */
#include "sim/compare/record.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/csv.h"
#include "common/io.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "sim/compare/folder.h"

#define COMPARE_FILE "compare.json"
#define JOBS_FILE "jobs.csv"
#define TRAINING_FILE "training.csv"
#define TIMING_FILE "timing.json"
#define SWEEP_FILE "sweep.json"
#define CPUINFO_MAX ((size_t)16 << 20)

/* ---- compare.json ---- */

void record_interval(struct json_writer *w, const char *key, const struct interval *v)
{
	json_kv_open(w, key, '[');
	json_put_number(w, v->low);
	json_put_number(w, v->high);
	json_close(w, ']');
}

void record_paired(struct json_writer *w, const char *key, const struct paired_result *v)
{
	json_kv_open(w, key, '{');
	json_kv_number(w, "difference", v->difference);
	json_kv_number(w, "low", v->low);
	json_kv_number(w, "high", v->high);
	json_kv_number(w, "p", v->p);
	json_kv_number(w, "p_holm", v->p_holm);
	json_close(w, '}');
}

static void put_metrics(const struct compare_policy *c, struct json_writer *w)
{
	char name[64];

	for (size_t m = 0; m < METRICS; m++) {
		if (metric_info[m].rare && isnan(c->metric[m].mean))
			continue;
		json_kv_number(w, metric_info[m].name, c->metric[m].mean);
		snprintf(name, sizeof name, "%s_ci", metric_info[m].name);
		record_interval(w, name, &c->metric[m]);
	}
}

static void put_versus(const struct compare_policy *c, struct json_writer *w)
{
	json_kv_open(w, "versus", '{');
	for (size_t m = 0; m < METRICS; m++)
		if (!metric_info[m].rare || !isnan(c->versus[m].difference))
			record_paired(w, metric_info[m].name, &c->versus[m]);
	json_close(w, '}');
}

/* By policy, how many of the tested measures came out how; null: too little data, or one replication. */
static void put_verdict(const struct compare_result *r, double level, struct json_writer *w)
{
	static const char *const word[] = { "worse", "unclear", "better", "same" };

	if (!r->tests) {
		json_put_key(w, "verdict");
		json_put_null(w);
		return;
	}
	json_kv_open(w, "verdict", '{');
	for (size_t i = 0; i < r->n_policies; i++) {
		size_t n[VERDICT_UNKNOWN + 1];

		if (i == r->baseline)
			continue;
		compare_verdicts(r, i, level, n);
		json_kv_open(w, r->policy[i].policy.name, '{');
		for (size_t v = 0; v < VERDICT_UNKNOWN; v++)
			json_kv_int(w, word[v], (long long)n[v]);
		json_close(w, '}');
	}
	json_close(w, '}');
}

static void put_calibration(const struct compare_policy *c, struct json_writer *w)
{
	json_kv_open(w, "calibration", '[');
	for (size_t i = 0; i <= 100; i++) {
		if (!c->tracked[i])
			continue;
		json_open(w, '{');
		json_kv_number(w, "confidence", (double)i / 100.0);
		json_kv_int(w, "runs", (long long)c->tracked[i]);
		json_kv_int(w, "within", (long long)c->covered[i]);
		json_close(w, '}');
	}
	json_close(w, ']');
}

static void put_importances(const struct compare_policy *c, struct json_writer *w)
{
	json_kv_open(w, "importances", '{');
	for (size_t i = 0; i < c->n_features; i++)
		json_kv_number(w, c->feature[i], c->importance[i]);
	json_close(w, '}');
}

void record_policies(const struct compare_result *r, struct json_writer *w)
{
	json_open(w, '[');
	for (size_t i = 0; i < r->n_policies; i++) {
		const struct compare_policy *c = &r->policy[i];

		json_open(w, '{');
		json_kv_string(w, "name", c->policy.name);
		json_kv_string(w, "title", c->policy.title);
		if (c->policy.best_fixed)
			json_kv_number(w, "batch", c->policy.choice.batch);
		put_metrics(c, w);
		if (i != r->baseline)
			put_versus(c, w);
		put_calibration(c, w);
		put_importances(c, w);
		json_close(w, '}');
	}
	json_close(w, ']');
}

static void put_trace(const struct trace *t, struct json_writer *w)
{
	char fingerprint[32];

	snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, t->fingerprint);
	json_kv_open(w, "trace", '{');
	json_kv_string(w, "name", t->name);
	json_kv_string(w, "about", t->about);
	json_kv_int(w, "jobs", (long long)t->n_jobs);
	json_kv_int(w, "left_out", (long long)t->n_left_out);
	json_kv_string(w, "fingerprint", fingerprint);
	json_close(w, '}');
}

void record_world(struct json_writer *w, const struct world *world, size_t n_splits)
{
	size_t folds = world_folds(world);
	char text[512];

	json_kv_open(w, "world", '{');
	json_kv_string(w, "name", world_name(world));
	world_describe(world, w);
	json_kv_open(w, "splits", '[');
	for (size_t i = 0; i < folds && i < n_splits; i++) {
		world_split_text(world, i, text, sizeof text);
		json_put_string(w, text);
	}
	json_close(w, ']');
	json_close(w, '}');
}

void record_json(const struct compare_result *r, const struct record_about *a, struct json_writer *w)
{
	const struct compare_params *p = a->params;

	json_open(w, '{');
	json_kv_string(w, "kind", a->kind);
	json_kv_string(w, "program", a->program);
	json_kv_string(w, "command", a->command);
	json_kv_int(w, "seed", (long long)p->seed);
	json_kv_number(w, "confidence", p->settings.confidence);
	json_kv_number(w, "level", p->level);
	json_kv_int(w, "replications", (long long)r->replications);
	json_kv_bool(w, "adapt", p->settings.adapt);
	if (p->settings.daemons > 1) {
		json_kv_int(w, "daemons", p->settings.daemons);
		json_kv_string(w, "share", daemons_share_name[p->settings.share]);
	}
	json_kv_string(w, "baseline", r->policy[r->baseline].policy.name);
	json_kv_string(w, "model", p->model_name);
	put_trace(r->trace[0], w);
	record_world(w, r->world[0], r->replications);
	json_put_key(w, "cluster");
	cluster_to_json(world_whole(r->world[0]), w);
	json_put_key(w, "disturbances");
	disturbances_to_json(world_disturbances(r->world[0]), w);
	json_kv_int(w, "tests", (long long)r->tests);
	put_verdict(r, p->level, w);
	json_kv_string(w, "note", *r->note ? r->note : NULL);
	json_put_key(w, "policies");
	record_policies(r, w);
	json_close(w, '}');
}

void record_text(const struct compare_result *r, const struct record_about *a, struct strbuf *out)
{
	struct json_writer w;

	json_begin(&w, out, true);
	record_json(r, a, &w);
	strbuf_puts(out, "\n");
}

/* ---- timing.json ---- */

/* What /proc calls the processor; "" where it does not say. */
static void processor_name(char *out, size_t size)
{
	char *text, *at, *end;
	size_t len;

	out[0] = '\0';
	if (io_read_file("/proc/cpuinfo", CPUINFO_MAX, &text, &len, NULL))
		return;
	at = strstr(text, "model name");
	at = at ? strchr(at, ':') : NULL;
	if (at) {
		at += strspn(at, ": \t");
		end = strchr(at, '\n');
		snprintf(out, size, "%.*s", end ? (int)(end - at) : (int)strlen(at), at);
	}
	free(text);
}

static void put_machine(struct json_writer *w)
{
	char processor[160], system[3 * sizeof(((struct utsname *)NULL)->release)];
	struct utsname u;

	processor_name(processor, sizeof processor);
	system[0] = '\0';
	if (!uname(&u))
		snprintf(system, sizeof system, "%s %s %s", u.sysname, u.release, u.machine);
	json_kv_open(w, "machine", '{');
	json_kv_string(w, "system", *system ? system : NULL);
	json_kv_string(w, "processor", *processor ? processor : NULL);
	json_kv_int(w, "cores", sysconf(_SC_NPROCESSORS_ONLN));
	json_close(w, '}');
}

void record_timing(const struct compare_result *r, const char *created, struct json_writer *w)
{
	json_open(w, '{');
	put_machine(w);
	json_kv_string(w, "created", created);
	json_kv_open(w, "decision_s", '{');
	for (size_t i = 0; i < r->n_policies; i++) {
		json_kv_open(w, r->policy[i].policy.name, '{');
		json_kv_number(w, "mean", r->policy[i].decision_mean_s);
		json_kv_number(w, "p99", r->policy[i].decision_p99_s);
		json_close(w, '}');
	}
	json_close(w, '}');
	json_close(w, '}');
}

/* ---- the folder ---- */

static bool is_own_file(const char *name)
{
	static const char *const own[] = { COMPARE_FILE,  JOBS_FILE,   JOBS_PART,
					   TRAINING_FILE, TIMING_FILE, SWEEP_FILE };

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (!strcmp(name, own[i]))
			return true;
	return !strcmp(name, ".") || !strcmp(name, "..") ||
	       !strncmp(name, ".postrider-", strlen(".postrider-"));
}

int record_check(const char *dir, struct err *err)
{
	char other[128] = "";
	bool ours = false;
	struct dirent *e;
	int status = folder_check(dir, err);
	DIR *d = status ? NULL : opendir(dir);

	if (!status && !d && errno != ENOENT)
		return folder_error("open folder", dir, err);
	while (d && (e = readdir(d))) {
		if (!strcmp(e->d_name, COMPARE_FILE))
			ours = true;
		else if (!is_own_file(e->d_name) && !*other)
			text_printable(e->d_name, other, sizeof other);
	}
	if (d)
		closedir(d);
	if (!ours && *other)
		return err_fail(
			err, ERR_ARG,
			"%s holds something else (%s) and no %s of an earlier comparison: name a new or "
			"an empty folder",
			text_tail(dir, 200), other, COMPARE_FILE);
	return status;
}

static void training_text(const struct csv *t, struct strbuf *out)
{
	for (size_t i = 0; i < t->n_columns; i++) {
		strbuf_puts(out, i ? "," : "");
		csv_put(out, t->header[i]);
	}
	strbuf_puts(out, "\n");
	for (size_t row = 0; row < t->n_rows; row++) {
		for (size_t i = 0; i < t->n_columns; i++) {
			strbuf_puts(out, i ? "," : "");
			csv_put(out, csv_cell(t, row, i));
		}
		strbuf_puts(out, "\n");
	}
}

static void timing_text(const struct compare_result *r, struct strbuf *out)
{
	struct json_writer w;
	char created[40];

	text_utc(clock_wall_ns(), created);
	json_begin(&w, out, true);
	record_timing(r, created, &w);
	strbuf_puts(out, "\n");
}

enum part { PART_JOBS, PART_TRAINING, PART_TIMING, PART_SWEEP, PART_COMPARE, PARTS };

static int write_part(enum part part, const char *dir, const struct compare_result *r,
		      const struct record_about *a, struct err *err)
{
	static const char *const name[PARTS] = { JOBS_FILE, TRAINING_FILE, TIMING_FILE, SWEEP_FILE,
						 COMPARE_FILE };
	struct strbuf text = { 0 };
	int status;

	if (part == PART_JOBS && record_jobs_kept(r))
		return record_jobs_write(dir, name[part], r, err);
	if (part == PART_JOBS || (part == PART_TRAINING && !r->training) || (part == PART_SWEEP && !a->sweep))
		return folder_remove(dir, name[part], err);
	if (part == PART_SWEEP)
		return folder_write(dir, name[part], a->sweep, err);
	if (part == PART_TRAINING)
		training_text(r->training, &text);
	else if (part == PART_TIMING)
		timing_text(r, &text);
	else
		record_text(r, a, &text);
	status = folder_write(dir, name[part], &text, err);
	strbuf_release(&text);
	return status;
}

int record_write(const char *dir, const struct compare_result *r, const struct record_about *a,
		 struct err *err)
{
	sigset_t before;
	int status = record_check(dir, err);

	if (!status)
		status = folder_make(dir, err);
	folder_hold_signals(&before);
	for (enum part part = 0; !status && part < PARTS; part++)
		status = write_part(part, dir, r, a, err);
	folder_release_signals(&before);
	return status;
}
