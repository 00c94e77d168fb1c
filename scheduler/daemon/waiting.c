/* Jobs that are queued and not with the scheduler: they wait for other jobs to end (`after`), or their run
 * failed and is to be repeated (`retry`), after a pause. Each job that ends knows those that wait for it, so
 * nobody walks through the others; what its end means for them is seen to in turns of the loop, a bounded
 * time in each. See daemon.h. */
#include <event2/event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/clock.h"
#include "common/mem.h"
#include "scheduler/daemon/admission.h"

#define TURN_US 1000.0 /* of one turn of the loop, because others want to be served, too */
#define FIRST_PAUSE_S 0.1 /* before the second run; before each later one twice as long, */
#define LONGEST_PAUSE_S 60.0 /* up to this */

/* That one job waits for another: the k-th of those it waits for. */
struct edge {
	struct waiter *waiter;
	struct awaited *of; /* NULL: its end was noted */
	unsigned k;
	TAILQ_ENTRY(edge) link;
};

struct waiter {
	struct daemon *d;
	uint64_t id;
	struct event *pause; /* until its run is repeated; NULL: none */
	bool due; /* it is in the list of those to be looked at */
	TAILQ_ENTRY(waiter) link;
	size_t n;
	struct edge edge[];
};

/* A job that others wait for. When it has ended it stays in a list until that was noted in all of them: the
 * job itself may be forgotten before. */
struct awaited {
	uint64_t id;
	enum job_state state;
	TAILQ_HEAD(, edge) edges;
	TAILQ_ENTRY(awaited) link;
};

struct waiting {
	TAILQ_HEAD(waiter_list, waiter) due;
	TAILQ_HEAD(awaited_list, awaited) ended;
	size_t n;
	bool full; /* the scheduler has no room in this turn */
};

/* ---- who waits for whom ---- */

static struct waiting *waiting_of(struct daemon *d)
{
	if (!d->waiting) {
		d->waiting = mem_calloc(1, sizeof *d->waiting);
		if (!d->waiting)
			return NULL;
		TAILQ_INIT(&d->waiting->due);
		TAILQ_INIT(&d->waiting->ended);
	}
	return d->waiting;
}

static void make_due(struct waiter *w)
{
	if (w->due)
		return;
	w->due = true;
	TAILQ_INSERT_TAIL(&w->d->waiting->due, w, link);
	daemon_changed(w->d);
}

static void forget_edge(struct edge *e)
{
	if (e->of)
		TAILQ_REMOVE(&e->of->edges, e, link);
	e->of = NULL;
}

/* It does not wait any more. */
static void leave(struct waiter *w)
{
	struct waiting *all = w->d->waiting;

	for (size_t i = 0; i < w->n; i++)
		forget_edge(&w->edge[i]);
	if (w->due)
		TAILQ_REMOVE(&all->due, w, link);
	if (w->pause)
		event_free(w->pause);
	all->n--;
	free(w);
}

/* The jobs that have to end before this one; returns how many. */
static size_t awaited_ids(const struct job *job, uint64_t id[WAITING_MAX])
{
	const char *s = job->row.after_more;
	size_t n = 0;

	if (job->row.verdict != VERDICT_WAITING || !job->row.after)
		return 0;
	id[n++] = job->row.after;
	while (s && *(s += strcspn(s, "0123456789")) && n < WAITING_MAX) {
		char *end;

		id[n++] = strtoull(s, &end, 10);
		s = end;
	}
	return n;
}

/* False: no memory. */
static bool wait_for(struct waiter *w, unsigned k, struct job *one)
{
	struct edge *e = &w->edge[w->n];

	if (!one->awaited) {
		one->awaited = mem_calloc(1, sizeof *one->awaited);
		if (!one->awaited)
			return false;
		one->awaited->id = one->id;
		TAILQ_INIT(&one->awaited->edges);
	}
	*e = (struct edge){ .waiter = w, .of = one->awaited, .k = k };
	TAILQ_INSERT_TAIL(&one->awaited->edges, e, link);
	w->n++;
	return true;
}

static void on_pause_over(evutil_socket_t fd, short what, void *waiter)
{
	(void)fd;
	(void)what;
	make_due(waiter);
}

