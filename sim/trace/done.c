/* The end of putting a trace together: order, numbers by first use, fingerprint. See build.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/text/text.h"
#include "sim/trace/build_internal.h"

/* ---- order of arrival ---- */

struct arrival {
	int64_t at_ns;
	size_t index;
};

static int compare_arrivals(const void *a, const void *b)
{
	const struct arrival *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static bool jobs_in_order(const struct trace_build *b)
{
	for (size_t i = 1; i < b->n_jobs; i++)
		if (b->job[i].arrival_ns < b->job[i - 1].arrival_ns)
			return false;
	return true;
}

static int sort_jobs(struct trace_build *b)
{
	struct arrival *order;
	struct trace_job *sorted;

	if (jobs_in_order(b))
		return 0;
	order = mem_array(b->n_jobs, sizeof *order);
	sorted = mem_array(b->n_jobs, sizeof *sorted);
	if (!order || !sorted) {
		free(order);
		free(sorted);
		return -1;
	}
	for (size_t i = 0; i < b->n_jobs; i++)
		order[i] = (struct arrival){ b->job[i].arrival_ns, i };
	qsort(order, b->n_jobs, sizeof *order, compare_arrivals);
	for (size_t i = 0; i < b->n_jobs; i++)
		sorted[i] = b->job[order[i].index];
	free(order);
	free(b->job);
	b->job = sorted;
	b->cap_jobs = b->n_jobs;
	return 0;
}

static int shift_to_zero(struct trace_build *b, struct err *err)
{
	int64_t first = b->job[0].arrival_ns; /* in order by now */

	if ((double)(b->job[b->n_jobs - 1].arrival_ns - first) > TRACE_MAX_ARRIVAL_S * 1e9)
		return err_fail(err, ERR_FORMAT,
				"%s: field arrival_s: first and last are more than %g s apart",
				text_tail(b->name, TRACE_NAME_SHOWN), TRACE_MAX_ARRIVAL_S);
	for (size_t i = 0; i < b->n_jobs; i++)
		b->job[i].arrival_ns -= first;
	return 0;
}

/* ---- numbers by first use, so that they do not depend on the order of the file ---- */

struct numbering {
	uint32_t *now; /* by old number; UINT32_MAX: not met yet */
	uint32_t *old; /* by new number */
	size_t n; /* met so far */
};

static int numbering_init(struct numbering *n, size_t size)
{
	*n = (struct numbering){ .now = mem_array(size + 1, sizeof *n->now),
				 .old = mem_array(size + 1, sizeof *n->old) };
	if (!n->now || !n->old)
		return -1;
	memset(n->now, 0xff, (size + 1) * sizeof *n->now);
	return 0;
}

static void numbering_release(struct numbering *n)
{
	free(n->now);
	free(n->old);
}

static uint32_t number_of(struct numbering *n, uint32_t old)
{
	if (n->now[old] == UINT32_MAX) {
		n->now[old] = (uint32_t)n->n;
		n->old[n->n++] = old;
	}
	return n->now[old];
}

/* The names in their new order; unused ones are gone. The set is empty afterwards. */
static char **take_names(struct trace_names *set, const struct numbering *n)
{
	char **out = mem_array(n->n + 1, sizeof *out);

	if (!out)
		return NULL;
	for (size_t i = 0; i < n->n; i++) {
		out[i] = set->name[n->old[i]];
		set->name[n->old[i]] = NULL; /* free(NULL) is nothing */
	}
	trace_names_release(set);
	return out;
}

static int take_tenants(struct trace_build *b, const struct numbering *n, struct trace *t)
{
	t->weight = mem_array(n->n, sizeof *t->weight);
	if (!t->weight || !(t->tenant = take_names(&b->tenant, n)))
		return -1;
	t->n_tenants = n->n;
	for (size_t i = 0; i < n->n; i++)
		t->weight[i] = isnan(b->weight[n->old[i]]) ? 1.0 : b->weight[n->old[i]];
	return 0;
}

static int take_kinds(struct trace_build *b, const struct numbering *n, struct trace *t)
{
	t->kind = mem_calloc(n->n, sizeof *t->kind);
	if (!t->kind)
		return -1;
	for (size_t i = 0; i < n->n; i++) {
		struct trace_kind *k = &b->kind[n->old[i]];
		size_t have = b->kind_found[n->old[i]].n_columns;

		if (have < b->column.n) {
			if (trace_kind_copy(k, have, b->column.n, &t->kind[i]))
				return -1;
		} else {
			t->kind[i] = *k;
			k->value = NULL; /* it has moved */
		}
		t->n_kinds = i + 1;
	}
	return 0;
}

static int take_jobs(struct trace_build *b, struct trace *t)
{
	struct numbering kind = { 0 }, tenant = { 0 }, type = { 0 };
	void *fitting;
	int rc = -1;

	if (numbering_init(&kind, b->n_kinds) || numbering_init(&tenant, b->tenant.n) ||
	    numbering_init(&type, b->type.n))
		goto out;
	for (size_t i = 0; i < b->n_jobs; i++) {
		struct trace_job *j = &b->job[i];

		j->kind = number_of(&kind, j->kind);
		j->tenant = number_of(&tenant, j->tenant);
		if (j->type >= 0)
			j->type = (int32_t)number_of(&type, (uint32_t)j->type);
	}
	fitting = mem_resize(b->job, b->n_jobs, sizeof *b->job);
	if (!fitting)
		goto out;
	b->job = fitting;
	if (take_kinds(b, &kind, t) || take_tenants(b, &tenant, t) ||
	    !(t->type = take_names(&b->type, &type)))
		goto out;
	t->n_types = type.n;
	t->column = b->column.name;
	t->n_columns = b->column.n;
	b->column.name = NULL;
	b->column.n = 0;
	t->job = b->job;
	t->n_jobs = b->n_jobs;
	b->job = NULL;
	b->n_jobs = 0;
	t->notice = b->notice;
	t->n_notices = b->n_notices;
	b->notice = NULL;
	b->n_notices = 0;
	rc = 0;
out:
	numbering_release(&kind);
	numbering_release(&tenant);
	numbering_release(&type);
	return rc;
}

int trace_build_done(struct trace_build *b, const char *about, struct trace **out, struct err *err)
{
	struct trace *t;
	int rc;

	if (b->n_jobs == 0)
		return err_fail(err, ERR_FORMAT, "%s: there is no job in it",
				text_tail(b->name, TRACE_NAME_SHOWN));
	if (sort_jobs(b))
		return trace_build_nomem(b, err);
	if (b->absolute && (rc = shift_to_zero(b, err)))
		return rc;
	t = mem_calloc(1, sizeof *t);
	if (!t)
		return trace_build_nomem(b, err);
	t->name = mem_strdup(b->name);
	if (!t->name || take_jobs(b, t) || !(t->about = trace_about(t, about))) {
		trace_free(t);
		return trace_build_nomem(b, err);
	}
	t->fingerprint = trace_fingerprint(t);
	*out = t;
	return 0;
}

/* ---- fingerprint and description ---- */

static uint64_t mix_text(uint64_t h, const char *s)
{
	return s ? trace_hash(h, s, strlen(s)) : rng_mix(h + 1);
}

static uint64_t mix_number(uint64_t h, double v)
{
	double same = isnan(v) ? (double)NAN : v + 0.0; /* one NaN, one zero */

	return trace_hash(h, &same, sizeof same);
}

static uint64_t mix_kind(uint64_t h, const struct trace_kind *k, size_t n_columns)
{
	for (size_t i = 0; i < n_columns; i++)
		h = mix_text(h, k->value[i]);
	h = rng_mix(h ^ k->cpus);
	h = rng_mix(h ^ k->n_batches);
	for (size_t i = 0; i < k->n_batches; i++)
		h = mix_number(h, k->batch[i]);
	h = mix_number(h, k->epochs_from);
	h = mix_number(h, k->epochs_to);
	h = mix_number(h, k->memory_mb);
	return mix_number(h, k->memory_mb_per_record);
}

static uint64_t mix_job(uint64_t h, const struct trace_job *j)
{
	h = rng_mix(h ^ j->id);
	h = rng_mix(h ^ (uint64_t)j->arrival_ns);
	h = rng_mix(h ^ j->recurring);
	h = mix_number(h, j->slo_s);
	h = mix_number(h, j->confidence);
	if (trace_value(j) != 1.0) /* traces from before there were such columns keep their fingerprint */
		h = mix_number(h, j->value);
	if (j->chance > 0.0)
		h = mix_number(h ^ 2, j->chance);
	if (j->may_stop)
		h = rng_mix(h ^ 1);
	if (j->steer)
		h = rng_mix(h ^ 3);
	h = rng_mix(h ^ ((uint64_t)j->kind << 32 | j->tenant));
	return rng_mix(h ^ ((uint64_t)(uint32_t)j->type << 32 | (uint32_t)j->priority)) + j->best_effort;
}

uint64_t trace_fingerprint(const struct trace *t)
{
	uint64_t h = t->n_jobs;

	for (size_t i = 0; i < t->n_columns; i++)
		h = mix_text(h, t->column[i]);
	for (size_t i = 0; i < t->n_kinds; i++)
		h = mix_kind(h, &t->kind[i], t->n_columns);
	for (size_t i = 0; i < t->n_tenants; i++)
		h = mix_number(mix_text(h, t->tenant[i]), t->weight[i]);
	for (size_t i = 0; i < t->n_types; i++)
		h = mix_text(h, t->type[i]);
	for (size_t i = 0; i < t->n_jobs; i++)
		h = mix_job(h, &t->job[i]);
	return h;
}

/* 1234567 as "1,234,567". */
static void put_count(struct strbuf *out, size_t n)
{
	char digits[24];
	int len = snprintf(digits, sizeof digits, "%zu", n);

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			strbuf_puts(out, ",");
		strbuf_add(out, &digits[i], 1);
	}
}

char *trace_about(const struct trace *t, const char *source)
{
	struct strbuf out = { 0 };
	char span[32];

	put_count(&out, t->n_jobs);
	strbuf_printf(
		&out, " job%s over %s", t->n_jobs == 1 ? "" : "s",
		text_seconds((double)(t->job[t->n_jobs - 1].arrival_ns - t->job[0].arrival_ns) / 1e9, span));
	if (t->n_tenants > 1) {
		strbuf_puts(&out, ", ");
		put_count(&out, t->n_tenants);
		strbuf_puts(&out, " tenants");
	}
	if (source)
		strbuf_printf(&out, ", %s", source);
	if (out.failed) {
		strbuf_release(&out);
		return NULL;
	}
	return out.text;
}
