/* Writing model bundles: a short header, then sections that each carry their own checksum. The facts people
 * ask about are one section of JSON; trees, coefficients and residuals are binary. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/io.h"
#include "predictors/file/model_file.h"

static void put_numbers(struct json_writer *w, const char *key, const double *v, size_t n)
{
	json_kv_open(w, key, '[');
	for (size_t i = 0; i < n; i++)
		json_put_number(w, v[i]);
	json_close(w, ']');
}

static void put_score(struct json_writer *w, const char *key, const struct score *s)
{
	json_kv_open(w, key, '{');
	json_kv_number(w, "mse", s->mse);
	json_kv_number(w, "r2", s->r2);
	json_kv_number(w, "mape", s->mape);
	json_kv_number(w, "mae", s->mae);
	json_close(w, '}');
}

static void put_target(struct json_writer *w, const char *key, const struct model_target *t,
		       size_t n_features)
{
	json_kv_open(w, key, '{');
	json_kv_string(w, "model", t->predictor.ops->name);
	json_put_key(w, "settings");
	settings_to_json(&t->predictor.settings, w);
	json_kv_int(w, "rows", (long long)t->n_rows);
	json_kv_open(w, "score", '{');
	put_score(w, "mean", &t->score.mean);
	put_score(w, "sd", &t->score.sd);
	json_kv_int(w, "folds", (long long)t->score.n_folds);
	json_close(w, '}');
	json_kv_string(w, "scored_by", t->scored_by);
	json_kv_string(w, "residuals_by", t->residuals_by);
	if (t->importance)
		put_numbers(w, "importance", t->importance, n_features);
	if (t->permutation)
		put_numbers(w, "permutation", t->permutation, n_features);
	if (t->conformal.n && t->conformal.log)
		json_kv_string(w, "bounds", "log");
	if (t->conformal.groups < t->conformal.n)
		json_kv_int(w, "independent", (long long)t->conformal.groups);
	if (t->widening)
		put_numbers(w, "widening", t->widening, n_features);
	json_close(w, '}');
}

static void put_meta(const struct model *m, struct strbuf *out)
{
	struct json_writer w;
	char text[32];

	json_begin(&w, out, false);
	json_open(&w, '{');
	json_kv_string(&w, "program", m->program);
	json_kv_string(&w, "created", m->created);
	/* 64-bit numbers as text: a JSON number is a double */
	snprintf(text, sizeof text, "%" PRIu64, m->seed);
	json_kv_string(&w, "seed", text);
	json_kv_open(&w, "data", '{');
	json_kv_string(&w, "name", m->data_name);
	json_kv_int(&w, "rows", (long long)m->data_rows);
	snprintf(text, sizeof text, "%016" PRIx64, m->data_fingerprint);
	json_kv_string(&w, "fingerprint", text);
	json_close(&w, '}');
	json_put_key(&w, "schema");
	schema_to_json(m->schema, &w);
	json_put_key(&w, "features");
	features_to_json(m->features, &w);
	put_numbers(&w, "candidates", m->candidate, m->n_candidates);
	put_target(&w, "time", &m->time, m->features->n);
	if (m->accuracy.predictor.ops)
		put_target(&w, "accuracy", &m->accuracy, m->features->n);
	json_close(&w, '}');
}

/* The checksum covers tag and length too: a flipped bit in either must not pass for another section. */
uint64_t model_section_crc(const unsigned char *head, const void *payload, size_t len)
{
	return bytes_crc64_more(bytes_crc64(head, 12), payload, len);
}

static void put_section(struct writer *w, enum section_id id, const struct strbuf *payload)
{
	struct writer head = { 0 };

	strbuf_add(&head.out, model_section_tag[id], 4);
	write_u64(&head, payload->len);
	if (head.out.failed || payload->failed) {
		w->out.failed = true;
	} else {
		strbuf_add(&w->out, head.out.text, head.out.len);
		write_u64(w, model_section_crc((const unsigned char *)head.out.text, strbuf_text(payload),
					       payload->len));
		strbuf_add(&w->out, strbuf_text(payload), payload->len);
	}
	strbuf_release(&head.out);
}