/* A run that fails at once would be repeated as fast as the machine can start it. False: no pause. */
static bool begin_pause(struct waiter *w, const struct job *job)
{
	double pause_s = ldexp(FIRST_PAUSE_S, job->row.attempt - 1);
	struct timeval tv;

	if (job->row.attempt < 1 || job->row.verdict == VERDICT_WAITING || !w->d->base)
		return false;
	pause_s = fmin(pause_s, LONGEST_PAUSE_S);
	tv.tv_sec = (time_t)pause_s;
	tv.tv_usec = (suseconds_t)(1e6 * (pause_s - (double)tv.tv_sec));
	w->pause = event_new(w->d->base, -1, 0, on_pause_over, w);
	return w->pause && !event_add(w->pause, &tv);
}

void waiting_add(struct daemon *d, struct job *job)
{
	uint64_t id[WAITING_MAX];
	size_t n = awaited_ids(job, id);
	struct waiting *all = waiting_of(d);
	struct waiter *w = all ? mem_calloc(1, sizeof *w + n * sizeof *w->edge) : NULL;
	bool enough = w != NULL;

	if (w) {
		w->d = d;
		w->id = job->id;
		job->waiter = w;
		all->n++;
	}
	for (size_t k = 0; k < n && enough; k++) {
		struct job *one = jobs_find(&d->jobs, id[k]);

		if (one && job_state_live(one->row.state))
			enough = wait_for(w, (unsigned)k, one);
	}
	if (!enough) {
		struct life_event e = carry_event(d, LIFE_CANCEL, job);

		e.text = "out of memory";
		carry_out(d, &e, NULL);
		return;
	}
	if (!begin_pause(w, job))
		make_due(w);
}

void waiting_ended(struct daemon *d, struct job *job)
{
	struct awaited *a = job->awaited;

	if (job->waiter)
		leave(job->waiter);
	job->waiter = NULL;
	job->awaited = NULL;
	if (a) {
		a->state = job->row.state;
		TAILQ_INSERT_TAIL(&d->waiting->ended, a, link);
	}
	if (d->waiting)
		daemon_changed(d);
}

void waiting_release(struct daemon *d)
{
	struct awaited *a;

	for (struct job *job = d->jobs.live.first; job; job = job->after) {
		if (job->waiter)
			leave(job->waiter);
		job->waiter = NULL;
	}
	for (struct job *job = d->jobs.live.first; job; job = job->after) {
		free(job->awaited);
		job->awaited = NULL;
	}
	while (d->waiting && (a = TAILQ_FIRST(&d->waiting->ended))) {
		TAILQ_REMOVE(&d->waiting->ended, a, link);
		free(a);
	}
	free(d->waiting);
	d->waiting = NULL;
}

size_t waiting_count(const struct daemon *d)
{
	return d->waiting ? d->waiting->n : 0;
}

/* ---- what is in its way ---- */

/* How many of those it waits for have not ended; *out_first is the first of them. */
static size_t left_of(const struct daemon *d, const struct job *job, const struct job **out_first)
{
	uint64_t id[WAITING_MAX];
	size_t n = awaited_ids(job, id), left = 0;

	*out_first = NULL;
	for (size_t k = 0; k < n; k++) {
		const struct job *one = job->after_ended >> k & 1 ? NULL : jobs_find(&d->jobs, id[k]);

		if (!one || !job_state_live(one->row.state))
			continue;
		if (!left++)
			*out_first = one;
	}
	return left;
}

/* True: nothing is in its way. */
static bool may_go(const struct daemon *d, const struct job *job)
{
	const struct job *first;

	return left_of(d, job, &first) == 0;
}

/* A job that it waited for did not end well, and that was a condition; NULL: all is well so far. */
static const char *why_not(const struct daemon *d, const struct job *job, char *buf, size_t size)
{
	unsigned long long bad = job->after_bad;
	enum job_state state = job->after_state;
	uint64_t id[WAITING_MAX];
	size_t n = job->row.after_ok ? awaited_ids(job, id) : 0;

	for (size_t k = 0; k < n && !bad; k++) {
		const struct job *one = jobs_find(&d->jobs, id[k]);

		if (job->after_ended >> k & 1)
			continue;
		if (!one) {
			snprintf(buf, size,
				 "job %llu had to end well first, and how it ended is not known any more",
				 (unsigned long long)id[k]);
			return buf;
		}
		if (job_state_live(one->row.state) || one->row.state == JOB_DONE)
			continue;
		bad = id[k];
		state = one->row.state;
	}
	if (!n || !bad)
		return NULL;
	snprintf(buf, size, "job %llu had to end well first, and it is %s", bad, job_state_name[state]);
	return buf;
}

