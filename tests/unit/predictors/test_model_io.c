/* predictors/file/model_io: a bundle reads back to the bit, and a damaged one is refused. */
#define _GNU_SOURCE /* memmem */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/mem.h"
#include "common/rng.h"
#include "predictors/model.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

#define ROWS 24

/* 24 rows of three networks: times that a linear model nearly fits. */
static char *observations(void)
{
	static const char *const network[] = { "alexnet", "lenet5", "vgg" };
	struct strbuf b = { 0 };

	strbuf_puts(&b, "network,cpus,njobs,batch,time_s,accuracy\n");
	for (int i = 0; i < ROWS; i++)
		strbuf_printf(&b, "%s,%d,%d,%d,%.4f,%.4f\n", network[i % 3], 1 << (i % 4), 1 + i % 5,
			      64 << (i / 6), 10.0 + 2.37 * (i % 7) + i, 0.9 + 0.003 * ((i * 5) % 11));
	return b.text;
}

static void fit_target(struct model_target *t, const char *name, const char *settings, const double *x,
		       const double *y, const struct features *f, bool bounds)
{
	const struct predictor_ops *ops = predictor_find(name);
	uint8_t role[16] = { 0 };
	struct dataset d = {
		.n_rows = ROWS, .n_features = f->n, .x = (double *)x, .y = (double *)y, .role = role
	};
	struct fit_context ctx = { .seed = 7 };
	struct settings s;
	struct err err = { 0 };
	double predicted[ROWS];

	assert_non_null(ops);
	assert_true(f->n <= sizeof role);
	for (size_t i = 0; i < f->n; i++) {
		if (feature_is_category(&f->feature[i]))
			role[i] = ROLE_CATEGORY;
		for (int r = 1; r < N_ROLES; r++)
			if (schema_role(f->schema, (enum feature_role)r) == (int)f->feature[i].source)
				role[i] = (uint8_t)r;
	}
	settings_init(&s, ops->spec);
	if (settings_parse(&s, settings, &err) || predictor_fit(ops, &s, &d, &ctx, &t->predictor, &err))
		fail_msg("%s", err.text);
	predictor_predict(&t->predictor, x, ROWS, predicted);
	if (bounds)
		assert_int_equal(conformal_fit(y, predicted, ROWS, true, &t->conformal, NULL), 0);
	t->score = (struct score_summary){ .mean = { 0.1, 0.2, 1.0 / 3.0, NAN },
					   .sd = { 1, 2, 3, 4 },
					   .n_folds = 5 };
	strcpy(t->scored_by, "5-fold, grouped by network,cpus,njobs,batch");
	strcpy(t->residuals_by, "out-of-bag");
	t->n_rows = ROWS;
	t->importance = mem_calloc(f->n, sizeof *t->importance);
	t->permutation = mem_calloc(f->n, sizeof *t->permutation);
	for (size_t i = 0; i < f->n; i++) {
		t->importance[i] = 1.0 / (double)f->n;
		t->permutation[i] = i ? -0.1 * (double)i : NAN;
	}
}

/* A whole bundle, small enough to be tried byte by byte. */
static struct model *bundle(const char *time, const char *time_settings, const char *accuracy)
{
	struct model *m = mem_calloc(1, sizeof *m);
	struct csv *csv = NULL;
	struct table *t = NULL;
	struct err err = { 0 };
	char *text = observations();
	double *x = NULL;

	if (schema_default(&m->schema, &err) || csv_parse("t.csv", text, strlen(text), &csv, &err) ||
	    table_read(csv, m->schema, true, &t, &err) || features_fit(t, &m->features, &err) ||
	    features_encode_table(m->features, t, &x, &err))
		fail_msg("%s", err.text);
	fit_target(&m->time, time, time_settings, x, t->time, m->features, true);
	if (accuracy)
		fit_target(&m->accuracy, accuracy, "", x, t->accuracy, m->features, false);
	m->n_candidates = 4;
	m->candidate = mem_array(4, sizeof *m->candidate);
	for (int i = 0; i < 4; i++)
		m->candidate[i] = i ? 64 << i : 0.1;
	m->seed = UINT64_MAX - 1;
	m->data_fingerprint = 0x0123456789abcdefULL;
	m->data_rows = t->n_rows;
	strcpy(m->data_name, "data/t.csv");
	strcpy(m->created, "2024-02-29T12:00:00Z");
	strcpy(m->program, "postrider 0.1.0");
	free(x);
	table_free(t);
	csv_free(csv);
	free(text);
	return m;
}

