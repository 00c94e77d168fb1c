/* The configuration of the daemon of a user: the types it knows, each of them a folder. See own_daemon.h.
 *
 * Its types are in the order of their last use. A file is written only if the daemon's own reader takes it,
 * and it is as it was before if the daemon does not. */
#define _GNU_SOURCE
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/io.h"
#include "common/mem.h"
#include "common/text/hash.h"
#include "common/text/text.h"
#include "scheduler/cli/cli.h"
#include "scheduler/cli/job/own_daemon.h"
#include "scheduler/config/config.h"

/* The folder of a type: its description says which. False: it does not exist any more, or is not ours. */
static bool folder_of(const struct json *type, struct job_folder *out)
{
	const char *job = json_string(json_get(type, "job"), NULL);
	char dir[PATH_MAX];
	const char *slash = job ? strrchr(job, '/') : NULL;

	if (!slash || (size_t)(slash - job) >= sizeof dir || !job_folder_has(job))
		return false;
	snprintf(dir, sizeof dir, "%.*s", (int)(slash - job), job);
	return !job_folder_open(out, dir, "", NULL);
}

/* ---- types that are not in it any more ---- */

static bool is_left_out(const struct own_types *e, const char *name)
{
	char line[JOB_FOLDER_NAME + 3];

	snprintf(line, sizeof line, "\n%.64s\n", name);
	return strstr(strbuf_text(&e->out), line) != NULL;
}

static void leave_out(struct own_types *e, const char *name)
{
	strbuf_printf(&e->out, "\n%s\n", name);
}

static void forgotten_at(const struct own_daemon *o, const char *name, char out[PATH_MAX])
{
	snprintf(out, PATH_MAX, "%.3000s/forgotten/%.64s.json", o->dir, name);
}

/* The object of a type that was forgotten; NULL: none of that name. */
static struct json *forgotten(const struct own_daemon *o, const char *name)
{
	char path[PATH_MAX];
	struct json *v = NULL;

	forgotten_at(o, name, path);
	return job_folder_has(path) && !json_read_file(path, CONFIG_MAX_BYTES, &v, NULL) ? v : NULL;
}

/* What it learnt is found by its name, and what its user has added is in its object: both wait for it. */
static int forget(const struct own_daemon *o, const struct json *type, struct err *err)
{
	char path[PATH_MAX];
	struct strbuf text = { 0 };
	struct json_writer w;
	int rc;

	snprintf(path, sizeof path, "%.3000s/forgotten", o->dir);
	rc = own_daemon_make_folder(path, err);
	forgotten_at(o, json_key(type), path);
	json_begin(&w, &text, false);
	cli_json_copy(&w, type);
	if (!rc && text.failed)
		rc = err_nomem(err, "the configuration");
	if (!rc)
		rc = io_write_file(path, strbuf_text(&text), text.len, err);
	strbuf_release(&text);
	return rc;
}

static bool is_of(const struct json *type, const struct job_folder *folder)
{
	return !strcmp(json_string(json_get(type, "job"), ""), folder->job);
}

/* What the folder is called: the name it has there, the one it had, its own, or with a number behind it if
 * that is taken. *out_was: its object, if it was forgotten. */
static void name_it(struct own_types *e, const struct json *types, struct json **out_was)
{
	const struct job_folder *folder = e->folder;
	char name[2][JOB_FOLDER_NAME + 1];
	bool is_free[2];

	snprintf(name[0], sizeof name[0], "%s", folder->name);
	snprintf(name[1], sizeof name[1], "%.50s-%08x", folder->name,
		 (unsigned)hash_text(HASH_START, folder->dir));
	for (const struct json *t = json_first(types); t; t = json_next(t)) {
		if (is_of(t, folder)) {
			snprintf(e->type, JOB_FOLDER_NAME + 1, "%s", json_key(t));
			return;
		}
	}
	for (size_t i = 0; i < 2; i++) {
		struct json *was = forgotten(e->o, name[i]);

		is_free[i] = !json_get(types, name[i]);
		if (is_free[i] && was && is_of(was, folder)) {
			snprintf(e->type, JOB_FOLDER_NAME + 1, "%.64s", name[i]);
			*out_was = was;
			return;
		}
		is_free[i] &= !job_folder_has(json_string(json_get(was, "job"), ""));
		json_free(was);
	}
	snprintf(e->type, JOB_FOLDER_NAME + 1, "%.64s", name[!is_free[0]]);
}

/* A folder that was removed is forgotten, too. */
static bool stays(const struct own_types *e, const struct json *type, struct job_folder *out)
{
	return !(e->folder && !strcmp(json_key(type), e->type)) && !is_left_out(e, json_key(type)) &&
	       folder_of(type, out);
}

