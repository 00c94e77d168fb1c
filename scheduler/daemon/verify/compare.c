/* Recorded decisions beside those of the replay: what differs, and the first number behind it that does. See
 * verify.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/daemon/verify/verify.h"

#define WHY 320

/* ---- why ---- */

/* As near as the JSON of a decision tells: six decimals. */
static bool alike(double a, double b)
{
	return isnan(a) ? isnan(b) : fabs(a - b) <= 1e-5 + 1e-5 * fabs(b);
}

static bool differs(char *why, const char *what, double was, double is)
{
	if (alike(was, is))
		return false;
	snprintf(why, WHY, "%s: %.6g in the records, %.6g in the replay", what, was, is);
	return true;
}

/* How many numbers of two past_choice.rest are the same. */
static void count_numbers(const char *was, const char *is, struct verdicts *v)
{
	while (was && *was) {
		char *end;
		double a = strtod(was, &end), b;

		was = *end ? end + 1 : end;
		b = is && *is ? strtod(is, &end) : NAN;
		if (is && *is)
			is = *end ? end + 1 : end;
		v->numbers += !isnan(a);
		v->same += !isnan(a) && alike(a, b);
	}
}

/* The lines of two past_choice.rest: "batch|epochs|wait|time|upper|accuracy". */
static bool candidates_differ(const char *was, const char *is, char *why)
{
	static const char *const name[] = {
		"batch", "epochs", "wait until it starts", "expected time", "bound of the time", "accuracy"
	};
	char what[80];

	while (was && is && *was && *is) {
		double a[6], b[6];

		for (int i = 0; i < 6; i++) {
			char *end;

			a[i] = strtod(was, &end);
			was = *end ? end + 1 : end;
			b[i] = strtod(is, &end);
			is = *end ? end + 1 : end;
		}
		for (int i = 0; i < 6; i++) {
			snprintf(what, sizeof what, "%s of batch %g", name[i], a[0]);
			if (differs(why, what, a[i], b[i]))
				return true;
		}
	}
	return false;
}

static void explain(const struct past_choice *was, const struct past_choice *is, char *why)
{
	if (strcmp(was->policy, is->policy))
		snprintf(why, WHY, "policy: %s in the records, %s in the replay", was->policy, is->policy);
	else if (strcmp(was->model, is->model))
		snprintf(why, WHY, "model: %s in the records, %s in the replay", was->model, is->model);
	else if (differs(why, "candidates", (double)was->n_candidates, (double)is->n_candidates) ||
		 differs(why, "smallest batch", was->first_batch, is->first_batch) ||
		 differs(why, "largest batch", was->last_batch, is->last_batch) ||
		 differs(why, "confidence", was->confidence, is->confidence) ||
		 differs(why, "seconds left", was->slo_s, is->slo_s) ||
		 differs(why, "other load", was->other_load, is->other_load) ||
		 differs(why, "price", was->price, is->price) || candidates_differ(was->rest, is->rest, why))
		return;
	else
		snprintf(why, WHY, "all numbers are the same, and the choice is not");
}

/* ---- one job ---- */

struct recorded { /* of a job */
	const struct past_decision *arrival;
	size_t first_start, n_starts; /* in starts[] */
};

struct difference {
	const char *moment; /* NULL: there is none */
	const struct past_choice *was, *is; /* NULL: none */
	char why[WHY];
};

static bool same_choice(const struct past_choice *a, const struct past_choice *b)
{
	return alike(a->batch, b->batch) && alike(a->epochs, b->epochs);
}

static bool compare_choice(const struct past_decision *was, const struct past_choice *is, const char *moment,
			   struct difference *out)
{
	if (was && is && !was->damaged && same_choice(&was->choice, is))
		return true;
	*out = (struct difference){ .moment = moment, .was = was ? &was->choice : NULL, .is = is };
	if (!was || was->damaged)
		snprintf(out->why, WHY, "%s", was ? "its record is damaged" : "there is no record of it");
	else if (!is)
		snprintf(out->why, WHY, "the replay made no such decision");
	else
		explain(&was->choice, is, out->why);
	return false;
}

static const struct past_choice *start_again(const struct again *a, const struct past_decision *d)
{
	return d->judged && d->again < a->n_starts ? &a->start[d->again] : NULL;
}

static void compare_job(const struct outcome *o, size_t i, const struct recorded *r,
			const struct past_decision *const *starts, struct difference *out)
{
	const struct again *a = &o->again[i];
	enum job_verdict verdict = o->past->job[i].is->row.verdict;

	*out = (struct difference){ 0 };
	if (r->arrival && !compare_choice(r->arrival, a->arrival, "arrival", out))
		goto why;
	if (verdict != a->verdict && (r->arrival || !o->n_gaps)) {
		*out = (struct difference){ .moment = "arrival",
					    .was = r->arrival ? &r->arrival->choice : NULL,
					    .is = a->arrival };
		if (out->was && out->is)
			explain(out->was, out->is, out->why);
		goto why;
	}
	for (size_t k = 0; k < r->n_starts; k++) {
		const struct past_decision *d = starts[r->first_start + k];

		if (d->judged && !compare_choice(d, start_again(a, d), "start", out))
			goto why;
	}
	if (!a->steered_otherwise)
		return;
	*out = (struct difference){ .moment = "steering" };
	snprintf(out->why, WHY,
		 "while it ran it was told to go on otherwise; 'postrider explain' has what the "
		 "records say");
	return;
why:
	if (a->why[0])
		snprintf(out->why, WHY, "%s", a->why);
	else if (!out->why[0])
		snprintf(out->why, WHY, "not known");
}

