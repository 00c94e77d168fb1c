/* Writes and reads the journal of a campaign. See journal.h. */
#define _GNU_SOURCE
#include "scheduler/profiler/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/text/text.h"

#define BUSY "is measuring with it"

static const char *const status_name[] = { "ok", "failed", "timeout", "unstable" };

const char *profile_status_name(enum profile_status s)
{
	return status_name[s];
}

void profile_outcome_release(struct profile_outcome *o)
{
	for (size_t i = 0; i < o->n_copies; i++)
		free(o->copy[i].epoch);
	free(o->copy);
	*o = (struct profile_outcome){ 0 };
}

bool profile_outcome_cut(const struct profile_outcome *o)
{
	for (size_t i = 0; i < o->n_copies; i++) {
		if (o->copy[i].cut_epochs > 0.0)
			return true;
	}
	return false;
}

double profile_outcome_time(const struct profile_outcome *o)
{
	double sum = 0.0;

	for (size_t i = 0; i < o->n_copies; i++)
		sum += o->copy[i].time_s;
	return o->n_copies ? sum / (double)o->n_copies : NAN;
}

double profile_outcome_spread(const struct profile_outcome *o)
{
	double low = INFINITY, high = 0.0;

	for (size_t i = 0; i < o->n_copies; i++) {
		low = fmin(low, o->copy[i].time_s);
		high = fmax(high, o->copy[i].time_s);
	}
	return high > 0.0 ? (high - low) / profile_outcome_time(o) : 0.0;
}

/* ---- a line out ---- */

static void put_copy(struct json_writer *w, const struct profile_copy *c)
{
	json_open(w, '{');
	json_kv_number(w, "time_s", c->time_s);
	json_kv_number(w, "accuracy", c->accuracy);
	json_kv_number(w, "max_rss_mb", c->max_rss_mb);
	json_kv_number(w, "job_cpu_mean", c->job_cpu_mean);
	json_kv_number(w, "job_iowait_mean", c->job_iowait_mean);
	for (size_t k = 0; k < N_PHASES; k++) {
		if (c->phases.told & 1u << k)
			json_kv_number(w, phase_name[k], c->phases.s[k]);
	}
	json_kv_int(w, "exit", c->exit_code);
	json_kv_int(w, "signal", c->signal);
	if (c->cut_epochs > 0.0)
		json_kv_number(w, "cut_epochs", c->cut_epochs);
	json_kv_open(w, "curve", '[');
	for (size_t i = 0; i < c->n_epochs; i++) {
		json_open(w, '[');
		json_put_number(w, c->epoch[i].epoch);
		json_put_number(w, c->epoch[i].accuracy);
		json_put_number(w, c->epoch[i].loss);
		json_put_number(w, c->epoch[i].elapsed_s);
		json_close(w, ']');
	}
	json_close(w, ']');
	json_close(w, '}');
}

static void put_outcome(struct strbuf *out, const struct profile_journal *j, size_t run,
			const struct profile_outcome *o)
{
	const struct profile_point *p = &j->plan->run[run];
	struct strbuf setting = { 0 };
	struct json_writer w;

	profile_describe(j->design, p, &setting);
	json_begin(&w, out, false);
	json_open(&w, '{');
	json_kv_int(&w, "run", (long long)run + 1);
	json_kv_string(&w, "setting", strbuf_text(&setting));
	if (p->neighbour)
		json_kv_string(&w, "beside", j->design->neighbour[p->neighbour - 1].name);
	json_kv_int(&w, "replication", p->replication);
	json_kv_string(&w, "status", profile_status_name(o->status));
	json_kv_string(&w, "started_at", o->started_at);
	json_kv_number(&w, "cpu_mean", o->cpu_mean);
	json_kv_number(&w, "iowait_mean", o->iowait_mean);
	json_kv_number(&w, "other_load", o->other_load);
	json_kv_string(&w, "why", o->why[0] ? o->why : NULL);
	json_kv_open(&w, "copies", '[');
	for (size_t i = 0; i < o->n_copies; i++)
		put_copy(&w, &o->copy[i]);
	json_close(&w, ']');
	json_close(&w, '}');
	strbuf_puts(out, "\n");
	out->failed |= setting.failed;
	strbuf_release(&setting);
}

static void put_header(struct strbuf *out, const struct profile_design *d)
{
	struct strbuf design = { 0 };
	char created[32];
	time_t now = time(NULL);
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &tm);
	profile_design_canonical(d, &design);
	strbuf_printf(out,
		      "{\"journal\":\"postrider profile\",\"version\":%d,\"fingerprint\":\"%016" PRIx64
		      "\",\"created\":\"%s\",\"design\":%s}\n",
		      PROFILE_JOURNAL_VERSION, profile_design_fingerprint(d), created, strbuf_text(&design));
	out->failed |= design.failed;
	strbuf_release(&design);
}

