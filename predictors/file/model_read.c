/* Reading model bundles. Nothing in a file is trusted, whatever its checksums say. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "predictors/file/model_file.h"
#include "predictors/models/widening.h"

#define NAMES_SINCE 6 /* version from which names that a table does not have are scaled apart */

struct section {
	const unsigned char *payload;
	size_t len, offset; /* offset of the payload in the file */
	uint32_t version; /* of the file */
	bool present;
};

static int check_header(const char *name, const unsigned char *bytes, size_t len, uint32_t *out_version,
			uint32_t *out_sections, struct err *err)
{
	struct reader r = { .bytes = bytes, .len = len };
	uint64_t crc;
	uint32_t version;

	if (!len)
		return err_fail(err, ERR_FORMAT, "%s: not a Postrider model: it is empty", name);
	if (memcmp(bytes, model_magic, len < sizeof model_magic ? len : sizeof model_magic) != 0) {
		char first[32] = "";

		for (size_t i = 0; i < len && i < 8; i++)
			snprintf(first + 3 * i, sizeof first - 3 * i, " %02x", bytes[i]);
		return err_fail(err, ERR_FORMAT, "%s: not a Postrider model (first bytes%s)", name, first);
	}
	if (len < HEADER_BYTES)
		return err_fail(err, ERR_FORMAT,
				"%s: ends at offset %zu inside the header, %zu more bytes expected", name,
				len, HEADER_BYTES - len);
	r.at = sizeof model_magic;
	version = read_u32(&r);
	*out_sections = read_u32(&r);
	crc = read_u64(&r);
	if (crc != bytes_crc64(bytes, HEADER_BYTES - 8))
		return err_fail(err, ERR_FORMAT,
				"%s: the header's checksum at offset %d does not match: damaged", name,
				HEADER_BYTES - 8);
	if (version < 1 || version > MODEL_FORMAT_VERSION)
		return err_fail(err, ERR_FORMAT, "%s: format version %" PRIu32 "; this program reads 1 to %d",
				name, version, MODEL_FORMAT_VERSION);
	*out_version = version;
	if (*out_sections > N_SECTIONS)
		return err_fail(err, ERR_FORMAT, "%s: %" PRIu32 " sections announced, at most %d", name,
				*out_sections, N_SECTIONS);
	return 0;
}

/* Finds the sections and checks their checksums; nothing inside them is looked at. */
static int find_sections(const char *name, const unsigned char *bytes, size_t len, uint32_t version,
			 uint32_t n, struct section *out, struct err *err)
{
	size_t at = HEADER_BYTES;

	for (uint32_t i = 0; i < n; i++) {
		struct reader r = { .bytes = bytes, .len = len, .at = at + 4 };
		char tag[5] = "????";
		uint64_t size, crc;
		int id = -1;

		if (len - at < SECTION_BYTES)
			return err_fail(err, ERR_FORMAT,
					"%s: ends at offset %zu inside the header of section %" PRIu32
					" of %" PRIu32 ", %zu more bytes expected",
					name, len, i + 1, n, SECTION_BYTES - (len - at));
		for (size_t k = 0; k < 4; k++)
			tag[k] = isprint(bytes[at + k]) ? (char)bytes[at + k] : '?';
		size = read_u64(&r);
		crc = read_u64(&r);
		if (size > read_left(&r))
			return err_fail(err, ERR_FORMAT,
					"%s: ends at offset %zu inside section %s, %" PRIu64
					" more bytes expected",
					name, len, tag, size - read_left(&r));
		if (crc != model_section_crc(bytes + at, bytes + r.at, (size_t)size))
			return err_fail(
				err, ERR_FORMAT,
				"%s: the checksum of section %s at offset %zu does not match: damaged", name,
				tag, at);
		for (int k = 0; k < N_SECTIONS; k++)
			if (!memcmp(bytes + at, model_section_tag[k], 4))
				id = k;
		if (id < 0)
			return err_fail(err, ERR_FORMAT, "%s: unknown section '%s' at offset %zu", name, tag,
					at);
		if (out[id].present || (i == 0) != (id == SECTION_META))
			return err_fail(err, ERR_FORMAT, "%s: section %s at offset %zu is out of place", name,
					tag, at);
		out[id] = (struct section){ bytes + r.at, (size_t)size, r.at, version, true };
		at = r.at + (size_t)size;
	}
	if (at < len)
		return err_fail(err, ERR_FORMAT,
				"%s: %zu bytes too many after the last section, from offset %zu", name,
				len - at, at);
	if (!out[SECTION_META].present)
		return err_fail(err, ERR_FORMAT, "%s: no section META", name);
	if (out[SECTION_META].len > META_MAX_BYTES)
		return err_fail(err, ERR_FORMAT, "%s: section META has %zu bytes, at most %zu", name,
				out[SECTION_META].len, META_MAX_BYTES);
	return 0;
}