/* Those unused longest come first in the file. What has jobs has to stay. */
static int make_room(struct own_types *e, const struct json *types, struct err *err)
{
	size_t n = e->folder != NULL;
	struct job_folder other;

	for (const struct json *t = json_first(types); t; t = json_next(t))
		n += stays(e, t, &other);
	for (const struct json *t = json_first(types); t && n > CONFIG_MAX_TYPES; t = json_next(t)) {
		if (!stays(e, t, &other) || e->has_jobs(e->owner, json_key(t)))
			continue;
		leave_out(e, json_key(t));
		n--;
	}
	if (n > CONFIG_MAX_TYPES)
		return err_fail(
			err, ERR_BUSY,
			"your daemon has jobs of %d commands that wait or run, and cannot take another "
			"one until those of one have ended",
			CONFIG_MAX_TYPES);
	return 0;
}

/* ---- the file ---- */

static void put_text(struct strbuf *out, const char *key, const char *text)
{
	struct json_writer w;

	strbuf_printf(out, "  \"%s\": ", key);
	json_begin(&w, out, false);
	json_put_string(&w, text);
	strbuf_puts(out, ",\n");
}

/* A description that changed changes this file, so that a daemon that runs reads both again. */
static void put_described(const struct job_folder *f, struct strbuf *out)
{
	struct stat st;

	if (!stat(f->job, &st))
		strbuf_printf(out, "    // described at %lld.%09ld\n", (long long)st.st_mtim.tv_sec,
			      st.st_mtim.tv_nsec);
}

/* What the user has added to an object of the file: all but the keys that are written here. */
static void put_kept(const struct json *from, const char *const *ours, const char *before, const char *after,
		     struct strbuf *out)
{
	struct json_writer w;

	for (const struct json *m = json_first(from); m; m = json_next(m)) {
		bool mine = false;

		for (size_t i = 0; ours[i]; i++)
			mine |= !strcmp(ours[i], json_key(m));
		if (mine)
			continue;
		strbuf_puts(out, before);
		json_begin(&w, out, false);
		json_put_string(&w, json_key(m));
		strbuf_puts(out, ": ");
		json_begin(&w, out, false);
		cli_json_copy(&w, m);
		strbuf_puts(out, after);
	}
}

/* gpus: how many the machine has, which a job may ask for unless its type says otherwise. */
static void put_type(const struct job_folder *f, const char *name, const struct json *was, double gpus,
		     struct strbuf *out)
{
	static const char *const ours[] = {
		"job", "model", "first_after", "table", "curves", "batches", NULL
	};

	put_described(f, out);
	job_folder_type(f, name, out);
	if (out->len) /* reopen the object that the folder has closed */
		out->text[--out->len] = '\0';
	put_kept(was, ours, ",\n      ", "", out);
	if (gpus > 0.0 && !json_get(was, "resources"))
		strbuf_printf(out, ",\n      \"resources\": {\"max_gpus\": %.0f}", gpus);
	strbuf_puts(out, "}");
}

/* folder NULL: no other than those that are there; then the daemon is to have a page. */
static void put_configuration(const struct own_types *e, const struct json *was,
			      const struct json *forgotten_type, struct strbuf *out)
{
	const struct own_daemon *o = e->o;
	const struct job_folder *folder = e->folder;
	static const char *const ours[] = { "socket", "state_dir", "idle_exit_s", "types", NULL };
	const char *comma = "";
	const struct json *types = json_get(was, "types");
	double gpus = json_number(json_path(was, "resources.gpus"), 0.0);
	struct job_folder other;

	strbuf_puts(
		out,
		"// The daemon of `postrider run`, which writes this file: one job type for each command or "
		"folder.\n// Keys that you add or change are kept, here and in a type, but not your "
		"comments.\n{\n");
	put_text(out, "socket", o->socket);
	put_text(out, "state_dir", o->state);
	if (!json_get(was, "socket_mode"))
		put_text(out, "socket_mode", "0600");
	strbuf_printf(out, "  \"idle_exit_s\": %.9g,\n",
		      isnan(e->idle_s) ? json_number(json_get(was, "idle_exit_s"), OWN_DAEMON_IDLE_S)
				       : e->idle_s);
	if (!json_get(was, "learning"))
		strbuf_puts(out, "  \"learning\": {\"retrain_after\": 24},\n");
	if (!folder && !json_get(was, "http")) /* this machine only, at any free port */
		strbuf_puts(out, "  \"http\": {\"listen\": \"127.0.0.1:0\"},\n");
	put_kept(was, ours, "  ", ",\n", out);
	strbuf_puts(out, "  \"types\": {\n");
	for (const struct json *t = json_first(types); t; t = json_next(t)) {
		if (!stays(e, t, &other))
			continue;
		strbuf_puts(out, comma);
		put_type(&other, json_key(t), t, gpus, out);
		comma = ",\n";
	}
	if (folder) {
		strbuf_puts(out, comma);
		put_type(folder, e->type, forgotten_type ? forgotten_type : json_get(types, e->type), gpus,
			 out);
	}
	strbuf_puts(out, "\n  }\n}\n");
}

/* Those left out are kept, and the one that is there is not among them any more. */
static int write_all(const struct own_types *e, const struct json *types, const struct strbuf *fresh,
		     struct err *err)
{
	char path[PATH_MAX];
	int rc = 0;