static void count_job(const struct outcome *o, size_t i, const struct recorded *r,
		      const struct past_decision *const *starts, struct verdicts *v)
{
	const struct again *a = &o->again[i];

	if (r->arrival)
		count_numbers(r->arrival->choice.rest, a->arrival ? a->arrival->rest : NULL, v);
	for (size_t k = 0; k < r->n_starts; k++) {
		const struct past_decision *d = starts[r->first_start + k];
		const struct past_choice *is = start_again(a, d);

		if (d->judged)
			count_numbers(d->choice.rest, is ? is->rest : NULL, v);
	}
}

/* ---- telling ---- */

static const char *named(enum job_verdict v)
{
	return job_verdict_name[v] ? job_verdict_name[v] : "none";
}

static void put_choice(struct json_writer *w, const char *key, enum job_verdict v,
		       const struct past_choice *c)
{
	json_kv_open(w, key, '{');
	json_kv_string(w, "verdict", job_verdict_name[v]);
	json_kv_number(w, "batch", c ? c->batch : NAN);
	json_kv_number(w, "epochs", c ? c->epochs : NAN);
	json_close(w, '}');
}

static void print_choice(struct strbuf *out, enum job_verdict v, const struct past_choice *c)
{
	strbuf_printf(out, "%s", named(v));
	if (c && !isnan(c->batch))
		strbuf_printf(out, ", batch %g", c->batch);
	if (c && !isnan(c->batch) && !isnan(c->epochs))
		strbuf_printf(out, " x %g epochs", c->epochs);
}

static void tell(const struct outcome *o, size_t i, const struct difference *d, bool json,
		 struct json_writer *w)
{
	const struct job *is = o->past->job[i].is;
	char id[24];

	snprintf(id, sizeof id, "%llu", (unsigned long long)is->id);
	if (!json) {
		strbuf_printf(w->out, "job %s, %s: ", id, d->moment);
		print_choice(w->out, is->row.verdict, d->was);
		strbuf_puts(w->out, "; in the replay ");
		print_choice(w->out, o->again[i].verdict, d->is);
		strbuf_printf(w->out, "\n  %s\n", d->why);
		return;
	}
	json_open(w, '{');
	json_kv_string(w, "job", id);
	json_kv_string(w, "moment", d->moment);
	put_choice(w, "recorded", is->row.verdict, d->was);
	put_choice(w, "replayed", o->again[i].verdict, d->is);
	json_kv_string(w, "why", d->why);
	json_close(w, '}');
}

static void gather(const struct past *p, struct recorded *r, const struct past_decision **starts)
{
	size_t at = 0;

	for (size_t i = 0; i < p->n_decisions; i++) {
		const struct past_job *j = past_job(p, p->decision[i].job);

		if (!j)
			continue;
		r[j - p->job].n_starts += p->decision[i].start;
	}
	for (size_t i = 0; i < p->n_jobs; i++) {
		r[i].arrival = p->job[i].arrival;
		r[i].first_start = at;
		at += r[i].n_starts;
		r[i].n_starts = 0;
	}
	for (size_t i = 0; i < p->n_decisions; i++) {
		const struct past_job *j = past_job(p, p->decision[i].job);
		struct recorded *one = j ? &r[j - p->job] : NULL;

		if (one && p->decision[i].start)
			starts[one->first_start + one->n_starts++] = &p->decision[i];
	}
}

struct unjudged {
	size_t older, later, gone, unsteered;
};

/* Came in then: none of their decisions was judged. */
static size_t jobs_in(const struct outcome *o, const struct gap *g)
{
	size_t n = 0;

	for (size_t i = 0; i < o->past->n_jobs; i++) {
		int64_t at_ns = o->past->job[i].arrived_ns;

		n += at_ns >= g->from_ns && at_ns < g->until_ns;
	}
	return n;
}

static void end_text(const struct outcome *o, const struct verdicts *v, const struct unjudged *u,
		     struct strbuf *out)
{
	char share[40] = "", from[40], until[40];

