/* The daemon that is played again: its folder, its configuration, its models. See replayed.h. */
#define _GNU_SOURCE
#include "scheduler/daemon/verify/replayed.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/io.h"
#include "common/mem.h"
#include "common/text/text.h"

#define MOST_PENDING 20000 /* rows that its store has not written */

/* ---- its folder ---- */

int replayed_open(struct replayed *r, const struct past *p, const char *recorded, struct err *err)
{
	const char *tmp = getenv("TMPDIR");

	*r = (struct replayed){ .past = p, .recorded = recorded };
	snprintf(r->dir, sizeof r->dir, "%.200s/postrider-verify-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(r->dir)) {
		int rc = err_fail(err, ERR_IO, "cannot make a folder %s: %s", r->dir, strerror(errno));

		r->dir[0] = '\0';
		return rc;
	}
	snprintf(r->config, sizeof r->config, "%s/config.json", r->dir);
	snprintf(r->state, sizeof r->state, "%s/state", r->dir);
	r->played = (struct played){ .executor = executor_played };
	r->params = (struct daemon_params){
		.config_path = r->config, .state_dir = r->state, .now_ns = &r->now_ns, .played = &r->played
	};
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *at)
{
	(void)st;
	(void)what;
	(void)at;
	return remove(path);
}

static void drop_slots(struct replayed *r)
{
	for (size_t i = 0; i < r->n_slots; i++) {
		free(r->slot[i].type);
		free(r->slot[i].link);
	}
	free(r->slot);
	r->slot = NULL;
	r->n_slots = 0;
}

