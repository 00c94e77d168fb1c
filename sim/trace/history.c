/* The daemon's own history as a trace: its database (docs/STORE.md), read and never written, also while the daemon runs. */
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/json/json.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "common/text/text.h"
#include "sim/trace/build.h"
#include "sim/trace/names.h"
#include "sim/trace/row.h"

#define NAME_SHOWN 200
#define HISTORY_FILE "postrider.db"
#define HISTORY_APPLICATION 0x50525244
#define HISTORY_VERSION 3 /* the newest we know: docs/STORE.md */
#define BUSY_TIMEOUT_MS 5000
#define MAX_PATH 4096
#define MAX_SEEN 65536

struct history {
	char path[MAX_PATH];
	sqlite3 *db;
	int64_t version;
	struct trace_build *build;
	struct trace_row row;
	struct strbuf text; /* values of this job, one after the other */
	/* Jobs repeat themselves: kinds by the very text of params, batches and cpus, so that each is parsed once. */
	struct trace_names seen;
	uint32_t *kind_of;
	size_t cap_kinds;
	struct strbuf key;
	size_t cancelled, no_time, reserved;
	char reserved_name[64];
	struct err *err;
};

/* What the statement gives, in this order. */
enum {
	COLUMN_ID,
	COLUMN_UID,
	COLUMN_TYPE,
	COLUMN_PARAMS,
	COLUMN_BATCHES,
	COLUMN_CPUS,
	COLUMN_SLO,
	COLUMN_CONFIDENCE,
	COLUMN_BEST_EFFORT,
	COLUMN_STATE,
	COLUMN_SUBMITTED,
	COLUMN_TENANT,
	COLUMN_PRIORITY
};
#define SELECT_COMMON                                                                                        \
	"SELECT id,uid,type,params,batches,cpus,slo_s,confidence,best_effort,state,submitted_ns,"
static const char *const select_jobs[] = {
	[1] = SELECT_COMMON "NULL,0 FROM jobs ORDER BY id",
	[2] = SELECT_COMMON "tenant,priority FROM jobs ORDER BY id",
	[3] = SELECT_COMMON "tenant,priority FROM jobs ORDER BY id",
};

/* ---- the database ---- */

static int db_failed(struct history *h, int rc)
{
	const char *reason = h->db ? sqlite3_errmsg(h->db) : sqlite3_errstr(rc);
	enum err_code code = ERR_IO;
	const char *advice = "";

	switch (rc & 0xff) {
	case SQLITE_NOMEM: code = ERR_NOMEM; break;
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT:
	case SQLITE_ERROR: /* a table that is not what it should be */
		code = ERR_FORMAT;
		advice = ": is it the database of a postriderd, and whole?";
		break;
	case SQLITE_BUSY:
	case SQLITE_LOCKED: code = ERR_BUSY; break;
	case SQLITE_PERM:
	case SQLITE_READONLY:
	case SQLITE_AUTH:
	case SQLITE_CANTOPEN:
		code = ERR_PERM;
		advice = ": only the daemon's user and root may read it";
		break;
	default: break;
	}
	return err_fail(h->err, code, "cannot read %s: %s%s", text_tail(h->path, NAME_SHOWN), reason, advice);
}

static int nomem(const struct history *h)
{
	return err_fail(h->err, ERR_NOMEM, "%s: out of memory for the trace", text_tail(h->path, NAME_SHOWN));
}

/* The folder or the file. */
static int find_path(struct history *h, const char *path)
{
	struct stat st;
	int n;

	if (stat(path, &st) != 0)
		return err_fail(h->err, ERR_NOTFOUND, "%s: no such file or folder",
				text_tail(path, NAME_SHOWN));
	n = snprintf(h->path, sizeof h->path, "%s%s", path, S_ISDIR(st.st_mode) ? "/" HISTORY_FILE : "");
	if (n < 0 || (size_t)n >= sizeof h->path - 8)
		return err_fail(h->err, ERR_ARG, "%s: the path is too long", text_tail(path, NAME_SHOWN));
	if (stat(h->path, &st) != 0)
		return err_fail(h->err, ERR_NOTFOUND, "%s: no such file; a daemon keeps its history there",
				text_tail(h->path, NAME_SHOWN));
	if (!S_ISREG(st.st_mode))
		return err_fail(h->err, ERR_FORMAT, "%s is no regular file", text_tail(h->path, NAME_SHOWN));
	return 0;
}

static bool has_log(const struct history *h)
{
	char log[MAX_PATH + 8];
	struct stat st;

	snprintf(log, sizeof log, "%s-wal", h->path);
	return stat(log, &st) == 0;
}

