/* Steering: what a running job is told after each of its epochs. See steer.h for the calls, steer_plan.h for
 * the choice. Here stands what goes into it: the model's times and accuracies of all batches, how the job's
 * own pace differs from them (learn/progress.h), what it has reached (learn/own_curve.h), and what its time
 * does to it and to others among the jobs that run and wait, from two plays.
 *
 * Progress is counted in the model's work, not in epochs: one with a larger batch is less of it. A change
 * makes what is left more or less, and the reports so far stay what they were (progress_scale()). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/core/sched_internal.h"
#include "scheduler/core/steer_plan.h"

#define MOST_ENDS 8 /* numbers of epochs that are looked at, the nearest first */
#define LEAST_GAIN 0.005 /* of accuracy, for a change */
#define UNSEEN 0.5 /* part of the model's spread that it has in each batch for itself */
#define OWN_CURVE_AFTER 6.0 /* epochs told weigh as much as the model ... */
#define OWN_CURVE_MOST 0.5 /* ... and never more than so */

/* ---- where it is ---- */

bool steer_on(const struct sched *s, const struct live *j)
{
	return j->r.steer && !j->r.apart && s->looks_ahead && !(s->policy.without & LAYER_STEER) &&
	       model_of(s, &j->r);
}

double steer_part(const struct steered *t, double done)
{
	double epoch = done * t->last;

	if (!t->last || !(t->step > 0.0) || done >= 1.0)
		return done;
	return fmin(t->from_part + fmax(epoch - t->from_epoch, 0.0) * t->step, 1.0);
}

double sched_as_started_s(const struct sched *s, uint64_t id, double actual_s)
{
	uint32_t place = job_index_find(&s->index, id);
	const struct steered *t = place == JOB_INDEX_NONE ? NULL : &s->live[place].steer;

	if (!t || !(t->changes > 0.0) || !(t->start_s > 0.0))
		return actual_s;
	return actual_s * t->start_s / (t->done_s + t->rest_s);
}

/* ---- what is known ---- */

struct asked {
	struct live *j;
	struct steered *t;
	double end[MOST_ENDS];
	size_t n_ends; /* epochs it may end after; the one as it is last */
	struct steer_pace pace[STEER_MOST_BATCHES]; /* epochs in the model's work first, then as expected */
	double work_s[STEER_MOST_BATCHES]; /* the model's, of an epoch alone */
	const double *batch;
	size_t n, now;
	double beta;
	struct mixed_run_curve curve;
};

static void find_ends(struct asked *a, uint32_t epoch)
{
	const struct sched_request *r = &a->j->r;

	for (size_t i = 0; i < r->n_epochs && r->epochs && a->n_ends < MOST_ENDS - 1; i++)
		if (r->epochs[i] > epoch && r->epochs[i] != a->t->last)
			a->end[a->n_ends++] = r->epochs[i];
	a->end[a->n_ends++] = a->t->last;
}

/* May it have that batch now, with the memory and the devices that there are? */
static bool has_room(const struct sched *s, const struct live *j, double batch)
{
	const struct sched_request *r = &j->r;
	double own_mb = live_memory_mb(r, j->taken.decision), mb = live_memory_mb(r, batch);

	if (batch == j->taken.decision)
		return true;
	if (device_need_count(&r->device, batch) != j->taken.devices ||
	    (s->machine.device_memory_mb > 0.0 &&
	     device_need_memory_mb(&r->device, batch) > s->machine.device_memory_mb))
		return false;
	return mb <= own_mb ||
	       (!(mb > r->max_memory_mb) && live_memory_used_mb(s) - own_mb + mb <= s->machine.memory_mb);
}

