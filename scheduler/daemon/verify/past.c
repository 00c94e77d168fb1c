/* Reading a daemon's past. See past.h. */
#include "scheduler/daemon/verify/past.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "scheduler/daemon/inputs.h"
#include "scheduler/store/store.h"

/* ---- decisions ---- */

static double number_of(const struct json *v, const char *key)
{
	return json_number(json_get(v, key), NAN);
}

static void copy(char *to, size_t size, const struct json *v, const char *key)
{
	snprintf(to, size, "%s", json_string(json_get(v, key), ""));
}

/* "64: 1.25 s, at most 1.5 s" for each candidate, one a line */
static char *rest_of(const struct json *candidates)
{
	struct strbuf out = { 0 };

	for (const struct json *c = json_first(candidates); c; c = json_next(c)) {
		strbuf_printf(&out, "%g|%g|%g|%g|%g|%g\n", number_of(c, "batch"), number_of(c, "epochs"),
			      number_of(c, "wait_s"), number_of(c, "time_s"), number_of(c, "upper_s"),
			      number_of(c, "accuracy"));
	}
	return out.text;
}

bool past_choice_read(const char *json, struct past_choice *out)
{
	const struct json *all, *c;
	struct json *v = NULL;
	double chosen;

	*out = (struct past_choice){ .batch = NAN, .epochs = NAN };
	if (json_parse("decision", json, strlen(json), &v, NULL))
		return false;
	all = json_get(v, "candidates");
	chosen = number_of(v, "chosen");
	out->n_candidates = json_size(all);
	c = json_at(all, chosen >= 0.0 ? (size_t)chosen : 0);
	if (chosen >= 0.0) {
		out->batch = number_of(c, "batch");
		out->epochs = number_of(c, "epochs");
	}
	out->wait_s = number_of(c, "wait_s");
	out->time_s = number_of(c, "time_s");
	out->upper_s = number_of(c, "upper_s");
	out->accuracy = number_of(c, "accuracy");
	out->slo_s = number_of(v, "slo_s");
	out->other_load = number_of(v, "other_load");
	out->price = json_number(json_get(v, "price"), 0.0);
	out->confidence = number_of(v, "confidence");
	out->accuracy_error = number_of(v, "accuracy_error");
	out->first_batch = number_of(json_first(all), "batch");
	out->last_batch = out->n_candidates ? number_of(json_at(all, out->n_candidates - 1), "batch") : NAN;
	copy(out->policy, sizeof out->policy, v, "policy");
	copy(out->model, sizeof out->model, v, "model");
	out->rest = rest_of(all);
	json_free(v);
	return true;
}

void past_choice_release(struct past_choice *c)
{
	free(c->rest);
	c->rest = NULL;
}

/* ---- the rows ---- */

static void empty(struct past *p)
{
	for (size_t i = 0; i < p->n_jobs; i++)
		job_free(p->job[i].is);
	for (size_t i = 0; i < p->n_inputs; i++)
		free(p->input[i].text);
	for (size_t i = 0; i < p->n_decisions; i++)
		past_choice_release(&p->decision[i].choice);
	p->n_jobs = p->n_inputs = p->n_decisions = 0;
}

static int on_begin(void *owner, const char *path, struct err *err)
{
	(void)path;
	(void)err;
	empty(owner); /* it may be read twice */
	return 0;
}

static int on_job(void *owner, const struct job_record *row, struct err *err)
{
	struct past *p = owner;
	struct past_job *j;
	int rc;

	if (mem_grow((void **)&p->job, &p->jobs_cap, p->n_jobs + 1, sizeof *p->job))
		return err_nomem(err, "the jobs");
	j = &p->job[p->n_jobs];
	*j = (struct past_job){ .arrived_ns = row->submitted_ns };
	rc = job_new(&p->names, row, &j->is, err);
	if (!rc)
		p->n_jobs++;
	return rc;
}

static int add_input(struct past *p, const struct store_input *in, struct err *err)
{
	struct past_input *to;
	char *text = in->text ? mem_strdup(in->text) : NULL;
	const char *what = names_keep(&p->names, in->what);

	if (!what || (in->text && !text) ||
	    mem_grow((void **)&p->input, &p->inputs_cap, p->n_inputs + 1, sizeof *p->input)) {
		free(text);
		return err_nomem(err, "what decisions were made from");
	}
	to = &p->input[p->n_inputs++];
	*to = (struct past_input){
		.at_ns = in->at_ns, .what = what, .job = in->job, .number = in->number, .text = text
	};
	return 0;
}

