/* The journal of a campaign. See journal.h. */
#include "automl/journal.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/json/lines.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "automl/techniques/models.h"

#define SYNC_EVERY_S 1.0 /* a power failure costs at most what was done since */

static const char *const stage_name[] = { "features", "experiment", "validation", "model", "curve" };

struct journal {
	struct json_lines file;
	pthread_mutex_t lock;
	double synced_s;
	struct strbuf line;
};

void journal_close(struct journal *j)
{
	if (!j)
		return;
	if (j->file.fd >= 0)
		fdatasync(j->file.fd);
	json_lines_close(&j->file);
	pthread_mutex_destroy(&j->lock);
	strbuf_release(&j->line);
	free(j);
}

/* ---- the first line ---- */

/* Every key of the campaign with its value, so that a change can be named. */
static void put_campaign(const struct campaign *c, struct json_writer *w)
{
	struct strbuf key = { 0 }, value = { 0 };

	json_kv_open(w, "campaign", '{');
	for (size_t s = 0; s < c->ini->n; s++) {
		const struct ini_section *in = &c->ini->section[s];

		for (size_t k = 0; k < in->n; k++) {
			strbuf_reset(&key);
			strbuf_reset(&value);
			strbuf_printf(&key, "[%s] %s", in->name, in->key[k].name);
			literal_write(&in->key[k].value, &value);
			json_kv_string(w, strbuf_text(&key), strbuf_text(&value));
		}
	}
	json_close(w, '}');
	strbuf_release(&key);
	strbuf_release(&value);
}

static void put_head(const struct automl_params *p, struct strbuf *out)
{
	struct json_writer w;
	char number[32];

	json_begin(&w, out, false);
	json_open(&w, '{');
	json_kv_int(&w, "journal", JOURNAL_VERSION);
	json_kv_string(&w, "program", p->program);
	json_kv_string(&w, "created", p->created);
	snprintf(number, sizeof number, "%016" PRIx64, p->p->fingerprint);
	json_kv_string(&w, "table", number);
	json_kv_bool(&w, "xgboost", xgboost_available());
	put_campaign(p->c, &w);
	json_close(&w, '}');
	strbuf_puts(out, "\n");
}

static int refuse(const struct journal *j, struct err *err, const char *what)
{
	return err_fail(
		err, ERR_FORMAT,
		"%s belongs to another campaign: %.200s; give another folder, or --restart to start again",
		text_tail(j->file.path, 120), what);
}

/* Names the first key that differs. */
static int compare_campaign(const struct journal *j, const struct json *was, const struct json *is,
			    struct err *err)
{
	char what[256];

	for (const struct json *v = json_first(is); v; v = json_next(v)) {
		const struct json *old = json_get(was, json_key(v));

		if (!old)
			snprintf(what, sizeof what, "%.60s is new", json_key(v));
		else if (strcmp(json_string(old, ""), json_string(v, "")))
			snprintf(what, sizeof what, "%.60s was %.60s and is now %.60s", json_key(v),
				 json_string(old, ""), json_string(v, ""));
		else
			continue;
		return refuse(j, err, what);
	}
	for (const struct json *v = json_first(was); v; v = json_next(v)) {
		if (!json_get(is, json_key(v))) {
			snprintf(what, sizeof what, "%.60s was %.60s and is not there any more", json_key(v),
				 json_string(v, ""));
			return refuse(j, err, what);
		}
	}
	return 0;
}

static int check_head(const struct journal *j, const struct automl_params *p, const struct json *was,
		      char *created, struct err *err)
{
	struct strbuf text = { 0 };
	struct json *is = NULL;
	char what[256];
	int rc;

	put_head(p, &text);
	if (text.failed) {
		strbuf_release(&text);
		return err_nomem(err, "the journal");
	}
	rc = json_parse("journal", text.text, text.len, &is, err);
	strbuf_release(&text);
	if (rc)
		return rc;
	if (json_number(json_get(was, "journal"), 0.0) != JOURNAL_VERSION)
		rc = err_fail(err, ERR_FORMAT,
			      "%s: another version of the program wrote it; --restart starts again",
			      text_tail(j->file.path, 120));
	if (!rc)
		rc = compare_campaign(j, json_get(was, "campaign"), json_get(is, "campaign"), err);
	if (!rc && strcmp(json_string(json_get(was, "table"), ""), json_string(json_get(is, "table"), ""))) {
		snprintf(what, sizeof what, "the table %s has changed", text_tail(p->p->csv->name, 150));
		rc = refuse(j, err, what);
	}
	if (!rc && json_bool(json_get(was, "xgboost"), false) != xgboost_available())
		rc = refuse(j, err,
			    xgboost_available() ? "libxgboost was not installed when it began"
						: "libxgboost was installed when it began");
	if (!rc)
		snprintf(created, 32, "%s", json_string(json_get(was, "created"), ""));
	json_free(is);
	return rc;
}