/* Asks the model about all batches; false: it does not say enough. */
static bool ask_model(struct sched *s, struct asked *a)
{
	struct live *j = a->j;
	const struct model *m = model_of(s, &j->r);
	struct policy_choice alone;
	struct decide_scene scene;
	struct decide_params p = { .model = m,
				   .job = j->r.values,
				   .candidate = a->batch,
				   .n_candidates = a->n,
				   .epochs = j->r.epochs ? a->end : NULL,
				   .n_epochs = a->n_ends,
				   .slo_s = NAN,
				   .confidence = j->r.confidence,
				   .scene = &scene };
	size_t n_ends = p.epochs ? a->n_ends : 1;
	const struct predictor *accuracy = &m->accuracy.predictor;

	if (!j->r.values || a->n * n_ends > DECIDE_MAX_CANDIDATES)
		return false;
	scene_alone(s, &j->r, &alone, &scene);
	if (decide(&p, s->trial, NULL))
		return false;
	a->beta = accuracy->ops && accuracy->ops->batch_power ? accuracy->ops->batch_power(accuracy->self)
							      : NAN;
	a->now = a->n;
	for (size_t b = 0; b < a->n; b++) {
		const struct candidate *of = &s->trial->candidate[b * n_ends], *c = &of[n_ends - 1];
		double start = c->start_share > 0.0 ? c->start_share : 0.0;

		a->work_s[b] = c->work_s * (1.0 - start) / a->t->last;
		a->pace[b].epoch_s = has_room(s, j, a->batch[b]) && c->beyond < 0 ? a->work_s[b] : NAN;
		a->pace[b].effort = mixed_run_effort(1.0, a->batch[b], a->beta);
		if (a->batch[b] == j->taken.decision)
			a->now = b;
		for (size_t e = 0; e < n_ends; e++)
			mixed_run_add(
				&a->curve,
				mixed_run_effort(a->end[p.epochs ? e : a->n_ends - 1], a->batch[b], a->beta),
				of[e].accuracy);
	}
	mixed_run_settle(&a->curve);
	return a->now < a->n && a->work_s[a->now] > 0.0;
}

/* What it has told itself moves the curve of the model. */
static void lean_on_own_curve(struct asked *a)
{
	const struct own_curve *own = &a->t->curve;
	double part = fmin(own->n / (own->n + OWN_CURVE_AFTER), OWN_CURVE_MOST);

	for (size_t i = 0; i < a->curve.n; i++) {
		double told = own_curve_at(own, exp(a->curve.log_effort[i]));

		if (!isnan(told))
			a->curve.accuracy[i] += part * (told - a->curve.accuracy[i]);
	}
	mixed_run_settle(&a->curve);
}

/* ---- among the others ---- */

struct among {
	double per_s, offset_s; /* its end, by the work that it has left */
	double cost_per_s;
};

/* Its end and what it costs the others are straight lines between two plays: with the work as it is, and with
 * another. False: nothing is known. */
static bool play_twice(struct sched *s, int64_t now_ns, struct live *j, double work_s, double other_s,
		       struct among *out)
{
	size_t streams, n, seat;
	double end_s, others, other_end_s, more;
	const struct fluid_times *t;

	order_around(s, NULL);
	t = scene_play(s, now_ns, &streams);
	if (!t)
		return false;
	seat = j->seat;
	n = scene_seated(s) + streams + s->order.n;
	end_s = t[seat].end_s;
	others = give_worth_of_others(s, t, n, seat);
	t = scene_play_with(s, streams, seat, other_s);
	if (!t || !(end_s > 0.0))
		return false;
	other_end_s = t[seat].end_s;
	more = give_worth_of_others(s, t, n, seat) - others;
	out->per_s = (end_s - other_end_s) / (work_s - other_s);
	out->offset_s = end_s - out->per_s * work_s;
	out->cost_per_s = s->rule.priced ? price_now(s, now_ns, &j->r) * j->r.cpus +
						   fmax(more / (end_s - other_end_s), 0.0)
					 : 0.0;
	return out->per_s > 0.0;
}

/* ---- the choice ---- */

/* What it has left, by its own reports: seconds of work, with the plan as it was. */
static double left_by_plan_s(const struct steered *t, const struct progress *p)
{
	return t->rest_s * (1.0 - p->last.done) / (1.0 - t->from_part);
}

static double plan_work_s(const struct asked *a, const struct steer_plan *p, unsigned epochs)
{
	return p->n_first * a->work_s[p->first] + (epochs - p->n_first) * a->work_s[p->then];
}

