/* The folder of a job: its files, and what is written into them. See job_folder.h. */
#define _GNU_SOURCE
#include "scheduler/cli/job/job_folder.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/csv.h"
#include "common/io.h"
#include "common/places.h"
#include "common/text/text.h"
#include "scheduler/cli/cli.h"
#include "scheduler/cli/job/own_daemon.h"
#include "scheduler/config/config.h"

#define DESCRIPTION "job.json"

bool job_folder_has(const char *file)
{
	struct stat st;

	return !stat(file, &st) && S_ISREG(st.st_mode) && st.st_size > 0;
}

static bool join(char *out, const char *dir, const char *name)
{
	return (size_t)snprintf(out, PATH_MAX, "%s/%s", dir, name) < PATH_MAX;
}

bool job_folder_is(const char *path)
{
	char file[PATH_MAX];

	return join(file, path, DESCRIPTION) && job_folder_has(file);
}

/* ---- names ---- */

static bool is_interpreter(const char *base)
{
	static const char *const known[] = { "python", "sh",      "bash",  "zsh",      "perl",
					     "ruby",   "Rscript", "julia", "node",     "env",
					     "nice",   "time",    "java",  "torchrun", NULL };
	size_t len = strcspn(base, "0123456789.");

	for (size_t i = 0; known[i]; i++) {
		if (strlen(known[i]) == len && !strncmp(known[i], base, len))
			return true;
	}
	return false;
}

void job_folder_name(char *const *word, size_t n, char *out)
{
	const char *base = "job";
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		const char *slash = strrchr(word[i], '/'), *one = slash ? slash + 1 : word[i];

		if (word[i][0] == '-' || !*one || is_interpreter(one) || strchr(word[i], ' ') ||
		    strchr(word[i], '{'))
			continue;
		base = one;
		break;
	}
	for (; *base && *base != '.' && k < JOB_FOLDER_NAME; base++) {
		char c = (char)tolower((unsigned char)*base);

		if (isalnum((unsigned char)c) || (k && (c == '_' || c == '-')))
			out[k++] = c;
	}
	out[k] = '\0';
	if (!k)
		snprintf(out, JOB_FOLDER_NAME, "job");
}

/* The name of the type and the place of the socket are in the configuration. */
static int read_configuration(struct job_folder *f, struct err *err)
{
	const struct json *types;
	struct json *v = NULL;
	int rc = json_read_settings(f->config, CONFIG_MAX_BYTES, &v, err);

	if (rc)
		return rc;
	types = json_get(v, "types");
	if (json_size(types) < 1 || strlen(json_key(json_first(types))) > JOB_FOLDER_NAME)
		rc = err_fail(err, ERR_FORMAT, "%s: names no job type", text_tail(f->config, 200));
	else
		snprintf(f->name, sizeof f->name, "%s", json_key(json_first(types)));
	if (json_string(json_get(v, "socket"), NULL))
		snprintf(f->socket, sizeof f->socket, "%s", json_string(json_get(v, "socket"), ""));
	json_free(v);
	return rc;
}

int job_folder_open(struct job_folder *f, const char *dir, const char *name, struct err *err)
{
	char *whole = NULL;
	bool fits;
	int rc = place_absolute(dir, &whole, err);

	if (rc)
		return rc;
	*f = (struct job_folder){ 0 };
	for (size_t len = strlen(whole); len > 1 && whole[len - 1] == '/'; len--)
		whole[len - 1] = '\0';
	fits = (size_t)snprintf(f->dir, sizeof f->dir, "%s", whole) < sizeof f->dir;
	free(whole);
	snprintf(f->shown, sizeof f->shown, "%s", dir);
	if (!fits || !join(f->job, f->dir, DESCRIPTION) || !join(f->readme, f->dir, "README.md") ||
	    !join(f->table, f->dir, "runs.csv") || !join(f->curves, f->dir, "curves.csv") ||
	    !join(f->model, f->dir, "job.model") || !join(f->config, f->dir, "postrider.json") ||
	    !join(f->state, f->dir, "state") || !join(f->log, f->dir, "daemon.log") ||
	    !join(f->socket, f->dir, "postrider.sock") || !join(f->shown_epochs, f->dir, "epochs"))
		return err_fail(err, ERR_ARG, "the path of the folder is too long");
	rc = name ? 0 : read_configuration(f, err);
	if (name)
		snprintf(f->name, sizeof f->name, "%s", name);
	if (!rc && strlen(f->socket) > PLACE_MAX_SOCKET)
		rc = err_fail(err, ERR_ARG,
			      "%s is too long for a socket, whose path has at most %d bytes; choose a folder "
			      "nearer to /",
			      text_tail(f->socket, 100), PLACE_MAX_SOCKET);
	return rc;
}

/* ---- writing ---- */

char *job_folder_slo(double s, char *buf)
{
	snprintf(buf, 32, s < 10.0 ? "%.1fs" : "%.0fs", s < 10.0 ? ceil(10.0 * s) / 10.0 : ceil(s));
	return buf;
}

