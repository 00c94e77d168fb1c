/* What a running job was told of its next epochs: the changes in its row, and the last of them in memory. See
 * jobs.h; life.c says when. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/core/steer.h"
#include "scheduler/jobs/jobs.h"

#define DEAF_AFTER 3 /* reports in a row; the answer to one of them may have come too late */

double job_lr_given(const struct job *job)
{
	const struct job_type *t = job->type;

	for (size_t i = 0; t && job->bound && i < t->n_params; i++)
		if (!strcmp(t->param[i].name, "lr"))
			return job->bound->params.number[i];
	return NAN;
}

void job_next(const struct job *job, struct next *out)
{
	const struct job_record *r = &job->row;

	*out = job->steering.told;
	if (!isnan(out->batch))
		return;
	*out = (struct next){ .batch = r->batch,
			      .lr = isnan(r->lr) ? job_lr_given(job) : r->lr,
			      .last = isnan(r->epochs) ? job_epochs_given(job) : r->epochs,
			      .after = out->after };
}

/* ---- the row ---- */

static void put_change(struct json_writer *w, const struct job_change *c)
{
	json_open(w, '{');
	json_kv_number(w, "after", c->next.after);
	json_kv_number(w, "batch", c->next.batch);
	json_kv_number(w, "lr", c->next.lr);
	json_kv_number(w, "last", c->next.last);
	json_kv_string(w, "why", c->why);
	json_kv_fixed(w, "end_s", c->end_s, 3);
	json_kv_fixed(w, "end_upper_s", c->end_upper_s, 3);
	json_kv_fixed(w, "accuracy", c->accuracy, 6);
	json_kv_moment(w, "at", c->at_ns);
	json_close(w, '}');
}

static int set_text(char **own, const char **row, const char *text)
{
	char *copy = text ? mem_strdup(text) : NULL;

	if (text && !copy)
		return -1;
	free(*own);
	*own = copy;
	*row = copy;
	return 0;
}

int job_set_steer_kept(struct job *job, const char *kept)
{
	return set_text(&job->steer_kept, &job->row.steer_kept, kept && *kept ? kept : NULL);
}

int job_steered_add(struct job *job, const struct job_change *c)
{
	const char *was = job->row.steered;
	struct strbuf text = { 0 };
	struct json_writer w;
	int rc = -1;

	if (job->steering.changes >= JOB_STEERED_MOST)
		return -1;
	if (was) {
		strbuf_add(&text, was, strlen(was) - 1); /* without its bracket */
		strbuf_puts(&text, ",");
	} else {
		strbuf_puts(&text, "[");
	}
	json_begin(&w, &text, false);
	put_change(&w, c);
	strbuf_puts(&text, "]");
	if (!text.failed)
		rc = set_text(&job->steered, &job->row.steered, text.text);
	strbuf_release(&text);
	if (rc)
		return rc;
	job->steering.before = job->row.batch;
	if (!isnan(job->steering.told.batch))
		job->steering.before = job->steering.told.batch;
	job->steering.told = c->next;
	job->steering.changes++;
	job->steering.ignored = 0;
	return 0;
}

void job_steered_forget(struct job *job)
{
	set_text(&job->steered, &job->row.steered, NULL);
	job_set_steer_kept(job, NULL);
	job->steering = (struct job_steering){ .told = { NAN, NAN, NAN, NAN }, .before = NAN };
}

size_t job_changes_read(const struct json *list, struct job_change *out, size_t max)
{
	size_t n = 0;

	for (const struct json *m = json_first(list); m; m = json_next(m), n++) {
		struct job_change *c = &out[n < max ? n : max - 1]; /* the last one is always there */

		*c = (struct job_change){ .next = { .batch = json_number(json_get(m, "batch"), NAN),
						    .lr = json_number(json_get(m, "lr"), NAN),
						    .last = json_number(json_get(m, "last"), NAN),
						    .after = json_number(json_get(m, "after"), NAN) },
					  .end_s = json_number(json_get(m, "end_s"), NAN),
					  .end_upper_s = json_number(json_get(m, "end_upper_s"), NAN),
					  .accuracy = json_number(json_get(m, "accuracy"), NAN) };
		snprintf(c->why, sizeof c->why, "%s", json_string(json_get(m, "why"), ""));
		text_utc_parse(json_string(json_get(m, "at"), ""), &c->at_ns);
	}
	return n;
}

size_t job_steered_read(const char *text, struct job_change *out, size_t max)
{
	struct json *v = NULL;
	size_t n;

	if (!text || json_parse("steered", text, strlen(text), &v, NULL))
		return 0;
	n = job_changes_read(v, out, max);
	json_free(v);
	return n;
}

const char *job_change_why(const struct job_change *c)
{
	for (enum steer_reason r = STEER_KEEPS; r <= STEER_LATE; r++) {
		if (!strcmp(c->why, steer_reason_name(r)))
			return steer_reason_text(r);
	}
	return strcmp(c->why, JOB_NOT_FOLLOWED) ? c->why : "it does not do as it is told, and is left alone";
}

void job_steered_restore(struct job *job)
{
	struct job_change c;
	size_t n = job_steered_read(job->row.steered, &c, 1);

	if (!n)
		return;
	job->steering.told = c.next;
	job->steering.before = c.next.batch;
	job->steering.changes = (unsigned)n;
	job->steering.deaf = !strcmp(c.why, JOB_NOT_FOLLOWED);
}

/* ---- does it do as it is told? ---- */

bool job_steer_deaf(struct job *job, double named)
{
	struct job_steering *s = &job->steering;
	struct next next;

	job_next(job, &next);
	if (s->deaf || isnan(named) || named == next.batch) {
		s->ignored = 0;
		return s->deaf;
	}
	return ++s->ignored >= DEAF_AFTER;
}