	if (v->judged)
		snprintf(share, sizeof share, " (%.4g %%)", 100.0 * (double)v->agree / (double)v->judged);
	strbuf_printf(out, "%zu of %zu jobs agree%s in verdict, batch and epochs\n", v->agree, v->judged,
		      share);
	if (v->numbers)
		strbuf_printf(out, "%zu of %zu numbers behind them are the same\n", v->same, v->numbers);
	if (u->older && !v->judged && !u->later)
		strbuf_printf(out,
			      "not judged: %zu jobs, because a daemon of an earlier version, which did not "
			      "record what it decided from, had them\n",
			      u->older);
	else if (u->older)
		strbuf_printf(out, "not judged: %zu jobs from before the records begin\n", u->older);
	for (size_t i = 0; i < o->n_gaps; i++)
		strbuf_printf(out, "not judged: %zu jobs from %s until %s: %s\n", jobs_in(o, &o->gap[i]),
			      text_utc(o->gap[i].from_ns, from),
			      o->gap[i].until_ns == INT64_MAX ? "the end"
							      : text_utc(o->gap[i].until_ns, until),
			      o->gap[i].why);
	if (u->unsteered)
		strbuf_printf(
			out,
			"not judged: how %zu jobs were steered that ran while the daemon was restarted\n",
			u->unsteered);
	if (u->gone)
		strbuf_printf(out,
			      "not known: %zu jobs were removed since (keep); what they taught and cost is "
			      "missing\n",
			      u->gone);
	if (o->past->clock_went_back)
		strbuf_puts(out, "not known: the clock was set back between two daemons, so the order of "
				 "what they did is a guess\n");
}

static void end_json(const struct outcome *o, const struct verdicts *v, const struct unjudged *u,
		     struct json_writer *w)
{
	char at[40];

	json_close(w, ']');
	json_kv_int(w, "jobs", (long long)v->jobs);
	json_kv_int(w, "judged", (long long)v->judged);
	json_kv_int(w, "agree", (long long)v->agree);
	json_kv_number(w, "share", v->judged ? (double)v->agree / (double)v->judged : NAN);
	json_kv_int(w, "numbers", (long long)v->numbers);
	json_kv_int(w, "numbers_same", (long long)v->same);
	json_kv_open(w, "not_judged", '{');
	json_kv_int(w, "before_records", (long long)u->older);
	json_kv_open(w, "gaps", '[');
	for (size_t i = 0; i < o->n_gaps; i++) {
		json_open(w, '{');
		json_kv_int(w, "jobs", (long long)jobs_in(o, &o->gap[i]));
		json_kv_string(w, "from", text_utc(o->gap[i].from_ns, at));
		json_kv_string(w, "until",
			       o->gap[i].until_ns == INT64_MAX ? NULL : text_utc(o->gap[i].until_ns, at));
		json_kv_string(w, "why", o->gap[i].why);
		json_close(w, '}');
	}
	json_close(w, ']');
	json_kv_int(w, "steering", (long long)u->unsteered);
	json_close(w, '}');
	json_kv_open(w, "not_known", '{');
	json_kv_int(w, "jobs_removed", (long long)u->gone);
	json_kv_bool(w, "clock_set_back", o->past->clock_went_back);
	json_close(w, '}');
	json_close(w, '}');
	strbuf_puts(w->out, "\n");
}

static bool in_gap(const struct outcome *o, int64_t at_ns)
{
	bool in = false;

	for (size_t i = 0; i < o->n_gaps; i++)
		in |= at_ns >= o->gap[i].from_ns && at_ns < o->gap[i].until_ns;
	return in;
}

void outcome_print(const struct outcome *o, bool json, struct strbuf *out, struct verdicts *v)
{
	const struct past *p = o->past;
	struct recorded *r = mem_calloc(p->n_jobs + 1, sizeof *r);
	const struct past_decision **starts = mem_array(p->n_decisions + 1, sizeof *starts);
	struct unjudged u = { 0 };
	struct json_writer w;

	json_begin(&w, out, json);
	if (json) {
		json_open(&w, '{');
		json_kv_open(&w, "differ", '[');
	}
	if (r && starts)
		gather(p, r, starts);
	else
		out->failed = true;
	*v = (struct verdicts){ .jobs = p->n_jobs };
	for (size_t i = 0; i < p->n_jobs && r && starts; i++) {
		struct difference d;

		if (p->job[i].arrived_ns < o->from_ns || !o->again[i].played) {
			u.older += p->job[i].arrived_ns < o->from_ns;
			u.later += p->job[i].arrived_ns >= o->from_ns;
			continue;
		}
		if (r[i].arrival && in_gap(o, r[i].arrival->at_ns)) /* it waited until then */
			r[i].arrival = NULL;
		compare_job(o, i, &r[i], starts, &d);
		count_job(o, i, &r[i], starts, v);
		u.unsteered += o->again[i].not_steered;
		v->judged++;
		v->agree += !d.moment;
		if (d.moment)
			tell(o, i, &d, json, &w);
	}
	u.gone = p->n_jobs ? (size_t)(p->job[p->n_jobs - 1].is->id - p->n_jobs) : 0;
	if (json)
		end_json(o, v, &u, &w);
	else
		end_text(o, v, &u, out);
	free(r);
	free(starts);
}