/* "SECONDS:PROCESSES ..." */
static int add_loads(struct past *p, const struct store_input *in, struct err *err)
{
	const char *s = in->text ? in->text : "";
	int rc = 0;

	while (*s && !rc) {
		struct store_input one = *in;
		char *end;
		double after_s = strtod(s, &end);

		if (*end != ':')
			return err_fail(err, ERR_FORMAT, "the inputs are damaged: loads '%.40s'", s);
		one.number = strtod(end + 1, &end);
		one.at_ns += (int64_t)llround(after_s * 1e9);
		one.text = NULL;
		if (*end && *end != ' ')
			return err_fail(err, ERR_FORMAT, "the inputs are damaged: loads '%.40s'", s);
		rc = add_input(p, &one, err);
		s = *end ? end + 1 : end;
	}
	return rc;
}

static int on_input(void *owner, const struct store_input *in, struct err *err)
{
	return strcmp(in->what, INPUT_LOADS) ? add_input(owner, in, err) : add_loads(owner, in, err);
}

static int on_decision(void *owner, uint64_t job, int64_t at_ns, const char *moment, const char *json,
		       struct err *err)
{
	struct past *p = owner;
	struct past_decision *to;

	if (mem_grow((void **)&p->decision, &p->decisions_cap, p->n_decisions + 1, sizeof *p->decision))
		return err_nomem(err, "the decisions");
	to = &p->decision[p->n_decisions++];
	*to = (struct past_decision){ .job = job, .at_ns = at_ns, .start = !strcmp(moment, "start") };
	to->damaged = !past_choice_read(json, &to->choice);
	return 0;
}

struct past_job *past_job(const struct past *p, uint64_t id)
{
	size_t from = 0, to = p->n_jobs;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (p->job[mid].is->id < id)
			from = mid + 1;
		else
			to = mid;
	}
	return from < p->n_jobs && p->job[from].is->id == id ? &p->job[from] : NULL;
}

/* ---- in the order of time ---- */

/* The daemon has one thread and one clock, so the time is the order. In one moment a job is submitted before
 * anything else happens to it, and the input that starts it comes before the decision about that. */
static int by_time(const void *a_, const void *b_)
{
	const struct past_moment *a = a_, *b = b_;
	static const int rank[] = { [PAST_SUBMIT] = 0, [PAST_INPUT] = 1, [PAST_START] = 2 };

	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns ? -1 : 1;
	if (a->kind != b->kind)
		return rank[a->kind] - rank[b->kind];
	return (a->i > b->i) - (a->i < b->i);
}

static void look_at_inputs(struct past *p)
{
	int64_t last_ns = INT64_MIN;

	for (size_t i = 0; i < p->n_inputs; i++) {
		const struct past_input *in = &p->input[i];
		struct past_job *j = in->job ? past_job(p, in->job) : NULL;

		if (!strcmp(in->what, INPUT_BEGAN)) {
			p->clock_went_back |= in->at_ns < last_ns;
			last_ns = in->at_ns;
		}
		if (j && !strcmp(in->what, INPUT_WAITS)) {
			j->waits = true;
			j->arrived_ns = in->at_ns;
		}
		if (j && !strcmp(in->what, INPUT_ENDED))
			j->ends = true;
	}
}

static int put_in_order(struct past *p, struct err *err)
{
	size_t n = 0;

	p->moment = mem_array(p->n_jobs + p->n_inputs + p->n_decisions + 1, sizeof *p->moment);
	if (!p->moment)
		return err_nomem(err, "the history");
	for (size_t i = 0; i < p->n_jobs; i++)
		p->moment[n++] = (struct past_moment){ p->job[i].arrived_ns, PAST_SUBMIT, i };
	for (size_t i = 0; i < p->n_inputs; i++)
		p->moment[n++] = (struct past_moment){ p->input[i].at_ns, PAST_INPUT, i };
	for (size_t i = 0; i < p->n_decisions; i++)
		if (p->decision[i].start)
			p->moment[n++] = (struct past_moment){ p->decision[i].at_ns, PAST_START, i };
	p->n_moments = n;
	qsort(p->moment, n, sizeof *p->moment, by_time);
	return 0;
}

size_t past_next_daemon(const struct past *p, size_t from)
{
	for (; from < p->n_moments; from++) {
		const struct past_moment *m = &p->moment[from];

		if (m->kind == PAST_INPUT && !strcmp(p->input[m->i].what, INPUT_BEGAN))
			break;
	}
	return from;
}

int past_read(const char *path, struct past *out, struct err *err)
{
	const struct store_visitor v = {
		.begin = on_begin, .job = on_job, .input = on_input, .decision = on_decision, .owner = out
	};
	int rc;

	*out = (struct past){ 0 };
	rc = store_visit(path, &v, err);
	if (!rc) {
		look_at_inputs(out);
		rc = put_in_order(out, err);
	}
	if (rc)
		past_release(out);
	return rc;
}

void past_release(struct past *p)
{
	empty(p);
	free(p->job);
	free(p->input);
	free(p->decision);
	free(p->moment);
	names_release(&p->names);
	*p = (struct past){ 0 };
}