static int put_predictor(struct writer *w, enum section_id id, const struct predictor *p, struct err *err)
{
	struct writer payload = { 0 };
	int rc = p->ops->save(p->self, &payload, err);

	if (!rc)
		put_section(w, id, &payload.out);
	strbuf_release(&payload.out);
	return rc;
}

static void put_spread(struct writer *w, const struct spread *s)
{
	struct writer payload = { 0 };

	spread_save(s, &payload);
	put_section(w, SECTION_TIME_SPREAD, &payload.out);
	strbuf_release(&payload.out);
}

static void put_mixed(struct writer *w, const struct mixed_runs *m)
{
	struct writer payload = { 0 };

	mixed_save(m, &payload);
	put_section(w, SECTION_MIXED, &payload.out);
	strbuf_release(&payload.out);
}

static void put_bounds(struct writer *w, enum section_id id, const struct conformal *c)
{
	struct writer payload = { 0 };

	conformal_save(c, &payload);
	put_section(w, id, &payload.out);
	strbuf_release(&payload.out);
}

int model_encode(const struct model *m, struct writer *w, struct err *err)
{
	const bool accuracy = m->accuracy.predictor.ops;
	struct writer head = { 0 };
	struct strbuf meta = { 0 };
	size_t start = w->out.len;
	int rc;

	if (!m->time.predictor.ops)
		return err_fail(err, ERR_ARG, "a model file needs a model of the time");
	if (m->n_candidates > MAX_CANDIDATES)
		return err_fail(err, ERR_ARG, "%zu candidates: a model file holds at most %d",
				m->n_candidates, MAX_CANDIDATES);
	strbuf_add(&head.out, model_magic, sizeof model_magic);
	write_u32(&head, MODEL_FORMAT_VERSION);
	write_u32(&head, 2 + (accuracy ? 1 : 0) + (m->time.conformal.n ? 1 : 0) +
				 (accuracy && m->accuracy.conformal.n ? 1 : 0) + (m->time.spread ? 1 : 0) +
				 (m->mixed.n ? 1 : 0));
	if (!head.out.failed)
		write_u64(&head, bytes_crc64(head.out.text, head.out.len));
	strbuf_add(&w->out, strbuf_text(&head.out), head.out.len);
	put_meta(m, &meta);
	put_section(w, SECTION_META, &meta);
	rc = put_predictor(w, SECTION_TIME, &m->time.predictor, err);
	if (!rc && accuracy)
		rc = put_predictor(w, SECTION_ACCURACY, &m->accuracy.predictor, err);
	if (!rc && m->time.conformal.n)
		put_bounds(w, SECTION_TIME_BOUNDS, &m->time.conformal);
	if (!rc && accuracy && m->accuracy.conformal.n)
		put_bounds(w, SECTION_ACCURACY_BOUNDS, &m->accuracy.conformal);
	if (!rc && m->time.spread)
		put_spread(w, m->time.spread);
	if (!rc && m->mixed.n)
		put_mixed(w, &m->mixed);
	if (!rc && (w->out.failed || head.out.failed))
		rc = err_nomem(err, "the model file");
	if (!rc && (meta.len > META_MAX_BYTES || w->out.len - start > MODEL_MAX_BYTES))
		rc = err_fail(err, ERR_ARG,
			      "a model file of %zu bytes (%zu of description): at most %zu (%zu)",
			      w->out.len - start, meta.len, MODEL_MAX_BYTES, META_MAX_BYTES);
	strbuf_release(&head.out);
	strbuf_release(&meta);
	return rc;
}

int model_save(const struct model *m, const char *path, struct err *err)
{
	struct writer w = { 0 };
	int rc = model_encode(m, &w, err);

	if (!rc)
		rc = io_write_file(path, strbuf_text(&w.out), w.out.len, err);
	strbuf_release(&w.out);
	return rc;
}