/* `where` for messages about members: "FILE: META". */
struct source {
	const char *name, *where;
	struct err *err;
};

static int bad_member(const struct source *src, const char *key, const char *need)
{
	return err_fail(src->err, ERR_FORMAT, "%s: %s.%s: need %s", src->name, src->where, key, need);
}

/* A count; JSON numbers are whole up to 2^53. */
static int get_size(const struct source *src, const struct json *v, const char *key, size_t *out)
{
	double d = json_number(json_get(v, key), -1.0);

	if (!(d >= 0.0 && d <= 0x1p53 && d == floor(d)))
		return bad_member(src, key, "a whole number");
	*out = (size_t)d;
	return 0;
}

/* Text for people. What does not fit is cut, between characters. */
static int get_text(const struct source *src, const struct json *v, const char *key, char *out, size_t size)
{
	const char *s = json_string(json_get(v, key), NULL);
	size_t n;

	if (!s)
		return bad_member(src, key, "a string");
	n = strlen(s);
	if (n >= size)
		for (n = size - 1; n && ((unsigned char)s[n] & 0xc0) == 0x80; n--)
			;
	memcpy(out, s, n);
	out[n] = '\0';
	return 0;
}

/* A list of numbers; null stands for NaN. An absent list stays NULL. */
static int get_numbers(const struct source *src, const struct json *v, const char *key, size_t max,
		       double **out, size_t *out_n)
{
	const struct json *list = json_get(v, key);
	size_t n = json_size(list);
	double *d;

	*out_n = 0;
	if (!list)
		return 0;
	if (json_type(list) != JSON_ARRAY || n > max)
		return bad_member(src, key, "a list of numbers, as many as there should be");
	d = mem_array(n, sizeof *d);
	if (!d)
		return err_fail(src->err, ERR_NOMEM, "%s: out of memory for %zu numbers", src->name, n);
	for (const struct json *e = json_first(list); e; e = json_next(e)) {
		if (json_type(e) != JSON_NUMBER && json_type(e) != JSON_NULL) {
			free(d);
			return bad_member(src, key, "numbers");
		}
		d[(*out_n)++] = json_number(e, NAN);
	}
	*out = d;
	return 0;
}

static int get_score(const struct source *src, const struct json *v, const char *key, struct score *out)
{
	static const char *const known[] = { "mse", "r2", "mape", "mae", NULL };
	const struct json *s = json_get(v, key);
	double *field[] = { &out->mse, &out->r2, &out->mape, &out->mae };

	if (json_type(s) != JSON_OBJECT)
		return bad_member(src, key, "an object");
	for (size_t i = 0; i < 4; i++) {
		const struct json *m = json_get(s, known[i]);

		if (json_type(m) != JSON_NUMBER && json_type(m) != JSON_NULL)
			return bad_member(src, known[i], "a number or null");
		*field[i] = json_number(m, NAN);
	}
	return json_known_keys(s, key, known, src->err)
		       ? err_prefix(src->err, "%s: %s", src->name, src->where)
		       : 0;
}

static int get_settings(const struct source *src, const struct json *v, struct predictor *p)
{
	const struct json *s = json_get(v, "settings");

	settings_init(&p->settings, p->ops->spec);
	if (json_type(s) != JSON_OBJECT)
		return bad_member(src, "settings", "an object");
	for (const struct json *m = json_first(s); m; m = json_next(m)) {
		if (settings_set_json(&p->settings, json_key(m), m, src->err)) {
			if (src->err->code == ERR_ARG)
				src->err->code = ERR_FORMAT; /* the file says it, not the caller */
			return err_prefix(src->err, "%s: %s.settings", src->name, src->where);
		}
	}
	return 0;
}