/* Takes the contents of *o as the latest outcome of a run. */
static void keep(struct profile_journal *j, size_t run, struct profile_outcome *o)
{
	struct profile_outcome *at = &j->run[run];
	size_t tries = at->tries + 1;

	j->n_done += !at->done;
	profile_outcome_release(at);
	*at = *o;
	at->done = true;
	at->tries = tries;
	*o = (struct profile_outcome){ 0 };
}

int profile_journal_append(struct profile_journal *j, size_t run, struct profile_outcome *o, struct err *err)
{
	struct strbuf line = { 0 };
	int rc;

	put_outcome(&line, j, run, o);
	rc = json_lines_append(&j->file, &line, true, err);
	strbuf_release(&line);
	if (!rc)
		keep(j, run, o);
	return rc;
}

/* ---- a line in ---- */

static int get_curve(const struct json *v, struct profile_copy *c)
{
	size_t n = json_size(v);

	if (n > PROFILE_MAX_EPOCHS)
		return -1;
	c->epoch = n ? mem_calloc(n, sizeof *c->epoch) : NULL;
	if (n && !c->epoch)
		return -1;
	for (v = json_first(v); v; v = json_next(v)) {
		const struct json *m = json_first(v);
		struct profile_epoch *e = &c->epoch[c->n_epochs++];
		double *field[] = { &e->epoch, &e->accuracy, &e->loss, &e->elapsed_s };

		for (size_t i = 0; i < 4; i++) {
			*field[i] = json_number(m, NAN);
			m = m ? json_next(m) : NULL;
		}
	}
	return 0;
}

static int get_copies(const struct json *v, struct profile_outcome *o, size_t n)
{
	if (json_type(v) != JSON_ARRAY || json_size(v) != n)
		return -1;
	o->copy = mem_calloc(n, sizeof *o->copy);
	if (!o->copy)
		return -1;
	for (v = json_first(v); v; v = json_next(v)) {
		struct profile_copy *c = &o->copy[o->n_copies++];

		c->time_s = json_number(json_get(v, "time_s"), NAN);
		c->accuracy = json_number(json_get(v, "accuracy"), NAN);
		c->max_rss_mb = json_number(json_get(v, "max_rss_mb"), NAN);
		c->job_cpu_mean = json_number(json_get(v, "job_cpu_mean"), NAN);
		c->job_iowait_mean = json_number(json_get(v, "job_iowait_mean"), NAN);
		for (size_t k = 0; k < N_PHASES; k++) {
			c->phases.s[k] = json_number(json_get(v, phase_name[k]), NAN);
			c->phases.told |= isnan(c->phases.s[k]) ? 0u : 1u << k;
		}
		c->exit_code = (int)fmin(fmax(json_number(json_get(v, "exit"), 0.0), 0.0), 255.0);
		c->signal = (int)fmin(fmax(json_number(json_get(v, "signal"), 0.0), 0.0), 255.0);
		c->cut_epochs = fmax(json_number(json_get(v, "cut_epochs"), 0.0), 0.0);
		if (get_curve(json_get(v, "curve"), c))
			return -1;
		if (o->status == PROFILE_OK && !(c->time_s > 0.0))
			return -1;
	}
	return 0;
}

/* Neighbours come and go between two sessions, so that a run beside one has no number of its own: its setting
 * names it. SIZE_MAX: no such run is planned now. */
static size_t find_beside(const struct profile_journal *j, const char *setting)
{
	struct strbuf shown = { 0 };
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < j->plan->n && found == SIZE_MAX; i++) {
		if (!j->plan->run[i].neighbour)
			continue;
		strbuf_reset(&shown);
		profile_describe(j->design, &j->plan->run[i], &shown);
		if (!strcmp(strbuf_text(&shown), setting))
			found = i;
	}
	strbuf_release(&shown);
	return found;
}

static int get_outcome(const struct profile_journal *j, const struct json *v, size_t *out_run,
		       struct profile_outcome *out)
{
	double run = json_number(json_get(v, "run"), 0.0);
	const char *status = json_string(json_get(v, "status"), "");
	struct profile_outcome o = { .status = PROFILE_UNSTABLE };

	if (json_string(json_get(v, "beside"), NULL)) {
		*out_run = find_beside(j, json_string(json_get(v, "setting"), ""));
		if (*out_run == SIZE_MAX)
			return 0;
	} else if (run >= 1.0 && run <= (double)j->plan->n) {
		*out_run = (size_t)run - 1;
	} else {
		return -1;
	}
	for (int s = PROFILE_OK; s < PROFILE_UNSTABLE; s++) {
		if (!strcmp(status, status_name[s]))
			o.status = (enum profile_status)s;
	}
	if (o.status == PROFILE_UNSTABLE)
		return -1;
	snprintf(o.started_at, sizeof o.started_at, "%s", json_string(json_get(v, "started_at"), ""));
	snprintf(o.why, sizeof o.why, "%s", json_string(json_get(v, "why"), ""));
	o.cpu_mean = json_number(json_get(v, "cpu_mean"), NAN);
	o.iowait_mean = json_number(json_get(v, "iowait_mean"), NAN);
	o.other_load = json_number(json_get(v, "other_load"), NAN);
	if (get_copies(json_get(v, "copies"), &o, profile_copies(j->design, &j->plan->run[*out_run]))) {
		profile_outcome_release(&o);
		return -1;
	}
	*out = o;
	return 0;
}