void replayed_close(struct replayed *r)
{
	daemon_free(r->d);
	drop_slots(r);
	free(r->unstarted);
	if (r->dir[0])
		nftw(r->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	*r = (struct replayed){ 0 };
}

/* What the job was given when it arrived; the model predicts the rest again. */
static void take_arrival(const struct past_decision *d, struct job_record *row)
{
	if (d && !d->damaged) {
		row->batch = d->choice.batch;
		if (!isnan(d->choice.epochs))
			row->epochs = d->choice.epochs;
	}
	row->run_predicted_s = row->run_upper_s = row->guard_s = row->model_s = NAN;
	row->work_s = row->cpu_share = row->disk_share = NAN;
}

/* As the row was at that moment: what came later is taken out. */
static struct job_record row_at(const struct past_job *j, int64_t until_ns)
{
	struct job_record row = j->is->row;

	if ((row.ended_ns && row.ended_ns < until_ns) ||
	    (row.state == JOB_REJECTED && row.submitted_ns < until_ns))
		return row;
	if (row.submitted_ns >= until_ns) {
		row.verdict = VERDICT_WAITING;
		row.submitted_ns = j->arrived_ns;
	}
	row.state = row.started_ns && row.started_ns < until_ns ? JOB_RUNNING : JOB_QUEUED;
	if (row.state == JOB_QUEUED) {
		row.started_ns = 0;
		take_arrival(j->arrival, &row);
	}
	row.ended_ns = 0;
	row.exit_code = -1;
	row.exit_signal = 0;
	row.accuracy = row.max_rss_mb = row.cpu_s = row.foreseen_s = row.stopped_epoch = NAN;
	row.steered = row.steer_kept = NULL;
	row.slo_outcome = SLO_NONE;
	row.reason = NULL;
	return row;
}

int replayed_fill(struct replayed *r, int64_t until_ns, struct err *err)
{
	const struct store_params params = { .dir = r->state, .durability = DURABLE_NONE };
	struct store *s = NULL;
	int rc;

	daemon_free(r->d);
	r->d = NULL;
	nftw(r->state, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	if (mkdir(r->state, 0700))
		return err_fail(err, ERR_IO, "cannot make the folder %s: %s", r->state, strerror(errno));
	rc = store_open(&params, &s, err);
	for (size_t i = 0; i < r->past->n_jobs && !rc; i++) {
		struct job_record row;

		if (r->past->job[i].arrived_ns >= until_ns)
			continue;
		row = row_at(&r->past->job[i], until_ns);
		rc = store_add_job(s, &row, err);
		if (i % 256 == 0)
			store_commit(s);
		while (store_pending(s) > MOST_PENDING)
			usleep(1000);
	}
	store_close(s);
	return rc;
}

/* ---- its models ---- */

/* The file where it was, or where it is now if the whole state folder has moved. */
static bool find_model(const struct replayed *r, const char *path, const char *was_state, double bytes,
		       char *out, size_t size)
{
	size_t n = was_state ? strlen(was_state) : 0;
	struct stat st;

	snprintf(out, size, "%s", path);
	if (!stat(out, &st) && (double)st.st_size == bytes)
		return true;
	if (!n || strncmp(path, was_state, n) || path[n] != '/')
		return false;
	snprintf(out, size, "%s%s", r->recorded, path + n);
	return !stat(out, &st) && (double)st.st_size == bytes;
}

static const char *link_of(const struct replayed *r, const char *type)
{
	for (size_t i = 0; i < r->n_slots; i++)
		if (type && r->slot[i].type ? !strcmp(type, r->slot[i].type) : type == r->slot[i].type)
			return r->slot[i].link;
	return NULL;
}

/* A link to the file: another name where another model was read, because the same file is the same model. */
static int link_model(struct replayed *r, const struct json *m, const char *was_state, struct slot_file *out,
		      struct err *err)
{
	const char *type = json_string(json_get(m, "type"), NULL),
		   *name = json_string(json_get(m, "name"), NULL),
		   *path = json_string(json_get(m, "path"), NULL), *before = link_of(r, type);
	char found[PATH_MAX], real[PATH_MAX], link[PATH_MAX];

	*out = (struct slot_file){ .type = type ? mem_strdup(type) : NULL };
	if (before && name && json_bool(json_get(m, "same"), false)) {
		out->link = mem_strdup(before);
		return 0;
	}
	snprintf(link, sizeof link, "%s/%u.model", r->dir, ++r->n_links);
	if (name && (!path || !find_model(r, path, was_state, json_number(json_get(m, "bytes"), NAN), found,
					  sizeof found)))
		return err_fail(err, ERR_NOTFOUND, "the model %s is gone: it was %s", name,
				path ? text_tail(path, 150) : "in no file");
	if (name && (!realpath(found, real) || symlink(real, link)))
		return err_fail(err, ERR_IO, "cannot link %s: %s", link, strerror(errno));
	out->link = name || path ? mem_strdup(link) : NULL; /* without a model: a file that is not there */
	return 0;
}

static int link_models(struct replayed *r, const struct json *setup, struct err *err)
{
	const struct json *models = json_get(setup, "models");
	const char *was_state = json_string(json_path(setup, "config.state_dir"), NULL);
	size_t n = json_size(models), i = 0;
	struct slot_file *slot = mem_calloc(n + 1, sizeof *slot);
	int rc = slot ? 0 : err_nomem(err, "the models");

	for (const struct json *m = json_first(models); m && !rc; m = json_next(m))
		rc = link_model(r, m, was_state, &slot[i++], err);
	drop_slots(r);
	r->slot = slot;
	r->n_slots = slot ? i : 0;
	return rc;
}

/* ---- its configuration ---- */

/* What would reach out into the world, is the daemon's own business, or names files that only a training
 * reads. */
static bool is_left_out(const char *key, int depth)
{
	static const char *const top[] = { "http",       "metrics_file", "notify", "notify_of",
					   "log",        "state_dir",    "cgroup", "idle_exit_s",
					   "durability", "model",        NULL };
	static const char *const learning[] = { "table", "schema", "curves", NULL };
	static const char *const type[] = { "job", "table", "schema", "curves", "model", NULL };
	const char *const *list = depth == 0 ? top : depth == 1 ? learning : type;

	while (*list && strcmp(*list, key))
		list++;
	return *list != NULL;
}

static void put_value(struct json_writer *w, const struct json *v)
{
	switch (json_type(v)) {
	case JSON_BOOL: json_put_bool(w, json_bool(v, false)); break;
	case JSON_NUMBER: json_put_number(w, json_number(v, NAN)); break;
	case JSON_STRING: json_put_string(w, json_string(v, NULL)); break;
	case JSON_ARRAY:
	case JSON_OBJECT:
		json_open(w, json_type(v) == JSON_ARRAY ? '[' : '{');
		for (const struct json *m = json_first(v); m; m = json_next(m)) {
			if (json_type(v) == JSON_OBJECT)
				json_put_key_of(w, json_key(m), strlen(json_key(m)));
			put_value(w, m);
		}
		json_close(w, json_type(v) == JSON_ARRAY ? ']' : '}');
		break;
	default: json_put_null(w);
	}
}

static void put_part(struct json_writer *w, const struct json *part, int depth)
{
	json_open(w, '{');
	for (const struct json *m = json_first(part); m; m = json_next(m)) {
		if (is_left_out(json_key(m), depth) || json_type(m) == JSON_NULL)
			continue;
		json_put_key_of(w, json_key(m), strlen(json_key(m)));
		put_value(w, m);
	}
}

static void put_config(const struct replayed *r, struct json_writer *w, const struct json *config)
{
	json_open(w, '{');
	for (const struct json *m = json_first(config); m; m = json_next(m)) {
		const char *key = json_key(m);
		bool types = !strcmp(key, "types");

		if (is_left_out(key, 0) || json_type(m) == JSON_NULL)
			continue;
		json_put_key_of(w, key, strlen(key));
		if (!strcmp(key, "learning")) {
			put_part(w, m, 1);
			json_close(w, '}');
		} else if (types) {
			json_open(w, '{');
			for (const struct json *t = json_first(m); t; t = json_next(t)) {
				const char *link = link_of(r, json_key(t));

				json_put_key_of(w, json_key(t), strlen(json_key(t)));
				put_part(w, t, 2);
				if (link)
					json_kv_string(w, "model", link);
				json_close(w, '}');
			}
			json_close(w, '}');
		} else {
			put_value(w, m);
		}
	}
	if (link_of(r, NULL))
		json_kv_string(w, "model", link_of(r, NULL));
	json_kv_string(w, "state_dir", r->state);
	json_kv_string(w, "durability", "none");
	json_kv_open(w, "log", '{');
	json_kv_string(w, "level", "error");
	json_close(w, '}');
	json_close(w, '}');
}

static int write_setup(struct replayed *r, const struct json *setup, struct err *err)
{
	struct strbuf text = { 0 };
	struct json_writer w;
	int rc = link_models(r, setup, err);

	json_begin(&w, &text, false);
	put_config(r, &w, json_get(setup, "config"));
	if (!rc)
		rc = text.failed ? err_nomem(err, "the configuration")
				 : io_write_file(r->config, strbuf_text(&text), text.len, err);
	strbuf_release(&text);
	return rc;
}

/* The models are those that were in use then, as far as their names tell. */
static int check_models(const struct replayed *r, const struct json *setup, struct err *err)
{
	for (const struct json *m = json_first(json_get(setup, "models")); m; m = json_next(m)) {
		const char *type = json_string(json_get(m, "type"), NULL);
		const char *name = json_string(json_get(m, "name"), "");
		const struct model_slot *s = &r->d->setup->slot[setup_slot_of(r->d->setup, type)];

		if (strcmp(s->name, name))
			return err_fail(err, ERR_NOTFOUND, "the model %s is gone: its file now holds %s",
					*name ? name : "(none)", s->name[0] ? s->name : "none");
	}
	return 0;
}

static int read_setup(const char *text, struct json **out, struct err *err)
{
	int rc = json_parse("inputs", text ? text : "", text ? strlen(text) : 0, out, err);

	if (!rc && json_type(json_get(*out, "config")) != JSON_OBJECT) {
		json_free(*out);
		rc = err_fail(err, ERR_FORMAT, "the inputs are damaged: no configuration");
	}
	return rc;
}

int replayed_begin(struct replayed *r, const char *text, struct err *err)
{
	struct json *setup = NULL;
	int rc;

	daemon_free(r->d);
	r->d = NULL;
	drop_slots(r); /* another process: what was read is read again */
	rc = read_setup(text, &setup, err);
	if (rc)
		return rc;
	rc = write_setup(r, setup, err);
	r->played.lag_s = NAN;
	r->played.unstarted = r->unstarted;
	r->played.n_unstarted = r->n_unstarted;
	if (!rc)
		rc = daemon_new(&r->params, &r->d, err);
	r->n_unstarted = r->played.n_unstarted = 0;
	if (!rc)
		rc = check_models(r, setup, err);
	json_free(setup);
	return rc;
}

int replayed_reload(struct replayed *r, const char *text, struct err *err)
{
	struct json *setup = NULL;
	int rc = read_setup(text, &setup, err);

	if (rc)
		return rc;
	rc = write_setup(r, setup, err);
	if (!rc)
		rc = daemon_reload_now(r->d, err);
	if (!rc)
		rc = check_models(r, setup, err);
	json_free(setup);
	return rc;
}
