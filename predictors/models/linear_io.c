/* Linear models for people and in model files. */
#include "predictors/models/linear_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/mem.h"
#include "predictors/data/features.h"

static void append_term_name(struct strbuf *b, const struct term *t, const struct dataset *names)
{
	for (size_t k = 0; k < t->order; k++) {
		if (k)
			strbuf_puts(b, ":");
		if (names && names->name)
			strbuf_puts(b, names->name[t->index[k]]);
		else
			strbuf_printf(b, "x%u", t->index[k]);
	}
}

static void put_term_name(const struct term *t, const struct dataset *names, struct json_writer *w)
{
	struct strbuf b = { 0 };

	append_term_name(&b, t, names);
	json_put_string(w, strbuf_text(&b));
	strbuf_release(&b);
}

static void put_term(struct json_writer *w, const struct linear *m, const struct term *t,
		     const struct dataset *names)
{
	int e = m->y_exponent;

	for (size_t k = 0; k < t->order; k++)
		e -= m->exponent[t->index[k]];
	json_open(w, '{');
	json_put_key(w, "term");
	put_term_name(t, names, w);
	json_kv_number(w, "coefficient", ldexp(t->coefficient, e));
	json_close(w, '}');
}

void linear_describe(const void *self, const struct dataset *names, struct json_writer *w)
{
	const struct linear *m = self;
	double intercept = m->y_mean;

	for (size_t j = 0; j < m->n_terms; j++)
		intercept -= m->term[j].coefficient * m->term[j].mean;
	json_kv_bool(w, "log_target", m->log);
	json_kv_bool(w, "converged", m->converged);
	json_kv_number(w, "intercept", ldexp(intercept, m->y_exponent));
	json_kv_open(w, "terms", '[');
	for (size_t j = 0; j < m->n_terms; j++)
		if (!m->term[j].aliased)
			put_term(w, m, &m->term[j], names);
	json_close(w, ']');
	json_kv_open(w, "aliased", '[');
	for (size_t j = 0; j < m->n_terms; j++)
		if (m->term[j].aliased)
			put_term_name(&m->term[j], names, w);
	json_close(w, ']');
}

#define ALIASED_NAMED 6 /* in a remark; `model show --json` has them all */

void linear_remark(const void *self, const struct dataset *names, char *out, size_t size)
{
	const struct linear *m = self;
	struct strbuf b = { 0 };
	size_t n = 0;

	for (size_t j = 0; j < m->n_terms; j++) {
		if (!m->term[j].aliased)
			continue;
		if (n < ALIASED_NAMED) {
			strbuf_puts(&b, n ? ", " : "");
			append_term_name(&b, &m->term[j], names);
		}
		n++;
	}
	if (n > ALIASED_NAMED)
		strbuf_printf(&b, " and %zu more", n - ALIASED_NAMED);
	if (n)
		snprintf(out, size,
			 "the table does not tell these terms from the others (aliased), so they are left "
			 "out: %s",
			 strbuf_text(&b));
	strbuf_release(&b);
}

/* ---- model files ---- */

int linear_save(const void *self, struct writer *w, struct err *err)
{
	const struct linear *m = self;

	write_u8(w, (uint8_t)((m->log ? 1 : 0) | (m->converged ? 2 : 0)));
	write_u32(w, (uint32_t)m->n_features);
	for (size_t j = 0; j < m->n_features; j++) {
		write_f64(w, m->fill[j]);
		write_u16(w, (uint16_t)(m->exponent[j] + MAX_EXPONENT));
	}
	write_f64(w, m->y_mean);
	write_u16(w, (uint16_t)(m->y_exponent + MAX_EXPONENT));
	write_u32(w, (uint32_t)m->n_terms);
	for (size_t j = 0; j < m->n_terms; j++) {
		const struct term *t = &m->term[j];

		write_u8(w, t->order);
		for (size_t k = 0; k < t->order; k++)
			write_u16(w, t->index[k]);
		write_u8(w, t->aliased);
		write_f64(w, t->mean);
		write_f64(w, t->sd);
		write_f64(w, t->coefficient);
	}
	return w->out.failed ? err_fail(err, ERR_NOMEM, "out of memory to write a linear model") : 0;
}

/* The number if it is within +-limit; otherwise marks the reader as failed. */
static double read_within(struct reader *r, double limit)
{
	double v = read_f64(r);

	if (!(fabs(v) <= limit)) {
		r->failed = true;
		return 0.0;
	}
	return v;
}

static int read_exponent(struct reader *r)
{
	int e = (int)read_u16(r) - MAX_EXPONENT;

	if (e > MAX_EXPONENT)
		r->failed = true;
	return e;
}

static bool read_term(struct reader *r, size_t n_features, struct term *t)
{
	t->order = read_u8(r);
	if (t->order < 1 || t->order > MAX_ORDER)
		return false;
	for (size_t k = 0; k < t->order; k++) {
		t->index[k] = read_u16(r);
		if (t->index[k] >= n_features || (k && t->index[k] < t->index[k - 1] + (t->order > 2)))
			return false; /* ascending; a square is a feature twice */
	}
	t->aliased = read_u8(r) != 0;
	t->mean = read_within(r, MAX_COEFFICIENT);
	t->sd = fabs(read_within(r, MAX_COEFFICIENT));
	t->coefficient = read_within(r, MAX_COEFFICIENT);
	return !r->failed;
}

int linear_load(struct reader *r, size_t n_features, void **out_self, struct err *err)
{
	uint8_t flags = read_u8(r);
	uint32_t features = read_u32(r), terms;
	struct linear *m;

	if (r->failed || features != n_features || features > FEATURES_MAX || flags > 3)
		return err_fail(err, ERR_FORMAT,
				"linear model: %u features where %zu are expected, or the data ends early",
				(unsigned)features, n_features);
	m = linear_new(features, 0);
	if (!m)
		return err_nomem(err, "a linear model of %u features", (unsigned)features);
	m->log = flags & 1;
	m->converged = flags & 2;
	for (size_t j = 0; j < features && !r->failed; j++) {
		m->fill[j] = read_within(r, MAX_COEFFICIENT);
		m->exponent[j] = read_exponent(r);
		m->scale[j] = ldexp(1.0, -m->exponent[j]);
	}
	m->y_mean = read_within(r, MAX_COEFFICIENT);
	m->y_exponent = read_exponent(r);
	terms = read_u32(r);
	/* a term takes 28 bytes or more: a count that the data cannot hold is refused before memory is asked
	 * for */
	if (r->failed || terms > LINEAR_MAX_TERMS || terms > read_left(r) / 28) {
		linear_destroy(m);
		return err_fail(err, ERR_FORMAT,
				"linear model: its header is damaged or announces %u terms (at most %d)",
				r->failed ? 0u : (unsigned)terms, LINEAR_MAX_TERMS);
	}
	free(m->term);
	m->term = mem_calloc(terms, sizeof *m->term);
	if (!m->term) {
		linear_destroy(m);
		return err_nomem(err, "a linear model of %u terms", (unsigned)terms);
	}
	m->n_terms = terms;
	for (size_t j = 0; j < terms; j++)
		if (!read_term(r, features, &m->term[j])) {
			linear_destroy(m);
			return err_fail(
				err, ERR_FORMAT,
				"linear model: term %zu has an impossible order, feature or coefficient", j);
		}
	*out_self = m;
	return 0;
}