static struct strbuf encoded(const struct model *m)
{
	struct writer w = { 0 };
	struct err err = { 0 };

	if (model_encode(m, &w, &err))
		fail_msg("%s", err.text);
	return w.out;
}

static struct model *decoded(const struct strbuf *b)
{
	struct model *m = NULL;
	struct err err = { 0 };

	if (model_decode("m.model", b->text, b->len, &m, &err))
		fail_msg("%s", err.text);
	return m;
}

/* Where section `tag` starts. */
static size_t find(const struct strbuf *b, const char *tag)
{
	for (size_t at = 24; at + 20 <= b->len;) {
		struct reader r = { .bytes = (unsigned char *)b->text, .len = b->len, .at = at + 4 };

		if (!memcmp(b->text + at, tag, 4))
			return at;
		at += 20 + (size_t)read_u64(&r);
	}
	fail_msg("no section %s", tag);
	return 0;
}

/* Puts right the checksums of a file whose lengths are, so that what lies behind them is reached. */
static void repair(struct strbuf *b)
{
	struct writer w = { 0 };

	write_u64(&w, bytes_crc64(b->text, 16));
	memcpy(b->text + 16, w.out.text, 8);
	for (size_t at = 24; at + 20 <= b->len;) {
		struct reader r = { .bytes = (unsigned char *)b->text, .len = b->len, .at = at + 4 };
		size_t len = (size_t)read_u64(&r);

		if (len > b->len - at - 20)
			break;
		strbuf_reset(&w.out);
		write_u64(&w, bytes_crc64_more(bytes_crc64(b->text + at, 12), b->text + at + 20, len));
		memcpy(b->text + at + 12, w.out.text, 8);
		at += 20 + len;
	}
	strbuf_release(&w.out);
}

static void refused(const void *bytes, size_t len, const char *say)
{
	struct model *m = NULL;
	struct err err = { 0 };

	assert_int_equal(model_decode("m.model", bytes, len, &m, &err), -ERR_FORMAT);
	assert_null(m);
	if (strncmp(err.text, "m.model", 7) || !strstr(err.text, say))
		fail_msg("'%s' does not say '%s'", err.text, say);
}

static void same_predictions(const struct predictor *a, const struct predictor *b, size_t n_features)
{
	struct rng rng = rng_stream(3, 14);
	double x[64];

	for (int k = 0; k < 500; k++) {
		double p, q;

		for (size_t i = 0; i < n_features; i++)
			x[i] = rng_below(&rng, 8) ? 600.0 * rng_uniform(&rng) : NAN;
		predictor_predict(a, x, 1, &p);
		predictor_predict(b, x, 1, &q);
		assert_memory_equal(&p, &q, sizeof p);
	}
}

TEST(test_every_model_comes_back_to_the_bit)
{
	for (size_t i = 0; predictor_all[i]; i++) {
		const char *name = predictor_all[i]->name;
		/* models of queues know nothing of accuracy; the paper's CPU is too slow for these times */
		struct model *m = bundle(name, strcmp(name, "queueing-paper") ? "" : "cpu_service=0",
					 predictor_all[i]->log_errors ? "tree" : name),
			     *n;
		struct strbuf a = encoded(m), b;

		n = decoded(&a);
		b = encoded(n);
		assert_int_equal(a.len, b.len);
		assert_memory_equal(a.text, b.text, a.len); /* nothing is lost, nothing is added */
		assert_ptr_equal(n->time.predictor.ops, predictor_all[i]);
		same_predictions(&m->time.predictor, &n->time.predictor, m->features->n);
		same_predictions(&m->accuracy.predictor, &n->accuracy.predictor, m->features->n);
		assert_int_equal(model_compile(n, NULL), 0);
		same_predictions(&m->time.predictor, &n->time.predictor, m->features->n);
		strbuf_release(&a);
		strbuf_release(&b);
		model_free(m);
		model_free(n);
	}
}

