/* compare.json, timing.json and the folder they lie in. jobs.csv is made in record_jobs.c. */
#include "sim/compare/record.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/csv.h"
#include "common/io.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "sim/compare/record_jobs.h"

#define COMPARE_FILE "compare.json"
#define JOBS_FILE "jobs.csv"
#define TRAINING_FILE "training.csv"
#define TIMING_FILE "timing.json"
#define CPUINFO_MAX ((size_t)16 << 20)

/* ---- compare.json ---- */

static void put_metrics(const struct compare_policy *c, struct json_writer *w)
{
	char name[64];

	for (size_t m = 0; m < METRICS; m++) {
		json_kv_number(w, metric_info[m].name, c->metric[m].mean);
		snprintf(name, sizeof name, "%s_ci", metric_info[m].name);
		json_put_key(w, name);
		json_open(w, '[');
		json_put_number(w, c->metric[m].low);
		json_put_number(w, c->metric[m].high);
		json_close(w, ']');
	}
}

static void put_versus(const struct compare_policy *c, struct json_writer *w)
{
	json_put_key(w, "versus");
	json_open(w, '{');
	for (size_t m = 0; m < METRICS; m++) {
		const struct paired_result *v = &c->versus[m];

		json_put_key(w, metric_info[m].name);
		json_open(w, '{');
		json_kv_number(w, "difference", v->difference);
		json_kv_number(w, "low", v->low);
		json_kv_number(w, "high", v->high);
		json_kv_number(w, "p", v->p);
		json_close(w, '}');
	}
	json_close(w, '}');
}

static void put_calibration(const struct compare_policy *c, struct json_writer *w)
{
	json_put_key(w, "calibration");
	json_open(w, '[');
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
	json_put_key(w, "importances");
	json_open(w, '{');
	for (size_t i = 0; i < c->n_features; i++)
		json_kv_number(w, c->feature[i], c->importance[i]);
	json_close(w, '}');
}