/* False: the scheduler has no room yet. */
static bool hand_over(struct daemon *d, struct job *job)
{
	struct life_event e = carry_event(d, LIFE_ADMITTED, job);
	struct admission a;
	struct strbuf text = { 0 };
	struct err err = { 0 };
	struct json_writer w;
	int rc = admission_decide(d, job, e.now_ns, true, &a, &err);

	if (rc == -ERR_BUSY)
		return false;
	if (rc) {
		e = carry_event(d, LIFE_CANCEL, job);
		e.text = err.text;
	} else {
		if (a.why[0])
			job_set_reason(job, a.why);
		json_begin(&w, &text, false);
		admission_json(d, job, e.now_ns, &a, &w);
		e.verdict = a.verdict;
		e.decision = &a.decision;
		e.text = strbuf_text(&text);
	}
	carry_out(d, &e, NULL);
	strbuf_release(&text);
	return true;
}

/* ---- turns ---- */

/* What ended jobs mean for one that waits for them. False: all ends were noted. */
static bool note_one(struct daemon *d)
{
	struct awaited *a = TAILQ_FIRST(&d->waiting->ended);
	struct edge *e = a ? TAILQ_FIRST(&a->edges) : NULL;
	struct waiter *w;
	struct job *job;

	if (!a)
		return false;
	if (!e) {
		TAILQ_REMOVE(&d->waiting->ended, a, link);
		free(a);
		return true;
	}
	w = e->waiter;
	forget_edge(e);
	job = jobs_find(&d->jobs, w->id);
	if (!job)
		return true;
	job->after_ended |= (uint64_t)1 << e->k;
	if (a->state != JOB_DONE && !job->after_bad) {
		job->after_bad = a->id;
		job->after_state = a->state;
	}
	make_due(w);
	return true;
}

/* It is given to the scheduler, cancelled, or waits on. False: the scheduler has no room. */
static bool look_at(struct daemon *d, struct job *job)
{
	uint64_t id = job->id;
	char why[160];

	TAILQ_REMOVE(&d->waiting->due, job->waiter, link);
	job->waiter->due = false;
	if (why_not(d, job, why, sizeof why)) {
		struct life_event e = carry_event(d, LIFE_CANCEL, job);

		e.text = why;
		carry_out(d, &e, NULL);
		return true;
	}
	if (!may_go(d, job))
		return true;
	if (!hand_over(d, job)) {
		job->waiter->due = true;
		TAILQ_INSERT_HEAD(&d->waiting->due, job->waiter, link);
		return false;
	}
	job = jobs_find(&d->jobs, id);
	if (job && job->waiter) {
		leave(job->waiter);
		job->waiter = NULL;
	}
	return true;
}

/* One step; false: there is nothing to do now. Ends are noted before anybody is looked at, so that the reason
 * of a cancelled job is the right one. */
static bool step(struct daemon *d)
{
	struct waiter *w;
	struct job *job;

	if (note_one(d))
		return true;
	w = d->waiting->full ? NULL : TAILQ_FIRST(&d->waiting->due);
	job = w ? jobs_find(&d->jobs, w->id) : NULL;
	if (job)
		d->waiting->full = !look_at(d, job);
	return job && !d->waiting->full;
}

void waiting_turn(struct daemon *d)
{
	double began_us = clock_monotonic_us();

	if (d->waiting)
		d->waiting->full = false;
	while (d->waiting && !d->store_failed && step(d)) {
		if (clock_monotonic_us() - began_us > TURN_US) {
			daemon_later(d);
			return;
		}
	}
}

void waiting_until(struct daemon *d, uint64_t id)
{
	const struct job *job;

	if (!d->waiting)
		return;
	d->waiting->full = false;
	while ((job = jobs_find(&d->jobs, id)) && job->waiter && step(d))
		;
}

bool waiting_why(const struct daemon *d, const struct job *job, char *out, size_t size)
{
	const struct job *first;
	size_t left = left_of(d, job, &first);
	char more[48] = "";

	if (job->row.verdict != VERDICT_WAITING)
		return false;
	if (left > 1)
		snprintf(more, sizeof more, "; so %s %zu more", left > 2 ? "have" : "has", left - 1);
	snprintf(out, size, "job %llu has to end%s first, and it %s%s",
		 (unsigned long long)(first ? first->id : job->row.after), job->row.after_ok ? " well" : "",
		 !first                            ? "is not known any more"
		 : first->row.state == JOB_RUNNING ? "runs"
						   : "waits",
		 more);
	return true;
}