TEST(test_facts_about_the_model_come_back)
{
	struct model *m = bundle("ridge", "alpha=0.37", "linear"), *n;
	struct strbuf a = encoded(m);

	n = decoded(&a);
	assert_true(n->seed == UINT64_MAX - 1);
	assert_true(n->data_fingerprint == 0x0123456789abcdefULL);
	assert_int_equal(n->data_rows, ROWS);
	assert_string_equal(n->data_name, "data/t.csv");
	assert_string_equal(n->created, "2024-02-29T12:00:00Z");
	assert_string_equal(n->program, "postrider 0.1.0");
	assert_int_equal(n->n_candidates, 4);
	assert_memory_equal(n->candidate, m->candidate, 4 * sizeof(double));
	assert_string_equal(n->schema->decision, "batch");
	assert_ptr_equal(n->features->schema, n->schema);
	assert_true(settings_get(&n->time.predictor.settings, "alpha") == 0.37);
	assert_int_equal(n->time.predictor.n_features, n->features->n);
	assert_int_equal(n->time.n_rows, ROWS);
	assert_true(n->time.score.mean.mape == 1.0 / 3.0 && isnan(n->time.score.mean.mae));
	assert_true(n->time.score.sd.mae == 4.0);
	assert_int_equal(n->time.score.n_folds, 5);
	assert_string_equal(n->time.scored_by, m->time.scored_by);
	assert_string_equal(n->time.residuals_by, "out-of-bag");
	assert_true(n->time.importance[0] == m->time.importance[0]);
	assert_true(isnan(n->time.permutation[0]) && n->time.permutation[1] == -0.1);
	assert_int_equal(n->time.conformal.n, ROWS);
	assert_memory_equal(n->time.conformal.score, m->time.conformal.score, ROWS * sizeof(double));
	assert_true(n->time.conformal.base == m->time.conformal.base);
	assert_int_equal(n->accuracy.conformal.n, 0); /* no bounds there */
	assert_true(n->accuracy.conformal.base == 1.0);
	for (size_t i = 0; i < n->features->n; i++)
		assert_true(n->features->feature[i].max == m->features->feature[i].max);
	strbuf_release(&a);
	model_free(m);
	model_free(n);
	model_free(NULL);
}

TEST(test_a_time_model_alone_is_a_model)
{
	struct model *m = bundle("tree", "", NULL), *n;
	struct strbuf a;

	free(m->time.importance);
	free(m->time.permutation);
	m->time.importance = m->time.permutation = NULL;
	conformal_release(&m->time.conformal);
	m->n_candidates = 0;
	a = encoded(m);
	n = decoded(&a);
	assert_null(n->accuracy.predictor.ops);
	assert_null(n->time.importance);
	assert_null(n->time.permutation);
	assert_int_equal(n->time.conformal.n, 0);
	assert_int_equal(n->n_candidates, 0);
	strbuf_release(&a);
	model_free(n);
	model_free(m);
}

TEST(test_a_bundle_without_a_time_model_is_not_written)
{
	struct model *m = bundle("tree", "", NULL);
	struct writer w = { 0 };

	predictor_release(&m->time.predictor);
	assert_int_equal(model_encode(m, &w, NULL), -ERR_ARG);
	strbuf_release(&w.out);
	model_free(m);
}

TEST(test_a_cut_file_is_refused_at_every_byte)
{
	struct model *m = bundle("tree", "", "tree");
	struct strbuf a = encoded(m);

	for (size_t len = 0; len < a.len; len++) {
		/* a copy of exactly that size: a read past its end is seen by a sanitizer */
		char *copy = malloc(len ? len : 1);

		memcpy(copy, a.text, len);
		refused(copy, len, len ? "more bytes expected" : "empty");
		free(copy);
	}
	refused(a.text, 40, "ends at offset 40 inside the header of section 1 of 4, 4 more bytes expected");
	refused(a.text, find(&a, "TMOD") + 25, "inside section TMOD");
	strbuf_add(&a, "x", 1);
	refused(a.text, a.len, "1 bytes too many after the last section");
	strbuf_release(&a);
	model_free(m);
}

TEST(test_a_flipped_bit_is_refused_wherever_it_is)
{
	struct model *m = bundle("tree", "", "linear");
	struct strbuf a = encoded(m);

	for (size_t i = 0; i < a.len * 8; i++) {
		a.text[i / 8] ^= (char)(1 << (i % 8));
		refused(a.text, a.len, "");
		a.text[i / 8] ^= (char)(1 << (i % 8));
	}
	model_free(m);
	m = decoded(&a); /* and all of them are back */
	model_free(m);
	strbuf_release(&a);
}