void record_policies(const struct compare_result *r, double level, struct json_writer *w)
{
	(void)level; /* the intervals were made at it */
	json_open(w, '[');
	for (size_t i = 0; i < r->n_policies; i++) {
		const struct compare_policy *c = &r->policy[i];

		json_open(w, '{');
		json_kv_string(w, "name", c->policy.name);
		json_kv_string(w, "title", c->policy.title);
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
	json_put_key(w, "trace");
	json_open(w, '{');
	json_kv_string(w, "name", t->name);
	json_kv_string(w, "about", t->about);
	json_kv_int(w, "jobs", (long long)t->n_jobs);
	json_kv_string(w, "fingerprint", fingerprint);
	json_close(w, '}');
}

static void put_world(const struct compare_result *r, struct json_writer *w)
{
	const struct world *world = r->world[0];
	size_t folds = world_folds(world);
	char text[512];

	json_put_key(w, "world");
	json_open(w, '{');
	json_kv_string(w, "name", world_name(world));
	world_describe(world, w);
	json_put_key(w, "splits");
	json_open(w, '[');
	for (size_t i = 0; i < folds && i < r->replications; i++) {
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
	json_kv_number(w, "confidence", p->confidence);
	json_kv_number(w, "level", p->level);
	json_kv_int(w, "replications", (long long)r->replications);
	json_kv_bool(w, "adapt", p->adapt);
	json_kv_string(w, "baseline", r->policy[r->baseline].policy.name);
	put_trace(r->trace[0], w);
	put_world(r, w);
	json_put_key(w, "cluster");
	cluster_to_json(world_cluster(r->world[0]), w);
	json_put_key(w, "disturbances");
	disturbances_to_json(world_disturbances(r->world[0]), w);
	json_put_key(w, "policies");
	record_policies(r, p->level, w);
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
	json_put_key(w, "machine");
	json_open(w, '{');
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
	json_put_key(w, "decision_s");
	json_open(w, '{');
	for (size_t i = 0; i < r->n_policies; i++) {
		json_put_key(w, r->policy[i].policy.name);
		json_open(w, '{');
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
	static const char *const own[] = { COMPARE_FILE, JOBS_FILE, JOBS_FILE ".part", TRAINING_FILE,
					   TIMING_FILE };

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (!strcmp(name, own[i]))
			return true;
	return !strcmp(name, ".") || !strcmp(name, "..") ||
	       !strncmp(name, ".postrider-", strlen(".postrider-"));
}

static int folder_error(const char *what, const char *dir, struct err *err)
{
	enum err_code code = ERR_IO;

	if (errno == ENOENT || errno == ENOTDIR)
		code = ERR_NOTFOUND;
	else if (errno == EACCES || errno == EPERM || errno == EROFS)
		code = ERR_PERM;
	return err_fail(err, code, "cannot %s folder %s: %s", what, text_tail(dir, 300), strerror(errno));
}

static int check_parent(const char *dir, struct err *err)
{
	char parent[PATH_MAX];
	size_t len = strlen(dir);
	const char *slash;

	if (len >= sizeof parent)
		return err_fail(err, ERR_ARG, "the name of a folder has %zu bytes", len);
	memcpy(parent, dir, len + 1);
	while (len > 1 && parent[len - 1] == '/')
		parent[--len] = '\0';
	slash = strrchr(parent, '/');
	if (!slash)
		memcpy(parent, ".", 2);
	else
		parent[slash == parent ? 1 : slash - parent] = '\0';
	return access(parent, W_OK | X_OK) ? folder_error("make a folder in", parent, err) : 0;
}

int record_check(const char *dir, struct err *err)
{
	char other[128] = "";
	bool ours = false;
	struct dirent *e;
	DIR *d;

	if (!*dir)
		return err_fail(err, ERR_ARG, "the folder to write to has no name");
	d = opendir(dir);
	if (!d && errno == ENOENT)
		return check_parent(dir, err);
	if (!d && errno == ENOTDIR)
		return err_fail(err, ERR_ARG, "%s is a file; name a folder to write to", text_tail(dir, 300));
	if (!d)
		return folder_error("open", dir, err);
	while ((e = readdir(d))) {
		if (!strcmp(e->d_name, COMPARE_FILE))
			ours = true;
		else if (!is_own_file(e->d_name) && !*other)
			text_printable(e->d_name, other, sizeof other);
	}
	closedir(d);
	if (!ours && *other)
		return err_fail(
			err, ERR_ARG,
			"%s holds something else (%s) and no %s of an earlier comparison: name a new or "
			"an empty folder",
			text_tail(dir, 200), other, COMPARE_FILE);
	return access(dir, W_OK | X_OK) ? folder_error("write to", dir, err) : 0;
}

static char *path_in(const char *dir, const char *name, struct err *err)
{
	size_t size = strlen(dir) + strlen(name) + 2;
	char *path = mem_alloc(size);

	if (path)
		snprintf(path, size, "%s/%s", dir, name);
	else
		err_nomem(err, "the name of a file");
	return path;
}

/* A signal between the temporary file and its rename would leave the former behind. */
static int write_text(const char *path, const struct strbuf *text, struct err *err)
{
	sigset_t stop, old;
	int status;

	if (text->failed)
		return err_nomem(err, "%s", text_tail(path, 300));
	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &stop, &old);
	status = io_write_file(path, strbuf_text(text), text->len, err);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
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

/* One of an earlier comparison beside the numbers of this one would tell a wrong story. */
static int remove_old(const char *path, struct err *err)
{
	if (unlink(path) && errno != ENOENT)
		return err_fail(err, ERR_IO, "cannot remove %s of an earlier comparison: %s",
				text_tail(path, 300), strerror(errno));
	return 0;
}

enum part { PART_JOBS, PART_TRAINING, PART_TIMING, PART_COMPARE, PARTS };

static int write_part_of(enum part part, const char *dir, const struct compare_result *r,
			 const struct record_about *a, struct err *err)
{
	static const char *const name[PARTS] = { JOBS_FILE, TRAINING_FILE, TIMING_FILE, COMPARE_FILE };
	char *path = path_in(dir, name[part], err);
	struct strbuf text = { 0 };
	int status;

	if (!path)
		return -ERR_NOMEM;
	if (part == PART_JOBS) {
		status = record_jobs_kept(r) ? record_jobs_write(path, r, err) : remove_old(path, err);
	} else if (part == PART_TRAINING && !r->training) {
		status = remove_old(path, err);
	} else {
		if (part == PART_TRAINING)
			training_text(r->training, &text);
		else if (part == PART_TIMING)
			timing_text(r, &text);
		else
			record_text(r, a, &text);
		status = write_text(path, &text, err);
	}
	strbuf_release(&text);
	free(path);
	return status;
}

int record_write(const char *dir, const struct compare_result *r, const struct record_about *a,
		 struct err *err)
{
	int status = record_check(dir, err);

	if (!status && mkdir(dir, 0777) && errno != EEXIST)
		status = folder_error("make", dir, err);
	for (enum part part = 0; !status && part < PARTS; part++)
		status = write_part_of(part, dir, r, a, err);
	return status;
}