	for (const struct json *t = json_first(types); t && !rc; t = json_next(t)) {
		if (is_left_out(e, json_key(t)))
			rc = forget(e->o, t, err);
	}
	if (!rc)
		rc = io_write_file(e->o->config, strbuf_text(fresh), fresh->len, err);
	if (!rc && e->folder) {
		forgotten_at(e->o, e->type, path);
		unlink(path);
	}
	return rc;
}

/* As the daemon will read it. */
static int check(const struct own_types *e, const struct strbuf *fresh, struct err *err)
{
	struct config *config = NULL;
	struct json *v = NULL;
	int rc = fresh->failed ? err_nomem(err, "the configuration")
			       : json_parse_settings(e->o->config, strbuf_text(fresh), fresh->len, &v, err);

	if (!rc)
		rc = config_from_json(e->o->config, v, &config, err);
	config_free(config);
	json_free(v);
	return rc;
}

/* What is wrong with a command's own folder was typed: the file that it would have made says nothing to its
 * user. */
static void refuse(const struct own_types *e, const struct err *why, struct err *err)
{
	size_t len = strlen(e->o->dir);
	bool typed = e->folder && !strncmp(e->folder->dir, e->o->dir, len) && e->folder->dir[len] == '/';
	char key[JOB_FOLDER_NAME + 16];
	const char *at;

	snprintf(key, sizeof key, ": types.%s.job: ", e->folder ? e->type : "");
	at = typed ? strstr(why->text, key) : NULL;
	if (at)
		err_fail(err, ERR_ARG, "this command: %s", at + strlen(key));
	else if (err)
		*err = *why;
}

/* Of the configuration v (NULL: there is none), whose text is in e->now. */
static int change(struct own_types *e, const struct json *v, struct err *err)
{
	const struct json *types = json_get(v, "types");
	struct strbuf fresh = { 0 };
	struct json *was = NULL;
	int rc;

	if (e->folder)
		name_it(e, types, &was);
	do {
		struct err why = { 0 };

		strbuf_reset(&fresh);
		rc = make_room(e, types, err);
		if (!rc)
			put_configuration(e, v, was, &fresh);
		if (rc || (e->now && !fresh.failed && fresh.len == e->now_len &&
			   !memcmp(strbuf_text(&fresh), e->now, fresh.len)))
			break;
		rc = check(e, &fresh, &why);
		if (rc && own_types_leave_out(e, why.text))
			continue;
		if (rc)
			refuse(e, &why, err);
		if (!rc)
			rc = write_all(e, types, &fresh, err);
		e->changed |= !rc;
		break;
	} while (true);
	json_free(was);
	strbuf_release(&fresh);
	return rc;
}

int own_types_enlist(struct own_types *e, struct err *err)
{
	struct json *v = NULL;
	int rc = 0;

	free(e->now);
	e->now = NULL;
	if (job_folder_has(e->o->config))
		rc = io_read_file(e->o->config, CONFIG_MAX_BYTES, &e->now, &e->now_len, err);
	if (!rc && !e->was && e->now && !e->changed) {
		e->was = mem_strndup(e->now, e->now_len);
		e->was_len = e->now_len;
		rc = e->was ? 0 : err_nomem(err, "the configuration");
	}
	/* What the user has written into it is not thrown away for a missing comma. */
	if (!rc && e->now)
		rc = json_parse_settings(e->o->config, e->now, e->now_len, &v, err);
	if (!rc)
		rc = change(e, v, err);
	json_free(v);
	return rc;
}

/* "FILE: types.NAME.model: ..." */
bool own_types_leave_out(struct own_types *e, const char *why)
{
	const char *at = strstr(why, ": types."), *name = at ? at + strlen(": types.") : "";
	char found[JOB_FOLDER_NAME + 1] = "", other[JOB_FOLDER_NAME + 1];
	struct json *v = NULL;

	if (!at || !e->now || json_parse_settings("", e->now, e->now_len, &v, NULL))
		return false;
	for (const struct json *t = json_first(json_get(v, "types")); t; t = json_next(t)) {
		size_t len = strlen(json_key(t));

		/* a name may have a dot in it: the longest counts */
		if (len <= JOB_FOLDER_NAME && len > strlen(found) && !strncmp(name, json_key(t), len) &&
		    strchr(".: ", name[len]))
			snprintf(found, sizeof found, "%s", json_key(t));
	}
	json_free(v);
	snprintf(other, sizeof other, "%s", e->folder ? e->type : "");
	if (!found[0] || !strcmp(found, other) || is_left_out(e, found))
		return false;
	cli_notice(e->c, "your daemon does without the command %s until it is run again: %s", found,
		   cli_clean(why));
	leave_out(e, found);
	return !e->out.failed;
}

void own_types_take_back(struct own_types *e)
{
	if (!e->changed)
		return;
	if (e->was)
		io_write_file(e->o->config, e->was, e->was_len, NULL);
	else
		unlink(e->o->config);
	e->changed = false;
}

void own_types_release(struct own_types *e)
{
	strbuf_release(&e->out);
	free(e->was);
	free(e->now);
}