/* The best plan over all numbers of epochs; *out_end is its end. */
static bool choose(const struct asked *a, struct steer_case *c, struct steer_plan *out, uint32_t *out_end)
{
	bool any = false;

	for (size_t e = a->n_ends; e-- > 0;) { /* as it is first: another has to be better */
		struct steer_plan p = { 0 };

		c->epochs_left = (unsigned)a->end[e] - a->t->epoch;
		if (!steer_plan(c, &p))
			return false;
		if (!any || (p.reason != STEER_LATE && out->reason == STEER_LATE) ||
		    (p.end_s <= c->left_s && p.worth > out->worth + c->least_gain)) {
			*out = p;
			*out_end = (uint32_t)a->end[e];
			any = true;
		}
	}
	return any;
}

/* The plan is taken over: the work that is left is another. */
static void follow(struct sched *s, struct asked *a, const struct steer_plan *p, uint32_t end)
{
	struct live *j = a->j;
	struct steered *t = a->t;
	unsigned left = end - t->epoch;
	double done = j->progress.last.done, rest_s = plan_work_s(a, p, left), spread, times;
	const struct candidate *to = &s->trial->candidate[s->trial->n_candidates / a->n * p->first];

	times = done + (1.0 - done) * rest_s / left_by_plan_s(t, &j->progress);
	progress_scale(&j->progress, times);
	t->from_epoch = t->epoch;
	t->from_part = j->progress.last.done;
	t->step = (1.0 - t->from_part) * a->work_s[p->first] / rest_s;
	t->rest_s = rest_s;
	t->last = end;
	j->total_s = j->done_s + progress_left_s(&j->progress, &spread);
	if (p->first != a->now) {
		t->changes++;
		t->seen_low = fmin(t->seen_low, a->batch[p->first]);
		t->seen_high = fmax(t->seen_high, a->batch[p->first]);
		j->taken.decision = to->decision;
		j->taken.cpu_share = to->cpu_share;
		j->taken.disk_share = to->disk_share;
		j->taken.memory_mb = live_memory_mb(&j->r, to->decision);
	}
	j->taken.way = p->way;
	j->taken.way_per_s = p->per_s;
	/* Neighbours keep away from its promise as far as it needs, see guard_s. */
	if (j->taken.guard_s > 0.0 && p->end_s > 0.0)
		j->taken.guard_s = j->taken.time_s * p->way_s / p->end_s;
	if (!isnan(p->accuracy))
		j->taken.accuracy = p->accuracy;
	if (!isnan(j->taken.epochs))
		j->taken.epochs = end;
	live_set_speeds(s);
	live_changed(s);
}

static bool decide_again(struct sched *s, int64_t now_ns, struct asked *a, struct steer_answer *out)
{
	struct live *j = a->j;
	struct steered *t = a->t;
	double spread, left_s = progress_left_s(&j->progress, &spread), own, fast_s, processes;
	struct fluid_job is = decide_fluid_job(&j->taken, j->r.cpus);
	struct steer_case c = { .pace = a->pace,
				.n = a->n,
				.now = a->now,
				.left_s = live_until_s(j->deadline_ns, now_ns),
				.unseen = UNSEEN * j->spread,
				.confidence = j->r.confidence,
				.curve = &a->curve,
				.effort_done = t->effort,
				.value = price_value(&j->r) };
	struct among among;
	struct steer_plan p = { 0 };
	uint32_t end;
	size_t per = s->trial->n_candidates / a->n;

	c.spread = spread;
	c.least_gain = LEAST_GAIN * c.value;
	c.epochs_left = t->last - t->epoch;
	own = left_s / left_by_plan_s(t, &j->progress);
	fast_s = own * c.epochs_left * a->work_s[steer_fastest(&c)];
	if (!(own > 0.0 && isfinite(own)) ||
	    !play_twice(s, now_ns, j, left_s, fast_s < 0.9 * left_s ? fast_s : 0.5 * left_s, &among))
		return false;
	processes = (double)(s->slots_used + s->guest_cpus) + s->other_load;
	for (size_t b = 0; b < a->n; b++) {
		struct fluid_job as = decide_fluid_job(&s->trial->candidate[b * per], j->r.cpus);

		a->pace[b].epoch_s *= own * among.per_s * decide_stretch(&s->fluid, &as, processes) /
				      decide_stretch(&s->fluid, &is, processes);
		a->pace[b].seen = a->batch[b] >= t->seen_low && a->batch[b] <= t->seen_high;
	}
	c.offset_s = among.offset_s;
	c.cost_per_s = among.cost_per_s;
	if (!choose(a, &c, &p, &end))
		return false;
	*out = (struct steer_answer){ .batch = a->batch[p.first],
				      .lr = steer_lr(&j->r.rate, a->batch[p.first]),
				      .last = end,
				      .changed = p.first != a->now || end != t->last,
				      .reason = p.reason,
				      .end_s = p.end_s,
				      .end_upper_s = p.upper_s,
				      .accuracy = p.accuracy };
	follow(s, a, &p, end);
	return true;
}