/* Without a log nobody has the file open. Opening it the usual way would then make the log and its index, as whoever we
 * are, in the daemon's folder: so it is opened as one that does not change. */
static int open_db(struct history *h, bool live)
{
	struct strbuf uri = { 0 };
	int rc;

	strbuf_puts(&uri, *h->path == '/' ? "file://" : "file:");
	for (const char *s = h->path; *s; s++) {
		if (strchr("?#%", *s))
			strbuf_printf(&uri, "%%%02x", (unsigned char)*s);
		else
			strbuf_add(&uri, s, 1);
	}
	strbuf_puts(&uri, live ? "" : "?immutable=1");
	if (uri.failed) {
		strbuf_release(&uri);
		return nomem(h);
	}
	rc = sqlite3_open_v2(uri.text, &h->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI,
			     NULL);
	strbuf_release(&uri);
	if (rc)
		return db_failed(h, rc);
	sqlite3_busy_timeout(h->db, BUSY_TIMEOUT_MS);
	/* A file made to harm us must not run anything of its own. */
	sqlite3_db_config(h->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(h->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(h->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(h->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	return 0;
}

static int db_number(struct history *h, const char *sql, int64_t *out)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(h->db, sql, -1, &st, NULL);

	if (rc == SQLITE_OK) {
		rc = sqlite3_step(st);
		if (rc == SQLITE_ROW)
			*out = sqlite3_column_int64(st, 0);
	}
	if (rc != SQLITE_ROW)
		rc = db_failed(h, rc == SQLITE_DONE ? SQLITE_CORRUPT : rc);
	else
		rc = 0;
	sqlite3_finalize(st);
	return rc;
}

static int check_version(struct history *h)
{
	int64_t application = 0;
	int rc;

	if ((rc = db_number(h, "PRAGMA application_id", &application)) ||
	    (rc = db_number(h, "PRAGMA user_version", &h->version)))
		return rc;
	if (application != HISTORY_APPLICATION || h->version < 1)
		return err_fail(h->err, ERR_FORMAT, "%s is an SQLite database, but not one of a postriderd",
				text_tail(h->path, NAME_SHOWN));
	if (h->version > HISTORY_VERSION)
		return err_fail(h->err, ERR_FORMAT,
				"%s has schema version %lld, this postrider knows versions up to %d: use the "
				"postrider that "
				"came with its daemon",
				text_tail(h->path, NAME_SHOWN), (long long)h->version, HISTORY_VERSION);
	return 0;
}

/* ---- a job ---- */

static int bad(struct history *h, uint64_t id, const char *field, const char *reason)
{
	char shown[64];

	return err_fail(h->err, ERR_FORMAT, "%s: job %llu: field %s: %s", text_tail(h->path, NAME_SHOWN),
			(unsigned long long)id, text_printable(field, shown, sizeof shown), reason);
}

/* A value as text at the end of h->text; false: it is none. */
static bool put_value(struct strbuf *out, const struct json *v)
{
	char buf[32];

	switch (json_type(v)) {
	case JSON_NULL: break;
	case JSON_BOOL: strbuf_puts(out, json_bool(v, false) ? "true" : "false"); break;
	case JSON_NUMBER: strbuf_puts(out, text_shortest(json_number(v, 0.0), buf)); break;
	case JSON_STRING: strbuf_puts(out, json_string(v, "")); break;
	default: return false;
	}
	strbuf_add(out, "", 1);
	return true;
}

/* Parameters are columns; one that is called as a field of traces is left out, and that is said once. */
static int read_params(struct history *h, uint64_t id, const struct json *params)
{
	size_t column[TRACE_MAX_COLUMNS], from[TRACE_MAX_COLUMNS], n = 0;
	const char *key[TRACE_MAX_COLUMNS];
	int rc;

	if (json_type(params) != JSON_OBJECT)
		return bad(h, id, "params", "need a JSON object");
	strbuf_reset(&h->text);
	for (const struct json *v = json_first(params); v; v = json_next(v)) {
		enum trace_field f = trace_field_of(json_key(v));

		if (f != TRACE_FIELDS && f != TRACE_EPOCHS) {
			if (!h->reserved++)
				text_printable(json_key(v), h->reserved_name, sizeof h->reserved_name);
			continue;
		}
		if (n == TRACE_MAX_COLUMNS)
			return bad(h, id, "params", "more than 64 parameters");
		if ((rc = trace_build_column(h->build, json_key(v), &column[n], h->err)))
			return rc;
		key[n] = json_key(v);
		from[n++] = h->text.len;
		if (!put_value(&h->text, v))
			return bad(h, id, json_key(v), "need text, a number, true, false or null");
	}
	if (h->text.failed)
		return nomem(h);
	/* Only now: the row must know of columns that are new. */
	trace_row_begin(&h->row, 0);
	for (size_t i = 0; i < n; i++)
		if (trace_row_field(&h->row, trace_field_of(key[i]), column[i], h->text.text + from[i],
				    h->err))
			return err_prefix(h->err, "%s: job %llu: field %s", text_tail(h->path, NAME_SHOWN),
					  (unsigned long long)id, key[i]);
	return 0;
}

static int read_batches(struct history *h, uint64_t id, const struct json *list)
{
	struct strbuf joined = { 0 };
	char buf[32];
	int rc = 0;

	for (const struct json *v = json_first(list); v; v = json_next(v))
		strbuf_printf(&joined, "%s%s", joined.len ? "|" : "",
			      text_shortest(json_number(v, NAN), buf));
	if (joined.failed)
		rc = nomem(h);
	else if (json_type(list) != JSON_ARRAY)
		rc = bad(h, id, "batches", "need a JSON array of numbers");
	else if (trace_row_field(&h->row, TRACE_BATCHES, 0, strbuf_text(&joined), h->err))
		rc = err_prefix(h->err, "%s: job %llu: field batches", text_tail(h->path, NAME_SHOWN),
				(unsigned long long)id);
	strbuf_release(&joined);
	return rc;
}

/* A cell with a JSON text, parsed; the error names job and column. */
static int parse_cell(struct history *h, sqlite3_stmt *st, int column, uint64_t id, const char *field,
		      struct json **out)
{
	const char *text = (const char *)sqlite3_column_text(st, column);
	struct err found = { 0 };

	if (!text)
		return bad(h, id, field, "it is missing");
	if (json_parse(field, text, (size_t)sqlite3_column_bytes(st, column), out, &found) == 0)
		return 0;
	if (found.code == ERR_NOMEM)
		return nomem(h);
	return bad(h, id, field, found.text);
}

static double cell_number(sqlite3_stmt *st, int column)
{
	return sqlite3_column_type(st, column) == SQLITE_NULL ? NAN : sqlite3_column_double(st, column);
}

static const char *cell_text(sqlite3_stmt *st, int column)
{
	return (const char *)sqlite3_column_text(st, column);
}

/* Reads what the job trains, and keeps the kind under its text while there are not too many. */
static int read_kind(struct history *h, sqlite3_stmt *st, uint64_t id, uint32_t *out)
{
	struct json *params = NULL, *batches = NULL;
	int64_t cpus = sqlite3_column_int64(st, COLUMN_CPUS), at;
	void *kinds = h->kind_of;
	int rc = parse_cell(h, st, COLUMN_PARAMS, id, "params", &params);

	if (rc == 0)
		rc = read_params(h, id, params);
	if (rc == 0 && sqlite3_column_type(st, COLUMN_BATCHES) != SQLITE_NULL) {
		rc = parse_cell(h, st, COLUMN_BATCHES, id, "batches", &batches);
		if (rc == 0)
			rc = read_batches(h, id, batches);
	}
	if (rc == 0 && (cpus < 1 || cpus > TRACE_MAX_CPUS))
		rc = bad(h, id, "cpus", "need 1 to 65536");
	if (rc == 0) {
		h->row.kind.cpus = (uint32_t)cpus;
		rc = trace_build_kind(h->build, &h->row.kind, out, h->err);
		if (rc)
			err_prefix(h->err, "job %llu", (unsigned long long)id);
	}
	json_free(params);
	json_free(batches);
	if (rc || h->seen.n >= MAX_SEEN)
		return rc;
	at = trace_names_add(&h->seen, strbuf_text(&h->key));
	if (at < 0 || mem_grow(&kinds, &h->cap_kinds, (size_t)at + 1, sizeof *h->kind_of))
		return nomem(h);
	h->kind_of = kinds;
	h->kind_of[at] = *out;
	return 0;
}

static int kind_of(struct history *h, sqlite3_stmt *st, uint64_t id, uint32_t *out)
{
	const char *params = cell_text(st, COLUMN_PARAMS), *batches = cell_text(st, COLUMN_BATCHES);
	int64_t at;

	strbuf_reset(&h->key);
	strbuf_printf(&h->key, "%lld %s\n%s", (long long)sqlite3_column_int64(st, COLUMN_CPUS),
		      batches ? batches : "", params ? params : "");
	if (h->key.failed)
		return nomem(h);
	at = trace_names_find(&h->seen, strbuf_text(&h->key));
	if (at < 0)
		return read_kind(h, st, id, out);
	*out = h->kind_of[at];
	return 0;
}

static int add_job(struct history *h, sqlite3_stmt *st, uint64_t id)
{
	struct trace_job j = {
		.id = id,
		.arrival_ns = sqlite3_column_int64(st, COLUMN_SUBMITTED),
		.slo_s = cell_number(st, COLUMN_SLO),
		.confidence = cell_number(st, COLUMN_CONFIDENCE),
		.best_effort = sqlite3_column_int(st, COLUMN_BEST_EFFORT) != 0,
		.priority = sqlite3_column_int(st, COLUMN_PRIORITY),
	};
	const char *tenant = cell_text(st, COLUMN_TENANT);
	char uid[40];
	int rc;

	if (!tenant) {
		snprintf(uid, sizeof uid, "uid-%lld", (long long)sqlite3_column_int64(st, COLUMN_UID));
		tenant = uid;
	}
	if ((rc = kind_of(h, st, id, &j.kind)) ||
	    (rc = trace_build_tenant(h->build, tenant, NAN, &j.tenant, h->err)) ||
	    (rc = trace_build_type(h->build, cell_text(st, COLUMN_TYPE), &j.type, h->err)))
		return rc;
	return trace_build_job(h->build, &j, h->err);
}

static int read_job(struct history *h, sqlite3_stmt *st)
{
	int64_t id = sqlite3_column_int64(st, COLUMN_ID);
	const char *state = cell_text(st, COLUMN_STATE);

	if (id < 1)
		return bad(h, 0, "id", "need a number above 0");
	if (state && strcmp(state, "cancelled") == 0) {
		h->cancelled++;
		return 0;
	}
	if (sqlite3_column_type(st, COLUMN_SUBMITTED) == SQLITE_NULL) {
		h->no_time++;
		return 0;
	}
	return add_job(h, st, (uint64_t)id);
}

/* ---- the whole ---- */

static int add_notices(struct history *h)
{
	int rc = 0;

	if (h->cancelled)
		rc = trace_build_notice(h->build, h->err, "%zu cancelled job%s left out", h->cancelled,
					h->cancelled == 1 ? " is" : "s are");
	if (rc == 0 && h->no_time)
		rc = trace_build_notice(h->build, h->err, "%zu job%s without a time of submission left out",
					h->no_time, h->no_time == 1 ? " is" : "s are");
	if (rc == 0 && h->reserved)
		rc = trace_build_notice(h->build, h->err,
					"parameter '%s' has the name of a field of traces: left out",
					h->reserved_name);
	return rc;
}

static int read_jobs(struct history *h)
{
	sqlite3_stmt *st = NULL;
	int rc = check_version(h), step = SQLITE_DONE;

	if (rc)
		return rc;
	step = sqlite3_prepare_v2(h->db, select_jobs[h->version], -1, &st, NULL);
	while (rc == 0 && step == SQLITE_OK && (step = sqlite3_step(st)) == SQLITE_ROW) {
		step = SQLITE_OK;
		rc = read_job(h, st);
	}
	if (rc == 0 && step != SQLITE_DONE)
		rc = db_failed(h, step);
	sqlite3_finalize(st);
	return rc ? rc : add_notices(h);
}

static int read_once(struct history *h, bool live, struct trace **out)
{
	int rc = trace_build_new(h->path, NULL, 0, &h->build, h->err);

	if (rc == 0) {
		trace_build_absolute(h->build);
		trace_row_init(&h->row, h->build);
		h->cancelled = h->no_time = h->reserved = 0;
		rc = open_db(h, live);
	}
	if (rc == 0)
		rc = read_jobs(h);
	if (rc == 0)
		rc = trace_build_done(h->build, "from a daemon's history", out, h->err);
	sqlite3_close(h->db);
	h->db = NULL;
	trace_build_free(h->build);
	h->build = NULL;
	trace_names_release(&h->seen);
	return rc;
}

int trace_read_history(const char *path, struct trace **out, struct err *err)
{
	struct err local = { 0 };
	struct history h = { .err = err ? err : &local };
	struct trace *t = NULL;
	int rc = find_path(&h, path);
	bool live;

	if (rc)
		return rc;
	live = has_log(&h);
	rc = read_once(&h, live, &t);
	if (!live &&
	    has_log(&h)) { /* a daemon has opened it meanwhile: what was read may be no single moment's */
		trace_free(t);
		t = NULL;
		*h.err = (struct err){ 0 };
		rc = read_once(&h, true, &t);
	}
	strbuf_release(&h.text);
	strbuf_release(&h.key);
	free(h.kind_of);
	if (rc == 0)
		*out = t;
	return rc;
}