static int check_header(const struct profile_journal *j, const struct json *v, struct err *err)
{
	const char *kind = json_string(json_get(v, "journal"), "");
	double version = json_number(json_get(v, "version"), 0.0);
	char text[320];

	if (strcmp(kind, "postrider profile"))
		return err_fail(err, ERR_FORMAT, "%s:1: this is not a journal of postrider profile",
				text_tail(j->file.path, 300));
	if (version != PROFILE_JOURNAL_VERSION)
		return err_fail(err, ERR_FORMAT, "%s:1: version %g; this program reads version %d",
				text_tail(j->file.path, 300), version, PROFILE_JOURNAL_VERSION);
	if (profile_design_differs(j->design, json_get(v, "design"), text, sizeof text))
		return err_fail(
			err, ERR_FORMAT,
			"%s has another design: %s. Use that design again, write to another file, or add "
			"--restart",
			text_tail(j->file.path, 100), text);
	return 0;
}

static int take_line(void *owner, const struct json *v, size_t line, struct err *err)
{
	struct profile_journal *j = owner;
	struct profile_outcome o = { 0 };
	size_t run;

	if (line == 1)
		return check_header(j, v, err);
	if (get_outcome(j, v, &run, &o))
		return JSON_LINES_STRANGE;
	if (run != SIZE_MAX)
		keep(j, run, &o);
	return 0;
}

/* ---- opening ---- */

static int make_folder(const char *dir, struct err *err)
{
	if (mkdir(dir, 0777) && errno != EEXIST)
		return err_fail(err, errno == EACCES || errno == EPERM || errno == EROFS ? ERR_PERM : ERR_IO,
				"cannot make the folder %s: %s", text_tail(dir, 300), strerror(errno));
	return 0;
}

static void sync_folder(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0) {
		fsync(fd); /* otherwise the file may have no name after a crash, and all is measured again */
		close(fd);
	}
}

static int set_aside(struct profile_journal *j, const char *dir, struct err *err)
{
	struct strbuf old = { 0 };
	int rc;

	strbuf_printf(&old, "%s.old", j->file.path);
	if (old.failed)
		rc = err_nomem(err, NULL);
	else if (rename(j->file.path, strbuf_text(&old)))
		rc = err_fail(err, errno == EACCES || errno == EPERM ? ERR_PERM : ERR_IO,
			      "cannot rename %s: %s", text_tail(j->file.path, 300), strerror(errno));
	else {
		json_lines_close(&j->file);
		rc = json_lines_open(&j->file, dir, BUSY, err);
	}
	strbuf_release(&old);
	return rc;
}

int profile_journal_open(struct profile_journal *j, const char *dir, const struct profile_design *d,
			 const struct profile_plan *plan, enum profile_open how, struct err *err)
{
	const struct json_lines_reader reader = { PROFILE_JOURNAL_MAX, take_line, j,
						  "this is not a run of this design" };
	struct strbuf header = { 0 };
	int rc;

	*j = (struct profile_journal){ .design = d, .plan = plan, .file.fd = -1 };
	j->run = mem_calloc(plan->n, sizeof *j->run);
	rc = j->run ? 0 : err_nomem(err, "the journal");
	if (!rc && how != PROFILE_LOOK)
		rc = make_folder(dir, err);
	if (!rc)
		rc = json_lines_open(&j->file, dir, how == PROFILE_LOOK ? NULL : BUSY, err);
	if (!rc && how == PROFILE_RESTART && lseek(j->file.fd, 0, SEEK_END) > 0)
		rc = set_aside(j, dir, err);
	if (!rc)
		rc = json_lines_read(&j->file, &reader, err);
	j->n_cut = j->file.torn;
	j->existed = j->file.len > 0 || j->n_cut;
	if (rc || how == PROFILE_LOOK)
		return rc;
	if (j->n_cut)
		rc = json_lines_cut(&j->file, err);
	if (!rc && j->file.len == 0) {
		put_header(&header, d);
		rc = json_lines_append(&j->file, &header, true, err);
		sync_folder(dir);
	}
	strbuf_release(&header);
	return rc;
}

void profile_journal_close(struct profile_journal *j)
{
	if (!j)
		return;
	for (size_t i = 0; j->run && i < j->plan->n; i++)
		profile_outcome_release(&j->run[i]);
	free(j->run);
	json_lines_close(&j->file);
	*j = (struct profile_journal){ .file.fd = -1 };
}