/* What META says about one target. */
static int get_target(const struct source *src, const struct json *v, size_t n_features,
		      struct model_target *out)
{
	static const char *const known[] = { "model",     "settings",     "rows",        "score",
					     "scored_by", "residuals_by", "importance",  "permutation",
					     "bounds",    "widening",     "independent", NULL };
	const struct json *score = json_get(v, "score"), *bounds = json_get(v, "bounds");
	const struct predictor_ops *ops;
	const char *model = json_string(json_get(v, "model"), NULL);
	char shown[64];
	size_t n;
	int rc;

	if (json_type(v) != JSON_OBJECT)
		return err_fail(src->err, ERR_FORMAT, "%s: %s: need an object", src->name, src->where);
	if (json_known_keys(v, src->where, known, src->err))
		return err_prefix(src->err, "%s", src->name);
	if (!model)
		return bad_member(src, "model", "a string");
	ops = predictor_of_file(model);
	if (!ops)
		return err_fail(src->err, ERR_FORMAT, "%s: %s: this program has no model called '%s'",
				src->name, src->where, text_printable(model, shown, sizeof shown));
	out->predictor.ops = ops; /* without a self yet, which destroy() accepts */
	out->predictor.n_features = n_features;
	rc = get_settings(src, v, &out->predictor);
	out->predictor.log = !rc && predictor_logs(ops, &out->predictor.settings);
	if (!rc)
		rc = get_size(src, v, "rows", &out->n_rows);
	if (!rc && json_type(score) != JSON_OBJECT)
		rc = bad_member(src, "score", "an object");
	if (!rc)
		rc = get_score(src, score, "mean", &out->score.mean);
	if (!rc)
		rc = get_score(src, score, "sd", &out->score.sd);
	if (!rc)
		rc = get_size(src, score, "folds", &out->score.n_folds);
	if (!rc)
		rc = get_text(src, v, "scored_by", out->scored_by, sizeof out->scored_by);
	if (!rc)
		rc = get_text(src, v, "residuals_by", out->residuals_by, sizeof out->residuals_by);
	if (!rc)
		rc = get_numbers(src, v, "importance", n_features, &out->importance, &n);
	if (!rc && out->importance && n != n_features)
		rc = bad_member(src, "importance", "a number per feature");
	if (!rc)
		rc = get_numbers(src, v, "permutation", n_features, &out->permutation, &n);
	if (!rc && out->permutation && n != n_features)
		rc = bad_member(src, "permutation", "a number per feature");
	if (!rc)
		rc = get_numbers(src, v, "widening", n_features, &out->widening, &n);
	if (!rc && out->widening && n != n_features)
		rc = bad_member(src, "widening", "a number per feature");
	for (size_t i = 0; !rc && out->widening && i < n; i++)
		if (!(out->widening[i] >= 1.0))
			rc = bad_member(src, "widening", "numbers of at least 1");
	if (!rc && json_get(v, "independent"))
		rc = get_size(src, v, "independent", &out->conformal.groups);
	if (!rc && bounds) {
		out->conformal.log = !strcmp(json_string(bounds, ""), "log");
		if (!out->conformal.log)
			rc = bad_member(src, "bounds", "\"log\"");
	}
	return rc;
}

/* 16 hexadecimal digits. */
static bool hex64(const char *s, uint64_t *out)
{
	if (!s || strlen(s) != 16 || strspn(s, "0123456789abcdef") != 16)
		return false;
	*out = strtoull(s, NULL, 16);
	return true;
}

static int get_data(const struct source *src, const struct json *v, struct model *m)
{
	static const char *const known[] = { "name", "rows", "fingerprint", NULL };
	const struct source at = { src->name, "META.data", src->err };
	int rc;

	if (json_type(v) != JSON_OBJECT)
		return bad_member(src, "data", "an object");
	if (json_known_keys(v, at.where, known, src->err))
		return err_prefix(src->err, "%s", src->name);
	rc = get_text(&at, v, "name", m->data_name, sizeof m->data_name);
	if (!rc)
		rc = get_size(&at, v, "rows", &m->data_rows);
	if (!rc && !hex64(json_string(json_get(v, "fingerprint"), NULL), &m->data_fingerprint))
		rc = bad_member(&at, "fingerprint", "16 hexadecimal digits");
	return rc;
}