/* ---- lines of units ---- */

static void put_unit(struct strbuf *out, enum automl_stage stage, size_t unit, const struct outcome *o)
{
	struct json_writer w;

	json_begin(&w, out, false);
	json_open(&w, '{');
	json_kv_string(&w, "stage", stage_name[stage]);
	json_kv_int(&w, "unit", (long long)unit);
	if (o->failed)
		json_kv_string(&w, "failed", o->why);
	json_kv_open(&w, "scores", '[');
	for (size_t s = 0; s < N_SETS; s++) {
		json_put_number(&w, o->score[s].mape);
		json_put_number(&w, o->score[s].rmse);
		json_put_number(&w, o->score[s].r2);
	}
	json_close(&w, ']');
	if (o->n_tuned) {
		json_kv_open(&w, "tuned", '[');
		for (size_t i = 0; i < o->n_tuned; i++)
			json_put_number(&w, o->tuned[i]);
		json_close(&w, ']');
	}
	if (o->features.n) {
		json_kv_open(&w, "features", '[');
		for (size_t i = 0; i < o->features.n; i++)
			json_put_int(&w, o->features.column[i]);
		json_close(&w, ']');
	}
	json_close(&w, '}');
	strbuf_puts(out, "\n");
}

static bool get_features(const struct json *list, const struct automl *a, struct outcome *o)
{
	size_t n = json_size(list);

	if (!n)
		return true;
	if (n > a->p->n_columns || !(o->features.column = mem_array(n, sizeof *o->features.column)))
		return false;
	for (const struct json *v = json_first(list); v; v = json_next(v)) {
		double c = json_number(v, -1.0);

		if (!(c >= 0.0 && c < (double)a->p->n_columns && c == floor(c)))
			return false;
		o->features.column[o->features.n++] = (uint32_t)c;
	}
	return true;
}

/* The trials of a search that was cut off, behind those of the lines before. */
static bool get_trials(const struct json *list, const struct automl *a, struct outcome *o)
{
	size_t n = o->n_losses + json_size(list);
	double *grown;

	if (o->done || n > a->c->max_evals)
		return false;
	grown = mem_resize(o->loss, n + 1, sizeof *grown);
	if (!grown)
		return false;
	o->loss = grown;
	for (const struct json *v = json_first(list); v; v = json_next(v))
		o->loss[o->n_losses++] = json_number(v, INFINITY); /* null: the trial failed */
	return true;
}

/* False: this is no line of a unit of this campaign. */
static bool get_unit(const struct json *v, struct automl *a)
{
	const struct json *scores = json_get(v, "scores"), *tuned = json_get(v, "tuned"), *s;
	const char *name = json_string(json_get(v, "stage"), "");
	double unit = json_number(json_get(v, "unit"), -1.0);
	struct outcome o = { .done = true, .failed = json_get(v, "failed") != NULL };
	size_t stage = 0;

	while (stage < N_STAGES && strcmp(stage_name[stage], name))
		stage++;
	if (stage == N_STAGES || !(unit >= 0.0 && unit < (double)a->n[stage]) || unit != floor(unit))
		return false;
	if (json_get(v, "trials"))
		return get_trials(json_get(v, "trials"), a, &a->outcome[stage][(size_t)unit]);
	if (json_size(scores) != 3 * N_SETS || json_size(tuned) > CAMPAIGN_MAX_AXES)
		return false;
	snprintf(o.why, sizeof o.why, "%s", json_string(json_get(v, "failed"), ""));
	s = json_first(scores);
	for (size_t i = 0; i < N_SETS; i++) {
		o.score[i].mape = json_number(s, NAN);
		s = json_next(s);
		o.score[i].rmse = json_number(s, NAN);
		s = json_next(s);
		o.score[i].r2 = json_number(s, NAN);
		s = json_next(s);
	}
	for (s = json_first(tuned); s; s = json_next(s))
		o.tuned[o.n_tuned++] = json_number(s, NAN);
	if (!get_features(json_get(v, "features"), a, &o)) {
		free(o.features.column);
		return false;
	}
	free(a->outcome[stage][(size_t)unit].loss);
	if (a->outcome[stage][(size_t)unit].done)
		free(a->outcome[stage][(size_t)unit].features.column);
	else
		a->n_resumed++;
	a->outcome[stage][(size_t)unit] = o;
	return true;
}

