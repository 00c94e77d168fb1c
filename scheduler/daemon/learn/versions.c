/* The folder of trained models and its journal. See versions.h. */
#include "scheduler/daemon/learn/versions.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/io.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/text/text.h"

#define JOURNAL_MAX_BYTES ((size_t)4 << 20)

struct versions {
	char *folder;
	struct model_version *one; /* oldest first; room for VERSIONS_MAX */
	size_t n;
};

void versions_free(struct versions *v)
{
	if (!v)
		return;
	free(v->folder);
	free(v->one);
	free(v);
}

static char *path_of(const struct versions *v, const char *name)
{
	size_t size = strlen(v->folder) + strlen(name) + 2;
	char *path = mem_alloc(size);

	if (path)
		snprintf(path, size, "%s/%s", v->folder, name);
	return path;
}

char *versions_path(const struct versions *v, uint32_t number)
{
	char name[32];

	snprintf(name, sizeof name, "%04u.model", (unsigned)number);
	return path_of(v, name);
}

static bool is_there(const struct versions *v, uint32_t number)
{
	char *path = versions_path(v, number);
	bool there = path && !access(path, R_OK);

	free(path);
	return there;
}

/* ---- the journal ---- */

void model_version_to_json(const struct model_version *one, bool to_client, struct json_writer *w)
{
	json_open(w, '{');
	json_kv_int(w, "version", one->number);
	json_kv_string(w, "created", one->created);
	json_kv_string(w, "reason", one->reason);
	if (one->rolled_back_to != UINT32_MAX)
		json_kv_int(w, "rolled_back_to", one->rolled_back_to);
	json_kv_bool(w, "accepted", one->accepted);
	if (to_client)
		json_kv_bool(w, "kept", one->kept);
	json_kv_int(w, "rows", (long long)one->rows);
	json_kv_int(w, "observations", (long long)one->observations);
	json_kv_int(w, "tested", (long long)one->tested);
	if (to_client) {
		json_kv_fixed(w, "old_error", one->old_error, 6);
		json_kv_fixed(w, "new_error", one->new_error, 6);
	} else { /* as they are: the journal is read back */
		json_kv_number(w, "old_error", one->old_error);
		json_kv_number(w, "new_error", one->new_error);
	}
	json_kv_number(w, "p", one->p);
	json_kv_string(w, "message", one->message);
	json_close(w, '}');
}

static bool whole(const struct json *v, double max, double *out)
{
	double n = json_number(v, NAN);

	*out = n;
	return n >= 0.0 && n <= max && n == floor(n);
}

static size_t count_at(const struct json *v, const char *key)
{
	double n;

	return whole(json_get(v, key), 0x1p53, &n) ? (size_t)n : 0;
}

/* A line of the journal; false: it is none. */
static bool version_read(const struct json *v, struct model_version *out)
{
	const struct json *back = json_get(v, "rolled_back_to");
	double number, to = UINT32_MAX;

	if (json_type(v) != JSON_OBJECT || !whole(json_get(v, "version"), VERSIONS_MAX_NUMBER, &number) ||
	    number < 1.0 || (back && !whole(back, VERSIONS_MAX_NUMBER, &to)))
		return false;
	*out = (struct model_version){
		.number = (uint32_t)number,
		.rolled_back_to = (uint32_t)to,
		.accepted = json_bool(json_get(v, "accepted"), false),
		.rows = count_at(v, "rows"),
		.observations = count_at(v, "observations"),
		.tested = count_at(v, "tested"),
		.old_error = json_number(json_get(v, "old_error"), NAN),
		.new_error = json_number(json_get(v, "new_error"), NAN),
		.p = json_number(json_get(v, "p"), NAN),
	};
	snprintf(out->created, sizeof out->created, "%s", json_string(json_get(v, "created"), ""));
	snprintf(out->reason, sizeof out->reason, "%s", json_string(json_get(v, "reason"), ""));
	snprintf(out->message, sizeof out->message, "%s", json_string(json_get(v, "message"), ""));
	return true;
}

/* The line that says which version is in use; SIZE_MAX: none does. */
static size_t current_line(const struct versions *v)
{
	for (size_t i = v->n; i-- > 0;) {
		const struct model_version *one = &v->one[i];

		if (one->rolled_back_to != UINT32_MAX &&
		    (!one->rolled_back_to || is_there(v, one->rolled_back_to)))
			return i;
		if (one->accepted && is_there(v, one->number))
			return i;
	}
	return SIZE_MAX;
}

/* The line that goes to make room: the oldest attempt that left no file; never the one that counts. */
static size_t dispensable(const struct versions *v)
{
	size_t current = current_line(v);

	for (size_t i = 0; i < v->n; i++) {
		if (i != current && !(v->one[i].accepted && is_there(v, v->one[i].number)))
			return i;
	}
	return current == 0;
}

