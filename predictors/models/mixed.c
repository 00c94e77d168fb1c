/* Runs beside other kinds, kept and read. See mixed.h. */
#include "predictors/models/mixed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

void mixed_release(struct mixed_runs *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->run[i].of);
		free(m->run[i].beside);
	}
	free(m->run);
	*m = (struct mixed_runs){ 0 };
}

static void put_text(struct writer *w, const char *text)
{
	write_u16(w, (uint16_t)strlen(text));
	strbuf_add(&w->out, text, strlen(text));
}

void mixed_save(const struct mixed_runs *m, struct writer *w)
{
	write_u32(w, (uint32_t)m->n);
	for (size_t i = 0; i < m->n; i++) {
		put_text(w, m->run[i].of);
		put_text(w, m->run[i].beside);
		write_f64(w, m->run[i].held);
		write_f64(w, m->run[i].processes);
		write_f64(w, m->run[i].score);
	}
}

static int get_text(struct reader *r, char **out, struct err *err)
{
	size_t len = read_u16(r);

	if (r->failed || len > MIXED_MAX_TEXT || len > read_left(r) || memchr(r->bytes + r->at, 0, len))
		return err_fail(err, ERR_FORMAT, "a text of %zu bytes: need at most %d, none of them 0", len,
				MIXED_MAX_TEXT);
	*out = mem_calloc(len + 1, 1);
	if (!*out)
		return err_nomem(err, "runs beside others");
	memcpy(*out, r->bytes + r->at, len);
	r->at += len;
	return 0;
}

static int get_run(struct reader *r, struct mixed_run *m, struct err *err)
{
	char type[MIXED_MAX_TEXT + 1];
	int rc = get_text(r, &m->of, err);

	if (!rc)
		rc = get_text(r, &m->beside, err);
	if (rc)
		return rc;
	m->held = read_f64(r);
	m->processes = read_f64(r);
	m->score = read_f64(r);
	if (!(m->held >= 0.0 && m->processes >= m->held && m->processes < 1e9 && isfinite(m->score)) ||
	    (*m->beside && !mixed_neighbour(m->beside, type, sizeof type)))
		return err_fail(err, ERR_FORMAT, "a run beside %g of %g processes, score %g, is not possible",
				m->held, m->processes, m->score);
	return 0;
}

int mixed_load(struct reader *r, struct mixed_runs *out, struct err *err)
{
	size_t n = read_u32(r);
	struct mixed_runs m = { 0 };
	int rc = 0;

	if (r->failed || n > MIXED_MAX_RUNS)
		return err_fail(err, ERR_FORMAT, "%zu runs beside others: at most %d", n, MIXED_MAX_RUNS);
	m.run = mem_calloc(n ? n : 1, sizeof *m.run);
	if (!m.run)
		return err_nomem(err, "runs beside others");
	while (m.n < n && !rc)
		rc = get_run(r, &m.run[m.n++], err);
	if (rc)
		mixed_release(&m);
	else
		*out = m;
	return rc;
}

const char *mixed_neighbour(const char *text, char *type, size_t size)
{
	size_t len = strcspn(text, " ");
	const char *rest = text + len + strspn(text + len, " ");

	*type = '\0';
	if (memchr(text, '=', len)) /* categories alone */
		return *rest ? NULL : text;
	if (!len || len >= size || strchr(rest, ' '))
		return NULL;
	memcpy(type, text, len);
	type[len] = '\0';
	return rest;
}