static int get_candidates(const struct source *src, const struct json *v, struct model *m)
{
	int rc = get_numbers(src, v, "candidates", MAX_CANDIDATES, &m->candidate, &m->n_candidates);

	if (rc)
		return rc;
	if (!m->candidate)
		return bad_member(src, "candidates", "a list of numbers");
	for (size_t i = 0; i < m->n_candidates; i++)
		if (!isfinite(m->candidate[i]) || (i && m->candidate[i] <= m->candidate[i - 1]))
			return bad_member(src, "candidates", "ascending numbers");
	return 0;
}

static int get_meta(const char *name, const char *meta_name, const struct json *v, struct model *m,
		    struct err *err)
{
	static const char *const known[] = { "program",  "created",    "seed", "data",     "schema",
					     "features", "candidates", "time", "accuracy", NULL };
	const struct source src = { name, "META", err };
	const struct source time = { name, "META.time", err }, accuracy = { name, "META.accuracy", err };
	const char *seed = json_string(json_get(v, "seed"), "");
	int rc;

	if (json_type(v) != JSON_OBJECT)
		return err_fail(err, ERR_FORMAT, "%s: META: need an object", name);
	if (json_known_keys(v, "META", known, err))
		return err_prefix(err, "%s", name);
	rc = get_text(&src, v, "program", m->program, sizeof m->program);
	if (!rc)
		rc = get_text(&src, v, "created", m->created, sizeof m->created);
	if (!rc && !text_uint64(seed, &m->seed))
		rc = bad_member(&src, "seed", "a whole number as a string");
	if (!rc)
		rc = get_data(&src, json_get(v, "data"), m);
	if (!rc)
		rc = schema_from_json(meta_name, json_get(v, "schema"), &m->schema, err);
	if (!rc)
		rc = features_from_json(meta_name, json_get(v, "features"), m->schema, &m->features, err);
	if (!rc)
		rc = get_candidates(&src, v, m);
	if (!rc)
		rc = get_target(&time, json_get(v, "time"), m->features->n, &m->time);
	if (!rc && json_get(v, "accuracy"))
		rc = get_target(&accuracy, json_get(v, "accuracy"), m->features->n, &m->accuracy);
	return rc;
}

static int check_end(const char *name, enum section_id id, const struct section *s, const struct reader *r,
		     struct err *err)
{
	if (r->failed)
		return err_fail(err, ERR_FORMAT, "%s: section %s at offset %zu ends before its contents do",
				name, model_section_tag[id], s->offset);
	if (r->at < r->len)
		return err_fail(err, ERR_FORMAT, "%s: section %s: %zu bytes too many from offset %zu", name,
				model_section_tag[id], r->len - r->at, s->offset + r->at);
	return 0;
}

/* The model itself and its residuals. Where META names no model the sections must be absent. */
static int get_payloads(const char *name, const struct section *section, enum section_id id,
			enum section_id bounds, struct model_target *out, struct err *err)
{
	const struct predictor_ops *ops = out->predictor.ops;
	struct reader r = { .bytes = section[id].payload,
			    .len = section[id].len,
			    .version = section[id].version };
	bool log;
	size_t groups;
	int rc;

	if (section[id].present != (ops != NULL) || (section[bounds].present && !ops))
		return err_fail(err, ERR_FORMAT,
				"%s: section META and section %s do not agree on what is there", name,
				model_section_tag[section[id].present != (ops != NULL) ? id : bounds]);
	if (!ops)
		return 0;
	rc = ops->load(&r, out->predictor.n_features, &out->predictor.self, err);
	if (rc) {
		if (rc != -ERR_NOMEM)
			err->code = ERR_FORMAT;
		return err_prefix(err, "%s: section %s at offset %zu (%s)", name, model_section_tag[id],
				  section[id].offset, ops->name);
	}
	rc = check_end(name, id, &section[id], &r, err);
	if (rc || !section[bounds].present)
		return rc;
	r = (struct reader){ .bytes = section[bounds].payload,
			     .len = section[bounds].len,
			     .version = section[bounds].version };
	log = out->conformal.log; /* META knows these two; the section holds the scores alone */
	groups = out->conformal.groups;
	rc = conformal_load(&r, &out->conformal, err);
	out->conformal.log = log;
	if (!rc && groups)
		conformal_set_groups(&out->conformal, groups);
	if (rc)
		return err_prefix(err, "%s: section %s at offset %zu", name, model_section_tag[bounds],
				  section[bounds].offset);
	return check_end(name, bounds, &section[bounds], &r, err);
}