/* With checksums that agree the contents are on their own: whatever loads must be safe to use. */
TEST(test_a_flipped_bit_behind_the_checksum_does_no_harm)
{
	static const char *const name[] = { "tree", "linear", "boost", "lasso" };

	for (size_t k = 0; k < 4; k++) {
		struct model *m = bundle(name[k], k == 2 ? "trees=2" : "", NULL), *n;
		struct strbuf a = encoded(m), b = { .text = malloc(a.len), .len = a.len };
		size_t loaded = 0;
		double x[64];

		for (size_t i = 0; i < m->features->n; i++)
			x[i] = 3.7;
		/* under a sanitizer one bit of every byte, not the same in all */
		for (size_t i = 0; i < a.len * 8; i += sanitized() ? 7 : 1) {
			double p;

			memcpy(b.text, a.text, a.len);
			b.text[i / 8] ^= (char)(1 << (i % 8));
			repair(&b);
			n = NULL;
			if (!model_decode("m", b.text, b.len, &n, NULL)) {
				predictor_predict(&n->time.predictor, x, 1, &p);
				model_free(n);
				loaded++;
			}
		}
		assert_true(loaded > 0); /* the last digits of a number may differ */
		free(b.text);
		strbuf_release(&a);
		model_free(m);
	}
}

TEST(test_foreign_files_are_called_so)
{
	struct model *m = bundle("tree", "", NULL);
	struct strbuf a = encoded(m);

	refused("network,cpus", 12, "not a Postrider model (first bytes 6e 65 74 77 6f 72 6b 2c)");
	refused("\x89PNG\r\n\x1a\n", 8, "not a Postrider model (first bytes 89 50 4e 47");
	refused("ab", 2, "not a Postrider model (first bytes 61 62)");
	a.text[8] = 7;
	refused(a.text, a.len, "the header's checksum");
	repair(&a);
	refused(a.text, a.len, "format version 7; this program reads 1 to 6");
	a.text[8] = 1;
	a.text[12] = 9;
	repair(&a);
	refused(a.text, a.len, "9 sections announced");
	strbuf_release(&a);
	model_free(m);
}

TEST(test_damage_is_named_with_its_place)
{
	struct model *m = bundle("tree", "", NULL);
	struct strbuf a = encoded(m);
	char want[128];
	size_t at = find(&a, "TMOD");

	a.text[at + 30] ^= 1;
	snprintf(want, sizeof want, "the checksum of section TMOD at offset %zu does not match", at);
	refused(a.text, a.len, want);
	a.text[at + 30] ^= 1;
	memcpy(a.text + at, "XMOD", 4);
	repair(&a);
	snprintf(want, sizeof want, "unknown section 'XMOD' at offset %zu", at);
	refused(a.text, a.len, want);
	memcpy(a.text + at, "META", 4);
	repair(&a);
	refused(a.text, a.len, "section META at offset");
	memcpy(a.text + at, "AMOD", 4); /* META names a time model and no accuracy model */
	repair(&a);
	refused(a.text, a.len, "do not agree");
	strbuf_release(&a);
	model_free(m);
}

/* Replaces the first `from` in section META by `to`, length and checksums put right. */
static struct strbuf edited(const struct strbuf *a, const char *from, const char *to)
{
	size_t at = find(a, "META"), next = find(a, "TMOD");
	const char *hit = memmem(a->text + at, next - at, from, strlen(from));
	struct writer w = { 0 };

	if (!hit)
		fail_msg("no '%s' in META", from);
	strbuf_add(&w.out, a->text, at + 4);
	write_u64(&w, next - at - 20 - strlen(from) + strlen(to));
	write_u64(&w, 0);
	strbuf_add(&w.out, a->text + at + 20, (size_t)(hit - a->text) - at - 20);
	strbuf_puts(&w.out, to);
	strbuf_add(&w.out, hit + strlen(from), a->len - (size_t)(hit - a->text) - strlen(from));
	repair(&w.out);
	return w.out;
}

