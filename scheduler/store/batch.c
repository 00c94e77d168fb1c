/* See batch.h. */
#include "scheduler/store/batch.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define BATCH_KEEP ((size_t)1 << 20) /* a block larger than this is not kept for later turns */

struct batch *batch_new(void)
{
	return mem_calloc(1, sizeof(struct batch));
}

void batch_free(struct batch *b)
{
	if (!b)
		return;
	free(b->bytes);
	free(b);
}

void batch_reset(struct batch *b)
{
	if (b->cap > BATCH_KEEP) {
		free(b->bytes);
		b->bytes = NULL;
		b->cap = 0;
	}
	b->len = b->n_rows = 0;
	b->ticket = 0;
	b->next = NULL;
}

/* Appends the fixed part of a row and its texts. Pointers inside the copy still point at the caller's texts:
 * all that counts of them until batch_next() is whether they are NULL. */
static int append(struct batch *b, enum row_kind kind, const void *fixed, size_t fixed_size,
		  const char *const *text, size_t n_texts, const char *packed, size_t packed_len,
		  struct err *err)
{
	size_t len[ROW_MAX_TEXTS], size = fixed_size, texts = 0;
	void *bytes = b->bytes;
	char *to;

	for (size_t i = 0; i < n_texts; i++) {
		len[i] = text[i] ? strlen(text[i]) + 1 : 0;
		texts += len[i];
	}
	texts += packed_len;
	if (texts > ROW_MAX_TEXT)
		return err_fail(err, ERR_ARG, "a row of %zu bytes of text: at most %zu are kept", texts,
				ROW_MAX_TEXT);
	size = (size + texts + 7) & ~(size_t)7; /* so that the next row is aligned */
	if (mem_grow(&bytes, &b->cap, b->len + size, 1))
		return err_fail(err, ERR_NOMEM, "out of memory to keep a row of %zu bytes for the database",
				size);
	b->bytes = bytes;
	to = b->bytes + b->len;
	memcpy(to, fixed, fixed_size);
	((struct row *)to)->size = (uint32_t)size;
	((struct row *)to)->kind = kind;
	to += fixed_size;
	for (size_t i = 0; i < n_texts; i++) {
		if (len[i])
			memcpy(to, text[i], len[i]);
		to += len[i];
	}
	if (packed_len)
		memcpy(to, packed, packed_len);
	b->len += size;
	b->n_rows++;
	return 0;
}

static bool is_text(const struct job_field *f)
{
	return f->column && (f->kind == FIELD_TEXT || f->kind == FIELD_JSON);
}

static bool is_named(const struct job_field *f)
{
	return f->kind == FIELD_STATE || f->kind == FIELD_VERDICT;
}

int batch_add_job(struct batch *b, enum row_kind kind, const struct job_record *j, struct err *err)
{
	struct row_job row = { .job = *j };
	const char *text[ROW_MAX_TEXTS];
	size_t n = 0;

	for (const struct job_field *f = job_field; f < job_field + n_job_fields; f++) {
		const void *member = (const char *)j + f->offset;

		if (f->needed && (is_text(f) || is_named(f)) && !job_field_text(f, member))
			return err_fail(err, ERR_ARG, "job %llu has no %s", (unsigned long long)j->id,
					f->column);
		if (is_text(f))
			text[n++] = *(const char *const *)member;
	}
	if (j->id == 0 || j->id > INT64_MAX)
		return err_fail(err, ERR_ARG, "job id %llu cannot be kept: need 1 to 2^63-1",
				(unsigned long long)j->id);
	return append(b, kind, &row, sizeof row, text, n, NULL, 0, err);
}

int batch_add_event(struct batch *b, enum row_kind kind, const struct row_event *e, struct err *err)
{
	if ((e->job == 0 && kind != ROW_INPUT) || e->job > INT64_MAX)
		return err_fail(err, ERR_ARG, "job id %llu cannot be kept: need 1 to 2^63-1",
				(unsigned long long)e->job);
	for (size_t i = 0; i < (kind == ROW_DECISION ? EVENT_TEXTS : 1); i++)
		if (!e->text[i])
			return err_fail(err, ERR_ARG, "a row of job %llu lacks a text",
					(unsigned long long)e->job);
	return append(b, kind, e, sizeof *e, e->text, EVENT_TEXTS, e->packed, e->packed_len, err);
}

static char *place(const char **text, char *at)
{
	if (!*text)
		return at;
	*text = at;
	return at + strlen(at) + 1;
}

struct row *batch_next(struct batch *b, size_t *at)
{
	struct row *row;

	if (*at >= b->len)
		return NULL;
	row = (struct row *)(b->bytes + *at);
	*at += row->size;
	if (row->kind == ROW_ADD_JOB || row->kind == ROW_UPDATE_JOB) {
		struct row_job *r = (struct row_job *)row;
		char *text = (char *)(r + 1);

		for (const struct job_field *f = job_field; f < job_field + n_job_fields; f++)
			if (is_text(f))
				text = place((const char **)((char *)&r->job + f->offset), text);
	} else {
		struct row_event *r = (struct row_event *)row;
		char *text = (char *)(r + 1);

		for (size_t i = 0; i < EVENT_TEXTS; i++)
			text = place(&r->text[i], text);
		r->packed = text;
	}
	return row;
}