/* The scales of the scores; files of older programs have none. */
static int get_spread(const char *name, const struct section *s, struct model *m, struct err *err)
{
	struct reader r = { .bytes = s->payload, .len = s->len, .version = s->version };
	int rc;

	if (!s->present)
		return 0;
	rc = spread_load(&r, m->features->n, &m->time.spread, err);
	if (rc)
		return err_prefix(err, "%s: section %s at offset %zu", name,
				  model_section_tag[SECTION_TIME_SPREAD], s->offset);
	return check_end(name, SECTION_TIME_SPREAD, s, &r, err);
}

/* Files of older programs, and of tables without such runs, have none. */
static int get_mixed(const char *name, const struct section *s, struct model *m, struct err *err)
{
	struct reader r = { .bytes = s->payload, .len = s->len, .version = s->version };
	int rc;

	if (!s->present)
		return 0;
	rc = mixed_load(&r, &m->mixed, err);
	if (rc)
		return err_prefix(err, "%s: section %s at offset %zu", name, model_section_tag[SECTION_MIXED],
				  s->offset);
	return check_end(name, SECTION_MIXED, s, &r, err);
}

int model_decode(const char *name, const void *bytes, size_t len, struct model **out, struct err *err)
{
	struct section section[N_SECTIONS] = { 0 };
	struct err unseen;
	struct json *meta = NULL;
	struct model *m = NULL;
	uint32_t version = 0, n_sections = 0;
	char meta_name[NAME_SHOWN + 16];
	int rc;

	if (!err)
		err = &unseen; /* codes are looked at below */
	name = text_tail(name, NAME_SHOWN);
	if (len > MODEL_MAX_BYTES)
		return err_fail(err, ERR_FORMAT, "%s: %zu bytes, a model has at most %zu", name, len,
				MODEL_MAX_BYTES);
	rc = check_header(name, bytes, len, &version, &n_sections, err);
	if (!rc)
		rc = find_sections(name, bytes, len, version, n_sections, section, err);
	if (rc)
		return rc;
	snprintf(meta_name, sizeof meta_name, "%s: META", name);
	rc = json_parse(meta_name, (const char *)section[SECTION_META].payload, section[SECTION_META].len,
			&meta, err);
	if (rc)
		return rc;
	m = mem_calloc(1, sizeof *m);
	if (!m) {
		rc = err_fail(err, ERR_NOMEM, "%s: out of memory", name);
		goto out;
	}
	m->time.conformal.base = m->accuracy.conformal.base = 1.0;
	rc = get_meta(name, meta_name, meta, m, err);
	if (!rc)
		rc = get_payloads(name, section, SECTION_TIME, SECTION_TIME_BOUNDS, &m->time, err);
	if (!rc)
		rc = get_payloads(name, section, SECTION_ACCURACY, SECTION_ACCURACY_BOUNDS, &m->accuracy,
				  err);
	if (!rc)
		rc = get_spread(name, &section[SECTION_TIME_SPREAD], m, err);
	if (!rc)
		rc = get_mixed(name, &section[SECTION_MIXED], m, err);
	if (!rc && version < NAMES_SINCE && m->time.widening)
		widening_of_names(m->time.widening, m->features);
	if (!rc) {
		*out = m;
		m = NULL;
	}
out:
	json_free(meta);
	model_free(m);
	return rc;
}

int model_load(const char *path, struct model **out, struct err *err)
{
	char *bytes = NULL;
	size_t len = 0;
	int rc = io_read_file(path, MODEL_MAX_BYTES, &bytes, &len, err);

	if (rc)
		return rc;
	rc = model_decode(strcmp(path, "-") ? path : "standard input", bytes, len, out, err);
	free(bytes);
	return rc;
}