TEST(test_what_meta_says_is_checked)
{
	static const char *const edit[][3] = {
		{ "\"model\":\"ridge\"", "\"model\":\"oracle\"", "no model called 'oracle'" },
		{ "\"model\":\"ridge\"", "\"model\":5", "META.time.model" },
		{ "\"model\":", "\"modell\":", "modell" },
		{ "\"alpha\":", "\"alhpa\":", "did you mean 'alpha'?" },
		{ "\"rows\":24", "\"rows\":-1", "rows" },
		{ "\"rows\":24", "\"rows\":2.5", "rows" },
		{ "\"rows\":24", "\"rows\":1e300", "rows" },
		{ "\"seed\":\"1", "\"seed\":\"-1", "seed" },
		{ "\"seed\":\"", "\"seed\":\"99", "seed" }, /* past 64 bits */
		{ "\"0123456789abcdef\"", "\"0123456789abcde\"", "fingerprint" },
		{ "\"0123456789abcdef\"", "\"0123456789abcdeg\"", "fingerprint" },
		{ "\"candidates\":[0.1,", "\"candidates\":[300,", "candidates" },
		{ "\"candidates\":[0.1,", "\"candidates\":[null,", "candidates" },
		{ "\"candidates\":[0.1,", "\"candidates\":[\"a\",", "candidates" },
		{ "\"candidates\":[", "\"candidats\":[", "candidats" },
		{ "\"candidates\":[0.1", "\"candidates\":[0.1,0.2,[]", "candidates" },
		{ "\"importance\":[", "\"importance\":[0.5,", "importance" },
		{ "\"permutation\":[null,", "\"permutation\":[", "permutation" },
		{ "\"folds\":5", "\"folds\":\"5\"", "folds" },
		{ "\"mse\":", "\"msee\":", "mse" },
		{ "\"mean\":{", "\"mean\":{\"x\":1,", "x" },
		{ "\"score\":{", "\"score\":[{", "META" },
		{ "\"scored_by\":\"", "\"scored_by\":5,\"residuals_by\":\"", "" },
		{ "\"decision\":\"batch\"", "\"decision\":\"bath\"", "META: decision 'bath'" },
		{ "\"source\":\"batch\"", "\"source\":\"bath\"", "META: features[" },
		{ "\"program\":\"postrider 0.1.0\",", "", "META.program" },
		{ "\"created\":\"2024-02-29T12:00:00Z\"", "\"created\":null", "META.created" },
		{ "{\"program\"", "{\"extra\":1,\"program\"", "extra" },
		{ "{\"program\"", "{{\"program\"", "META:1:2" },
		{ "\"data\":{", "\"data\":{\"colour\":1,", "colour" },
		{ "\"data\":{\"name\":\"data/t.csv\",", "\"data\":{", "META.data.name" },
	};
	struct model *m = bundle("ridge", "", NULL), *n;
	struct strbuf a = encoded(m), b;

	for (size_t i = 0; i < sizeof edit / sizeof *edit; i++) {
		b = edited(&a, edit[i][0], edit[i][1]);
		refused(b.text, b.len, edit[i][2]);
		strbuf_release(&b);
	}
	/* text for people that is too long is cut, between characters */
	b = edited(&a, "\"2024-02-29T12:00:00Z\"",
		   "\"0123456789012345678901234567\xc3\xa9\xc3\xa9\xc3\xa9\"");
	n = decoded(&b);
	assert_string_equal(n->created, "0123456789012345678901234567\xc3\xa9");
	model_free(n);
	strbuf_release(&b);
	strbuf_release(&a);
	model_free(m);
}

TEST(test_bounds_in_log_time_come_back)
{
	struct model *m = bundle("ridge", "", NULL), *n;
	struct strbuf a, b;

	m->time.conformal.log = true;
	m->time.conformal.base = 1.0;
	m->time.conformal.slope = 0.0;
	m->time.widening = mem_calloc(m->features->n, sizeof *m->time.widening);
	for (size_t i = 0; i < m->features->n; i++)
		m->time.widening[i] = 1.0 + 0.37 * (double)i;
	a = encoded(m);
	n = decoded(&a);
	assert_true(n->time.conformal.log);
	assert_memory_equal(n->time.widening, m->time.widening, m->features->n * sizeof(double));
	b = edited(&a, "\"bounds\":\"log\"", "\"bounds\":\"cubic\"");
	refused(b.text, b.len, "META.time.bounds");
	strbuf_release(&b);
	b = edited(&a, "\"widening\":[1,", "\"widening\":[0.9,");
	refused(b.text, b.len, "META.time.widening");
	strbuf_release(&b);
	b = edited(&a, "\"widening\":[1,", "\"widening\":[");
	refused(b.text, b.len, "META.time.widening");
	strbuf_release(&b);
	strbuf_release(&a);
	model_free(m);
	model_free(n);
}