/* Epochs that are over: what they were, by the model, and what was reached. */
static void note_epochs(struct asked *a, const struct steer_report *r)
{
	struct steered *t = a->t;
	double more = (double)r->epoch - t->epoch;

	if (!t->epoch) {
		t->start_s = t->rest_s = t->last * a->work_s[a->now];
		t->step = 1.0 / t->last;
		t->seen_low = t->seen_high = a->batch[a->now];
	}
	t->effort += more * a->pace[a->now].effort;
	t->done_s += more * a->work_s[a->now];
	t->epoch = r->epoch;
	own_curve_add(&t->curve, t->effort, r->accuracy);
}

static struct steer_answer keeps(struct sched *s, int64_t now_ns, const struct live *j, uint32_t last)
{
	struct sched_estimate e = { .end_s = NAN, .end_high_s = NAN };

	sched_estimate(s, now_ns, j->r.id, &e, NULL);
	return (struct steer_answer){ .batch = j->taken.decision,
				      .lr = steer_lr(&j->r.rate, j->taken.decision),
				      .last = last,
				      .reason = STEER_KEEPS,
				      .end_s = e.end_s,
				      .end_upper_s = e.end_high_s,
				      .accuracy = j->taken.accuracy };
}

int sched_steer(struct sched *s, int64_t now_ns, uint64_t id, const struct steer_report *r,
		struct steer_answer *out, struct err *err)
{
	struct asked a = { 0 };
	struct live *j;
	int rc = live_find_running(s, id, &j, err);

	if (rc)
		return rc;
	if (!r->epoch || !r->epochs)
		return err_fail(err, ERR_ARG, "a report of epoch %u of %u: need 1 or more", r->epoch,
				r->epochs);
	now_ns = live_clock(s, now_ns);
	live_settle(s, now_ns);
	if (!steer_on(s, j)) {
		*out = keeps(s, now_ns, j, r->epochs);
		return 0;
	}
	if (j->steer.last && r->epoch <= j->steer.epoch) {
		*out = j->steer.answer;
		return 0;
	}
	a.j = j;
	a.t = &j->steer;
	a.t->last = a.t->last ? a.t->last : r->epochs;
	a.batch = live_batches(s, &j->r, &a.n);
	if (r->epoch < a.t->last)
		find_ends(&a, r->epoch);
	if (!a.n_ends || a.n > STEER_MOST_BATCHES || !ask_model(s, &a)) {
		a.t->epoch = r->epoch;
		*out = keeps(s, now_ns, j, a.t->last);
	} else {
		note_epochs(&a, r);
		lean_on_own_curve(&a);
		if (isnan(j->total_s) || !j->progress.last.n || j->progress.last.done >= 1.0 ||
		    !decide_again(s, now_ns, &a, out))
			*out = keeps(s, now_ns, j, a.t->last);
	}
	a.t->answer = *out;
	return 0;
}

/* ---- a restart ---- */

/* One number after the other, into a text or out of one. */
struct carry {
	char *out; /* NULL: they are read */
	const char *in;
	size_t used;
	bool failed;
};

static void carry_number(struct carry *c, double *v)
{
	char *end;

	if (c->out) {
		c->used += (size_t)snprintf(c->out + c->used, STEER_TEXT - c->used, " %.17g", *v);
		return;
	}
	*v = strtod(c->in, &end);
	c->failed |= end == c->in;
	c->in = end;
}

static void carry_count(struct carry *c, uint32_t *v)
{
	double number = *v;

	carry_number(c, &number);
	c->failed |= !(number >= 0.0 && number <= UINT32_MAX);
	if (!c->out && !c->failed)
		*v = (uint32_t)number;
}