struct reading {
	const struct journal *j;
	const struct automl_params *p;
	struct automl *a;
	char *created;
};

static int take_line(void *owner, const struct json *v, size_t line, struct err *err)
{
	struct reading *r = owner;

	if (line == 1)
		return check_head(r->j, r->p, v, r->created, err);
	if (r->j->file.fd < 0 && json_get(v, "trials"))
		return 0; /* of a part: a search that it did not finish is made anew */
	return get_unit(v, r->a) ? 0 : JSON_LINES_STRANGE;
}

static int read_lines(struct journal *j, const struct automl_params *p, struct automl *a, char *created,
		      struct err *err)
{
	struct reading r = { j, p, a, created };

	return json_lines_read(&j->file,
			       &(struct json_lines_reader){ JOURNAL_MAX_BYTES, take_line, &r,
							    "the line belongs to no part of this campaign" },
			       err);
}

int journal_open(const struct automl_params *p, struct automl *a, char *created, struct journal **out,
		 struct err *err)
{
	struct journal *j = mem_calloc(1, sizeof *j);
	struct strbuf head = { 0 };
	int rc;

	if (!j)
		return err_nomem(err, "the journal");
	pthread_mutex_init(&j->lock, NULL);
	rc = json_lines_open(&j->file, p->dir, "is at this campaign", err);
	if (!rc && !p->restart)
		rc = read_lines(j, p, a, created, err);
	if (!rc)
		rc = json_lines_cut(&j->file, err);
	if (!rc && !j->file.len) {
		snprintf(created, 32, "%s", p->created);
		put_head(p, &head);
		rc = json_lines_append(&j->file, &head, false, err);
		strbuf_release(&head);
	}
	if (rc) {
		journal_close(j);
		return rc;
	}
	*out = j;
	return 0;
}

/* Writes j->line, whose lock is held, and gives the lock back. */
static int add_line(struct journal *j, struct err *err)
{
	double now_s = clock_monotonic_s();
	bool sync = now_s - j->synced_s > SYNC_EVERY_S;
	int rc = json_lines_append(&j->file, &j->line, sync, err);

	if (sync)
		j->synced_s = now_s;
	pthread_mutex_unlock(&j->lock);
	return rc;
}

int journal_add(struct journal *j, enum automl_stage stage, size_t unit, const struct outcome *o,
		struct err *err)
{
	pthread_mutex_lock(&j->lock);
	strbuf_reset(&j->line);
	put_unit(&j->line, stage, unit, o);
	return add_line(j, err);
}

int journal_add_trials(struct journal *j, enum automl_stage stage, size_t unit, const double *loss, size_t n,
		       struct err *err)
{
	struct json_writer w;

	pthread_mutex_lock(&j->lock);
	strbuf_reset(&j->line);
	json_begin(&w, &j->line, false);
	json_open(&w, '{');
	json_kv_string(&w, "stage", stage_name[stage]);
	json_kv_int(&w, "unit", (long long)unit);
	json_kv_open(&w, "trials", '[');
	for (size_t i = 0; i < n; i++)
		json_put_number(&w, loss[i]);
	json_close(&w, ']');
	json_close(&w, '}');
	strbuf_puts(&j->line, "\n");
	return add_line(j, err);
}

int journal_take_part(struct journal *j, const struct automl_params *p, struct automl *a, size_t part,
		      struct err *err)
{
	struct journal from = { .file.fd = -1 };
	struct strbuf dir = { 0 };
	bool *was = mem_calloc(a->n[STAGE_FEATURES] + a->n[STAGE_EXPERIMENT] + 1, sizeof *was);
	char created[32];
	size_t n = 0;
	int rc = 0;

	strbuf_printf(&dir, "%s/part-%zu", p->dir, part);
	if (dir.failed || !was)
		rc = err_nomem(err, "a part of the campaign");
	for (int s = STAGE_FEATURES; s <= STAGE_EXPERIMENT && !rc; s++)
		for (size_t i = 0; i < a->n[s]; i++)
			was[n++] = a->outcome[s][i].done;
	if (!rc)
		rc = json_lines_open(&from.file, dir.text, NULL, err);
	if (!rc)
		rc = read_lines(&from, p, a, created, err);
	n = 0;
	for (int s = STAGE_FEATURES; s <= STAGE_EXPERIMENT && !rc; s++) {
		for (size_t i = 0; i < a->n[s] && !rc; i++, n++) {
			if (a->outcome[s][i].done && !was[n])
				rc = journal_add(j, (enum automl_stage)s, i, &a->outcome[s][i], err);
		}
	}
	free(was);
	json_lines_close(&from.file);
	strbuf_release(&dir);
	return rc;
}