/* `gone`: a line to leave out; SIZE_MAX: none. */
static void keep(struct versions *v, const struct model_version *one, size_t gone)
{
	if (gone < v->n) {
		v->n--;
		memmove(v->one + gone, v->one + gone + 1, (v->n - gone) * sizeof *v->one);
	}
	v->one[v->n++] = *one;
}

static int line_read(struct versions *v, const char *line, size_t len, size_t number, struct err *err)
{
	struct model_version one;
	struct json *root = NULL;
	struct err why = { 0 };
	int rc = json_parse("versions.jsonl", line, len, &root, &why);

	if (rc == -ERR_NOMEM)
		return err_nomem(err, "the versions of the model");
	if (rc || !version_read(root, &one) || (v->n && one.number <= v->one[v->n - 1].number))
		log_warn("%s/versions.jsonl:%zu: is not a version, and is left out",
			 text_tail(v->folder, 150), number);
	else
		keep(v, &one, v->n == VERSIONS_MAX ? dispensable(v) : SIZE_MAX);
	json_free(root);
	return 0;
}

static int journal_read(struct versions *v, struct err *err)
{
	char *path = path_of(v, "versions.jsonl"), *text = NULL;
	size_t len = 0, line = 1;
	int rc = path ? io_read_file(path, JOURNAL_MAX_BYTES, &text, &len, err)
		      : err_nomem(err, "the versions of the model");

	free(path);
	if (rc == -ERR_NOTFOUND) { /* the first time */
		if (err)
			*err = (struct err){ 0 };
		return 0;
	}
	for (const char *at = text; !rc && at < text + len; line++) {
		const char *end = memchr(at, '\n', (size_t)(text + len - at));
		size_t n = (size_t)((end ? end : text + len) - at);

		if (n)
			rc = line_read(v, at, n, line, err);
		at += n + 1;
	}
	free(text);
	return rc;
}

static int journal_write(const struct versions *v, size_t gone, const struct model_version *last,
			 struct err *err)
{
	char *path = path_of(v, "versions.jsonl");
	struct strbuf text = { 0 };
	struct json_writer w;
	int rc;

	for (size_t i = 0; i <= v->n; i++) {
		if (i == gone)
			continue;
		json_begin(&w, &text, false);
		model_version_to_json(i < v->n ? &v->one[i] : last, false, &w);
		strbuf_puts(&text, "\n");
	}
	rc = !path || text.failed ? err_nomem(err, "the versions of the model")
				  : io_write_file(path, text.text, text.len, err);
	strbuf_release(&text);
	free(path);
	return rc;
}

int versions_open(const char *folder, struct versions **out, struct err *err)
{
	struct versions *v = mem_calloc(1, sizeof *v);
	int rc = 0;

	if (v) {
		v->folder = mem_strdup(folder);
		v->one = mem_array(VERSIONS_MAX, sizeof *v->one);
	}
	if (!v || !v->folder || !v->one)
		rc = err_nomem(err, "the versions of the model");
	else if (mkdir(folder, 0700) && errno != EEXIST)
		rc = err_fail(err, ERR_IO, "%s: no folder for models: %s", text_tail(folder, 150),
			      strerror(errno));
	if (!rc)
		rc = journal_read(v, err);
	if (rc) {
		versions_free(v);
		return rc;
	}
	*out = v;
	return 0;
}

int versions_add(struct versions *v, const struct model_version *one, struct err *err)
{
	size_t gone = v->n == VERSIONS_MAX ? dispensable(v) : SIZE_MAX;
	int rc = journal_write(v, gone, one, err);

	if (!rc)
		keep(v, one, gone);
	return rc;
}

/* ---- questions ---- */

uint32_t versions_next(const struct versions *v)
{
	uint32_t next = v->n ? v->one[v->n - 1].number + 1 : 1;

	while (is_there(v, next)) /* a journal that was lost must not cost a model */
		next++;
	return next;
}

uint32_t versions_current(const struct versions *v)
{
	size_t at = current_line(v);

	if (at == SIZE_MAX)
		return 0;
	return v->one[at].rolled_back_to != UINT32_MAX ? v->one[at].rolled_back_to : v->one[at].number;
}

size_t versions_list(const struct versions *v, struct model_version *out, size_t max)
{
	size_t n = v->n < max ? v->n : max;

	for (size_t i = 0; i < n; i++) {
		out[i] = v->one[v->n - n + i];
		out[i].kept = out[i].accepted && is_there(v, out[i].number);
	}
	return n;
}

void versions_prune(struct versions *v, size_t keep_files)
{
	uint32_t current = versions_current(v);
	size_t kept = 0;

	for (size_t i = v->n; i-- > 0;) {
		uint32_t number = v->one[i].number;
		char *path;

		if (!v->one[i].accepted || !is_there(v, number))
			continue;
		if (kept++ < keep_files || number == current)
			continue;
		path = versions_path(v, number);
		if (path && unlink(path))
			log_warn("%s: an old model that can not be removed: %s", text_tail(path, 150),
				 strerror(errno));
		free(path);
	}
}