static void put_level(struct strbuf *out, const struct profile_factor *f, size_t i)
{
	struct json_writer w;

	json_begin(&w, out, false);
	if (f->number)
		strbuf_puts(out, f->level[i]);
	else
		json_put_string(&w, f->level[i]);
}

static void put_string(struct strbuf *out, const char *text)
{
	struct json_writer w;

	json_begin(&w, out, false);
	json_put_string(&w, text);
}

static void put_factors(struct strbuf *out, const struct profile_factor *f, size_t n, bool list, bool free)
{
	const char *comma = "";

	for (size_t i = 0; i < n; i++) {
		if (f[i].free != free)
			continue;
		strbuf_printf(out, "%s    \"%s\": %s", comma, f[i].name, list ? "[" : "");
		for (size_t l = 0; l < f[i].n_levels; l++) {
			strbuf_puts(out, l ? ", " : "");
			put_level(out, &f[i], l);
		}
		strbuf_puts(out, list ? "]" : "");
		comma = ",\n";
	}
	strbuf_puts(out, "\n");
}

static size_t count_free(const struct profile_design *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_fixed; i++)
		n += d->fixed[i].free;
	return n;
}

static void put_result(struct strbuf *out, const struct output_spec *r)
{
	const struct {
		const char *key, *value;
	} part[] = {
		{ "accuracy", r->accuracy },
		{ "regex", r->regex },
		{ "epoch", r->epoch },
		{ "epoch_regex", r->epoch_regex },
		{ "scale", r->scale ? output_scale_name[r->scale] : NULL },
	};
	const char *comma = "";

	strbuf_puts(out, "  \"result\": {");
	for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
		if (!part[i].value)
			continue;
		strbuf_printf(out, "%s\"%s\": ", comma, part[i].key);
		put_string(out, part[i].value);
		comma = ", ";
	}
	strbuf_puts(out, "},\n");
}

static void put_description(const struct profile_design *d, const struct job_folder_notes *notes,
			    struct strbuf *out)
{
	strbuf_puts(out,
		    "// The job, described once: `postrider profile`, `postrider train` and the daemon read "
		    "this file.\n"
		    "{\n  // {name} stands for the value of a factor. No shell is used.\n  \"command\": [");
	for (size_t i = 0; i < d->n_command; i++) {
		strbuf_puts(out, i ? ", " : "");
		put_string(out, d->command[i]);
	}
	strbuf_puts(out, "],\n  \"work_dir\": ");
	put_string(out, d->work_dir);
	strbuf_puts(out, ",\n\n  // What varies, and the values that are measured. Jobs may choose among "
			 "them; njobs is how many jobs "
			 "run\n  // at the same time.\n  \"factors\": {\n");
	put_factors(out, d->factor, d->n_factors, true, false);
	strbuf_puts(out, "  },\n");
	if (d->n_fixed > count_free(d)) {
		strbuf_puts(out, "  \"fixed\": {\n");
		put_factors(out, d->fixed, d->n_fixed, false, false);
		strbuf_puts(out, "  },\n");
	}
	if (count_free(d)) {
		strbuf_puts(out,
			    "  // Neither time nor accuracy depends on these: each job may have its own.\n"
			    "  \"free\": {\n");
		put_factors(out, d->fixed, d->n_fixed, false, true);
		strbuf_puts(out, "  },\n");
	}
	if (d->epochs) {
		strbuf_puts(out, "  // Epochs of a job that gives none: a number, or a range to choose from, "
				 "\"1..4\".\n  \"epochs\": ");
		put_string(out, d->epochs);
		strbuf_puts(out, ",\n");
	}
	strbuf_puts(out, "\n");
	if (notes->accuracy[0])
		strbuf_printf(out, "  // %s\n", notes->accuracy);
	put_result(out, &d->result);
	if (notes->time[0])
		strbuf_printf(out, "\n  // %s\n", notes->time);
	if (d->kind == PROFILE_LHS)
		strbuf_printf(out, "  \"design\": \"lhs:%zu\",\n", d->lhs_runs);
	else
		strbuf_puts(out, "  \"design\": \"full\",\n");
	if (d->replications > 1)
		strbuf_printf(out, "  \"replications\": %zu,\n", d->replications);
	strbuf_printf(out, "  \"max_spread\": %g,\n  \"timeout_s\": %.0f\n}\n", d->max_spread, d->timeout_s);
}

/* A file that is measured again keeps its name: its time of change says that it is to be read again. */
static long modified(const char *file)
{
	struct stat st;

	return stat(file, &st) ? 0 : (long)st.st_mtime;
}

/* Every run with this batch failed or was ended; false without such a run. */
static bool always_failed(const struct csv *t, const char *batch)
{
	int at = csv_column(t, "batch"), status = csv_column(t, "status");
	bool seen = false;

	for (size_t i = 0; at >= 0 && status >= 0 && i < t->n_rows; i++) {
		const char *how = csv_cell(t, i, (size_t)status);

		if (strcmp(csv_cell(t, i, (size_t)at), batch))
			continue;
		if (strcmp(how, "failed") && strcmp(how, "timeout"))
			return false;
		seen = true;
	}
	return seen;
}