/* Section `tag` with its payload cut or lengthened. */
static struct strbuf resized(const struct strbuf *a, const char *tag, int by)
{
	size_t at = find(a, tag);
	struct reader r = { .bytes = (unsigned char *)a->text, .len = a->len, .at = at + 4 };
	size_t len = (size_t)read_u64(&r);
	struct writer w = { 0 };

	strbuf_add(&w.out, a->text, at + 4);
	write_u64(&w, len + (size_t)by);
	write_u64(&w, 0);
	strbuf_add(&w.out, a->text + at + 20, by < 0 ? len + (size_t)by : len);
	for (int i = 0; i < by; i++)
		strbuf_add(&w.out, "\0", 1);
	strbuf_add(&w.out, a->text + at + 20 + len, a->len - at - 20 - len);
	repair(&w.out);
	return w.out;
}

TEST(test_payloads_end_where_they_say)
{
	static const char *const tag[] = { "TMOD", "AMOD", "TRES" };
	struct model *m = bundle("linear", "", "tree");
	struct strbuf a = encoded(m), b;

	for (int i = 0; i < 3; i++) {
		b = resized(&a, tag[i], 3);
		refused(b.text, b.len, "3 bytes too many");
		strbuf_release(&b);
		b = resized(&a, tag[i], -1);
		refused(b.text, b.len, tag[i]);
		strbuf_release(&b);
	}
	strbuf_release(&a);
	model_free(m);
}

TEST(test_running_out_of_memory_is_an_error_and_leaks_nothing)
{
	struct model *m = bundle("tree", "", "linear");
	struct strbuf a = encoded(m);
	bool more = true;

	for (unsigned long k = 1; more; k++) {
		struct model *n = NULL;
		int rc;

		mem_fail_at(k, false);
		rc = model_decode("m", a.text, a.len, &n, NULL);
		more = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, more ? -ERR_NOMEM : 0);
		assert_true(more == !n);
		model_free(n);
	}
	more = true;
	for (unsigned long k = 1; more; k++) {
		struct writer w = { 0 };
		int rc;

		mem_fail_at(k, false);
		rc = model_encode(m, &w, NULL);
		more = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, more ? -ERR_NOMEM : 0);
		strbuf_release(&w.out);
	}
	strbuf_release(&a);
	model_free(m);
}

TEST(test_files_are_written_whole_and_read_back)
{
	const char *path = support_path(support_temp_dir(), "a.model");
	struct model *m = bundle("tree", "", NULL), *n = NULL;
	struct err err = { 0 };

	assert_int_equal(model_load(path, &n, &err), -ERR_NOTFOUND);
	assert_int_equal(model_save(m, path, &err), 0);
	assert_int_equal(model_load(path, &n, &err), 0);
	same_predictions(&m->time.predictor, &n->time.predictor, m->features->n);
	model_free(n);
	assert_int_equal(model_load(support_temp_dir(), &n, &err), -ERR_FORMAT); /* a folder */
	model_free(m);
}

TEST(test_a_failed_write_leaves_the_old_file)
{
	const char *path = support_path(support_temp_dir(), "b.model");
	struct model *old = bundle("tree", "", NULL), *fresh = bundle("ridge", "", "tree");
	struct strbuf before = encoded(old), after = encoded(fresh);
	bool more = true, last = false;

	for (unsigned long k = 1; more; k++) {
		char *bytes = NULL;
		size_t len = 0;
		bool is_old, is_new;
		int rc;

		assert_int_equal(model_save(old, path, NULL), 0);
		io_fail_at(k, ENOSPC);
		rc = model_save(fresh, path, NULL);
		more = io_failed();
		io_fail_at(0, 0);
		assert_true(more == (rc != 0));
		assert_int_equal(io_read_file(path, MODEL_MAX_BYTES, &bytes, &len, NULL), 0);
		is_old = len == before.len && !memcmp(bytes, before.text, len);
		is_new = len == after.len && !memcmp(bytes, after.text, len);
		/* the very last step syncs the folder: where only that failed, the new file is in place */
		assert_true(more ? is_old || is_new : is_new);
		assert_false(more && last);
		last = more && is_new;
		free(bytes);
	}
	strbuf_release(&before);
	strbuf_release(&after);
	model_free(old);
	model_free(fresh);
}