static void carry_time(struct carry *c, int64_t *v)
{
	double s = floor(1e-9 * (double)*v), rest = (double)(*v - (int64_t)s * 1000000000);

	carry_number(c, &s);
	carry_number(c, &rest);
	c->failed |= !(fabs(s) < 9e9 && fabs(rest) <= 2e9);
	if (!c->out && !c->failed)
		*v = (int64_t)s * 1000000000 + (int64_t)rest;
}

static void carry_mark(struct carry *c, struct progress_mark *m)
{
	double *v[] = { &m->done,  &m->at_s,     &m->sum_done,   &m->sum_s,   &m->sum_squares,
			&m->sum_n, &m->sum_thin, &m->sum_errors, &m->n_errors };

	carry_count(c, &m->n);
	for (size_t i = 0; i < sizeof v / sizeof *v; i++)
		carry_number(c, v[i]);
}

static void carry_all(struct carry *c, struct live *j)
{
	struct steered *t = &j->steer;
	struct progress *p = &j->progress;
	struct steer_answer *a = &t->answer;
	uint32_t reason = a->reason, changed = a->changed;
	double *v[] = { &t->from_epoch,
			&t->from_part,
			&t->step,
			&t->rest_s,
			&t->done_s,
			&t->start_s,
			&t->effort,
			&t->seen_low,
			&t->seen_high,
			&j->taken.guard_s,
			&j->taken.way,
			&j->taken.way_per_s,
			&t->changes,
			&t->curve.last,
			&t->curve.w,
			&t->curve.x,
			&t->curve.y,
			&t->curve.xx,
			&t->curve.xy,
			&a->batch,
			&a->lr,
			&a->end_s,
			&a->end_upper_s,
			&a->accuracy,
			&p->start_s,
			&p->rate_s,
			&p->spread,
			&p->first_done,
			&p->first_s,
			&p->hidden_s,
			&j->total_s,
			&j->done_s,
			&j->taken.decision,
			&j->taken.cpu_share,
			&j->taken.disk_share,
			&j->taken.memory_mb,
			&j->taken.accuracy,
			&j->taken.epochs };

	carry_count(c, &t->last);
	carry_count(c, &t->epoch);
	carry_count(c, &t->curve.n);
	carry_count(c, &a->last);
	carry_count(c, &reason);
	carry_count(c, &changed);
	carry_time(c, &t->counted_ns);
	for (size_t i = 0; i < sizeof v / sizeof *v; i++)
		carry_number(c, v[i]);
	carry_mark(c, &p->last);
	carry_mark(c, &p->before);
	c->failed |= reason > STEER_LATE || !t->last;
	a->reason = c->failed ? STEER_KEEPS : (enum steer_reason)reason;
	a->changed = changed;
}

const char *sched_steer_kept(const struct sched *s, uint64_t id, char *out)
{
	uint32_t place = job_index_find(&s->index, id);
	struct live j;
	struct carry c = { .out = out };

	*out = '\0';
	if (place == JOB_INDEX_NONE || !s->live[place].running || !s->live[place].steer.last)
		return out;
	j = s->live[place];
	j.steer.counted_ns = s->since_ns; /* its work is exact then */
	c.used = (size_t)snprintf(out, STEER_TEXT, "1");
	carry_all(&c, &j);
	return out;
}

static int read_kept(const char *kept, struct live *io, struct err *err)
{
	struct carry c = { .in = kept + 1 };

	if (*kept != '1' || kept[1] != ' ')
		return err_fail(err, ERR_FORMAT, "'%.40s' does not say how a job was steered", kept);
	carry_all(&c, io);
	if (c.failed || *c.in)
		return err_fail(err, ERR_FORMAT,
				"'%.40s...' is cut off or damaged: it does not say how a "
				"job was steered",
				kept);
	return 0;
}

int steer_check(const char *kept, struct err *err)
{
	struct live j = { .running = true };

	return kept && *kept ? read_kept(kept, &j, err) : 0;
}

int steer_restore(struct live *j, const char *kept, struct err *err)
{
	return kept && *kept ? read_kept(kept, j, err) : 0;
}