void job_folder_batches(const struct job_folder *f, struct strbuf *out_working, struct strbuf *out_failed)
{
	const struct profile_factor *batch = NULL;
	struct profile_design d;
	struct csv *t = NULL;

	profile_design_init(&d);
	if (!profile_design_read(&d, f->job, NULL) && !csv_read_file(f->table, &t, NULL))
		batch = profile_factor_find(&d, "batch");
	for (size_t i = 0; batch && i < batch->n_levels; i++) {
		struct strbuf *to = always_failed(t, batch->level[i]) ? out_failed : out_working;

		strbuf_printf(to, "%s%s", to->len ? ", " : "", batch->level[i]);
	}
	if (!out_working->len || !out_failed->len) {
		strbuf_reset(out_working);
		strbuf_reset(out_failed);
	}
	csv_free(t);
	profile_design_release(&d);
}

void job_folder_type(const struct job_folder *f, const char *name, struct strbuf *out)
{
	struct strbuf working = { 0 }, failed = { 0 };
	bool known = job_folder_has(f->model);

	if (known)
		strbuf_printf(out, "    // measured, model of %ld\n", modified(f->model));
	strbuf_printf(out, "    \"%s\": {\"job\": ", name);
	put_string(out, f->job);
	strbuf_puts(out, ",\n      \"model\": ");
	put_string(out, f->model);
	strbuf_puts(out, ", \"first_after\": 1");
	if (known && job_folder_has(f->table)) {
		strbuf_puts(out, ",\n      \"table\": ");
		put_string(out, f->table);
	}
	if (known && job_folder_has(f->table) && job_folder_has(f->curves)) {
		strbuf_puts(out, ",\n      \"curves\": ");
		put_string(out, f->curves);
	}
	job_folder_batches(f, &working, &failed);
	if (working.len && !working.failed)
		strbuf_printf(out, ",\n      \"batches\": [%s]", strbuf_text(&working));
	strbuf_release(&working);
	strbuf_release(&failed);
	strbuf_puts(out, "}");
}

static void put_configuration(const struct job_folder *f, struct strbuf *out)
{
	strbuf_puts(out, "// A daemon for this job alone: `postriderd --config THIS-FILE`. `postrider run` "
			 "has a daemon "
			 "for all jobs of\n// a user, and does not need this file.\n{\n  \"socket\": ");
	put_string(out, f->socket);
	strbuf_puts(out, ",\n  \"socket_mode\": \"0600\",\n  \"state_dir\": ");
	put_string(out, f->state);
	strbuf_puts(out, ",\n  // Until there is a model, jobs run without a promise, and teach one.\n"
			 "  \"types\": {\n");
	job_folder_type(f, f->name, out);
	strbuf_puts(out, "\n  }\n}\n");
}

/* daemon: the configuration of the user's daemon. */
static void put_readme(const struct job_folder *f, const char *daemon, struct strbuf *out)
{
	strbuf_printf(
		out,
		"# %s\n\n"
		"`job.json` describes the job. Change it as you like before you measure.\n\n"
		"```sh\n"
		"postrider profile %s           # measures the command and trains the model\n"
		"postrider run %s --slo 5m      # runs it with the best batch that ends in time, or "
		"says which time is possible\n"
		"```\n\n"
		"After the first run the daemon of `run` also takes jobs from the other commands. Where the "
		"machine has a daemon too, `export POSTRIDER_CONFIG=%s` says which one is meant.\n\n"
		"```sh\n"
		"postrider types; postrider submit %s --slo 5m; postrider list; postrider logs -f 1; "
		"postrider explain 1\n"
		"```\n\n"
		"| file | what |\n|---|---|\n"
		"| `job.json` | the command, what varies, where the accuracy is |\n"
		"| `postrider.json` | the configuration of a daemon for this job alone: `postriderd --config "
		"postrider.json` |\n"
		"| `runs.csv`, `curves.csv`, `runs.csv.profile/` | what was measured, and the logs |\n"
		"| `job.model` | the model that batches are chosen by |\n"
		"| `state/` | jobs and their output, of a daemon for this job alone |\n",
		f->name, f->dir, f->dir, daemon, f->name);
}

static int write_text(const char *path, struct strbuf *text, struct err *err)
{
	int rc = text->failed ? err_nomem(err, "%s", text_tail(path, 200))
			      : io_write_file(path, strbuf_text(text), text->len, err);

	strbuf_release(text);
	return rc;
}

int job_folder_configure(const struct job_folder *f, struct err *err)
{
	struct strbuf text = { 0 };

	put_configuration(f, &text);
	return write_text(f->config, &text, err);
}

int job_folder_write(const struct job_folder *f, const struct profile_design *d,
		     const struct job_folder_notes *notes, struct err *err)
{
	struct strbuf text = { 0 };
	struct own_daemon own;
	int rc;

	put_description(d, notes, &text);
	rc = write_text(f->job, &text, err);
	if (!rc)
		rc = job_folder_configure(f, err);
	if (!rc) {
		put_readme(f, own_daemon_find(&own, NULL) ? f->config : own.config, &text);
		rc = write_text(f->readme, &text, err);
	}
	return rc;
}