/* Version 2 knew settings and contexts, and no families. The bounds are those that its program printed. */
TEST(test_a_model_of_version_2_keeps_its_bounds)
{
	static const double batch[] = { 16, 64 }, was_s[] = { 17.01539187901224, 8.569510903525144 };
	struct model *m[2];
	struct writer w = { 0 };
	struct err err = { 0 };

	if (model_load("tests/fuzz/corpus/model/v2-queueing-context.model", &m[0], &err))
		fail_msg("%s", err.text);
	assert_int_equal(model_encode(m[0], &w, NULL), 0); /* as the newest version */
	assert_int_equal(model_decode("again", w.out.text, w.out.len, &m[1], NULL), 0);
	for (size_t k = 0; k < 2; k++) {
		struct job_values v;
		double x[16], t, q;

		assert_int_equal(conformal_quantile(&m[k]->time.conformal, 0.9, &q, NULL), 0);
		assert_int_equal(job_values_init(&v, m[k]->schema, NULL), 0);
		assert_int_equal(
			job_values_parse(&v, m[k]->schema, "network=small,cpus=1,njobs=1,epochs=5", NULL), 0);
		for (size_t i = 0; i < 2; i++) {
			v.number[schema_find(m[k]->schema, "batch")] = batch[i];
			features_encode_job(m[k]->features, &v, x);
			predictor_predict(&m[k]->time.predictor, x, 1, &t);
			t = model_upper(m[k], &m[k]->time, x, q, t);
			assert_true(fabs(t / was_s[i] - 1.0) < 1e-12);
			assert_int_equal(spread_new_family(m[k]->time.spread, x), 0);
		}
		v.number[schema_find(m[k]->schema, "cpus")] = 7; /* which family is new it cannot say */
		features_encode_job(m[k]->features, &v, x);
		assert_int_equal(spread_new_family(m[k]->time.spread, x), 0);
		assert_int_equal(spread_knows(m[k]->time.spread, x), KNOWS_NEITHER);
		job_values_release(&v);
		model_free(m[k]);
	}
	strbuf_release(&w.out);
}

/* Version 5 had no scale of its own for names that the table does not have: "zz". As its program printed. */
TEST(test_a_model_of_version_5_keeps_its_bounds)
{
	static const char *const job[] = { "network=a,gpu=x,batch=32", "network=zz,gpu=x,batch=32",
					   "network=a,gpu=y,batch=256" };
	static const double was_s[] = { 7.1020515856194235, 19.4840835803128, 2.1861361854926686 };
	struct model *m[2];
	struct writer w = { 0 };
	struct err err = { 0 };

	if (model_load("tests/fuzz/corpus/model/v5-hybrid-names.model", &m[0], &err))
		fail_msg("%s", err.text);
	assert_int_equal(model_encode(m[0], &w, NULL), 0); /* as the newest version */
	assert_int_equal(model_decode("again", w.out.text, w.out.len, &m[1], NULL), 0);
	for (size_t k = 0; k < 2; k++) {
		double x[16], t, q;

		assert_int_equal(conformal_quantile(&m[k]->time.conformal, 0.9, &q, NULL), 0);
		for (size_t i = 0; i < 3; i++) {
			struct job_values v;

			assert_int_equal(job_values_init(&v, m[k]->schema, NULL), 0);
			assert_int_equal(job_values_parse(&v, m[k]->schema, job[i], NULL), 0);
			features_encode_job(m[k]->features, &v, x);
			predictor_predict(&m[k]->time.predictor, x, 1, &t);
			assert_true(fabs(model_upper(m[k], &m[k]->time, x, q, t) / was_s[i] - 1.0) < 1e-12);
			job_values_release(&v);
		}
		model_free(m[k]);
	}
	strbuf_release(&w.out);
}
