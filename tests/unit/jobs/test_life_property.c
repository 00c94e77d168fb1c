/* scheduler/jobs/life against a model of the world, in random histories: clients that retry, owners of
 * advised jobs, a store that loses what is not on disk yet, supervisors of which one can claim a job, a
 * machine that can not start a job now, engines that let jobs wait or are away, jobs that ask how to go on.
 * The daemon dies between any two actions, also while it restores, and another one goes on from what was on
 * disk.
 *
 * Every job has a script that says what is asked and how its run ends, so it is known what must become of
 * it: the same with crashes and without. A third of the histories has none. LIFE_HISTORIES in the
 * environment asks for more. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "scheduler/jobs/life.h"
#include "tests/support/test.h"

#define HISTORIES 100000
#define MAX_JOBS 4
#define MAX_IDS (MAX_JOBS + 1)
#define SLOTS 2
#define ATTEMPTS 3
#define CHANGES 12 /* of a job that steers, at most */
#define STEERED (CHANGES * 160)
#define STEPS 60
#define MAX_STEPS 4000 /* by then every script has come to its end */
#define ADVISE_TIMEOUT_S 100.0

struct script { /* what a job's client, owner and process do */
	bool advised, absent, late, may_cancel, loses_chance, engine, steers;
	int delays; /* so often the machine lacks what starts it */
	enum sched_verdict verdict;
	int exit_code;
	int retry, fails; /* so many runs fail before one that ends as exit_code says */
	int after; /* the script whose job has to end first; below 0: none */
	bool after_ok;
	double slo_s, accuracy;
};

enum request { NOT_SENT, WAITING, ANSWERED };

struct client {
	enum request submit, cancel, start, finish;
	size_t submit_batch, cancel_batch, start_batch,
		finish_batch; /* the answer leaves when it is on disk */
	uint64_t id; /* of the answer */
	struct job_record promise; /* as the answer said; no text */
	bool cancel_sent, cancel_live, cancel_taken; /* taken: the answer to its cancel was "yes" */
	int64_t started_ns, ended_ns; /* an owner's */
};

struct disk_row {
	bool there;
	struct job_record r;
	char key[8], reason[120], identity[JOB_IDENTITY + 1], steered[STEERED], kept[24];
	unsigned observations;
};

struct change { /* one row on its way to the disk */
	size_t batch;
	bool is_observation;
	struct disk_row row;
};

struct run { /* of a job id; processes outlive the daemon */
	unsigned orders; /* supervisors that have not looked for the claim yet */
	bool claimed, stop_asked, exited, stopped;
	unsigned runs;
	double batch, accuracy;
	int64_t started_ns, ended_ns;
	double told; /* the batch that its folder says; 0: that of its start */
	/* of the daemon that lives now */
	bool known, told_started, stop_pending, told_waits;
};

static struct world {
	struct rng rng;
	int64_t now_ns;
	size_t n_jobs;
	struct script script[MAX_JOBS];
	struct client client[MAX_JOBS];
	bool victim[MAX_IDS]; /* stopped for a job that was late */
	bool hopeless[MAX_IDS]; /* its chance has gone, said the scheduler once */

	struct disk_row disk[MAX_IDS];
	struct change change[512];
	size_t n_changes, n_done; /* those before n_done are on disk */
	size_t open_batch, durable; /* batches below `durable` are on disk */

	struct run run[MAX_IDS][ATTEMPTS];
	bool unscheduled[MAX_IDS]; /* of the daemon that lives now: queued, and not with the scheduler */

	/* the daemon: gone after a crash */
	struct life life;
	uint64_t next_id;
	struct {
		uint64_t id;
		size_t batch;
	} await[64];
	size_t n_awaits;
	bool scheduled[MAX_IDS], started[MAX_IDS], idle[MAX_IDS]; /* what its scheduler knows */
	bool retries[MAX_IDS]; /* TRY_AGAIN is to come */
	bool ready_told[MAX_IDS];
	unsigned learned[MAX_IDS];
	int crash_in; /* actions; below 0: never */
	bool crashed;
} w;

static struct jobs jobs; /* made once: it is large */
static unsigned long crashes, history, n_given_up, n_repeated, n_waited, n_not_ok, n_delayed, n_at_engine,
	n_steered, n_told_again;

static const struct job_type steering = { .name = (char[]){ "t" }, .steer = true, .lr_base = NAN };

static bool chance(double p)
{
	return rng_uniform(&w.rng) < p;
}

static unsigned below(unsigned n)
{
	return rng_below(&w.rng, n);
}

static size_t script_of(const char *key)
{
	return (size_t)(key[1] - '0');
}

static struct run *run_of(const struct job *job)
{
	return &w.run[job->id][job->row.attempt];
}

/* ---- the store ---- */

static void collect(const struct job *job, bool is_observation)
{
	struct change *c = &w.change[w.n_changes++];

	assert_true(w.n_changes < sizeof w.change / sizeof w.change[0]);
	*c = (struct change){ .batch = w.open_batch, .is_observation = is_observation };
	c->row.r = job->row;
	snprintf(c->row.key, sizeof c->row.key, "%s", job->key);
	snprintf(c->row.reason, sizeof c->row.reason, "%s", job->reason ? job->reason : "");
	snprintf(c->row.identity, sizeof c->row.identity, "%s", job->identity);
	assert_true(strlen(job->row.steered ? job->row.steered : "") < STEERED);
	snprintf(c->row.steered, STEERED, "%s", job->row.steered ? job->row.steered : "");
	snprintf(c->row.kept, sizeof c->row.kept, "%s", job->row.steer_kept ? job->row.steer_kept : "");
}

static void commit(void)
{
	w.open_batch++;
}

static void write_to_disk(void)
{
	for (; w.n_done < w.n_changes && w.change[w.n_done].batch < w.durable; w.n_done++) {
		const struct change *c = &w.change[w.n_done];
		struct disk_row *row = &w.disk[c->row.r.id];
		unsigned observations = row->observations;

		if (c->is_observation) {
			row->observations++;
			continue;
		}
		*row = c->row;
		row->there = true;
		row->observations = observations;
	}
}

/* ---- the daemon carries actions out ---- */

static bool event(const struct life_event *e);

static struct life_event event_of(enum life_event_kind kind, struct job *job)
{
	return (struct life_event){
		.kind = kind, .job = job, .now_ns = w.now_ns, .advise_timeout_s = ADVISE_TIMEOUT_S
	};
}

static bool simple_event(enum life_event_kind kind, struct job *job)
{
	struct life_event e = event_of(kind, job);

	return event(&e);
}

static void check_spawn(const struct job *job)
{
	const struct disk_row *row = &w.disk[job->id];

	assert_true(row->there);
	assert_int_equal(row->r.state, JOB_RUNNING);
	assert_true(row->r.batch == job->row.batch);
	assert_int_equal(row->r.verdict, job->row.verdict);
	assert_int_equal(row->r.attempt, job->row.attempt);
	assert_string_equal(row->identity, job->identity);
	assert_int_equal(job->identity[JOB_IDENTITY - 1] - '0', job->row.attempt); /* a claim of its own */
}

/* An executor has a job, or nobody has and it is tried again; its scheduler knows whether work is done. */
static void check_step(const struct job *job)
{
	const struct run *run = run_of(job);
	enum job_step s = job->step;
	bool runs = job->row.state == JOB_RUNNING;

	assert_true(s == STEP_NONE ? job->row.state == JOB_QUEUED
				   : runs == (s != STEP_READY) && w.started[job->id]);
	if (life_advised(job) || !runs)
		return;
	assert_true(s != STEP_DELAYED || (w.retries[job->id] && !run->known));
	assert_true(s != STEP_STARTING || !run->known);
	assert_true(s != STEP_AT_ENGINE || (w.script[script_of(job->key)].engine && run->known));
	assert_true(s != STEP_BEGUN || run->claimed);
	assert_true(!w.idle[job->id] || s != STEP_BEGUN);
	assert_true(w.idle[job->id] || (s != STEP_AT_ENGINE && s != STEP_DELAYED));
	assert_true(!job->waits_for == (s == STEP_STARTING || s == STEP_BEGUN) || s == STEP_SPAWNED ||
		    life_stops(job));
}

/* It can not be started now: nothing of it ran. */
static bool delay(struct job *job)
{
	struct life_event e = event_of(LIFE_DELAYED, job);

	n_delayed++;
	run_of(job)->known = run_of(job)->stop_pending = false;
	e.text = "no processes";
	return event(&e);
}

static void do_stop(struct job *job, bool *out_gone)
{
	struct run *run = run_of(job);

	*out_gone = !run->known;
	if (!run->known)
		return;
	if (job->step == STEP_EARLY) { /* early: only the row tells the next daemon why */
		assert_true(w.disk[job->id].r.stopped_epoch > 0.0);
	}
	if (run->claimed)
		run->stop_asked = true;
	else
		run->stop_pending = true;
}

/* What the job hears is on disk, with what the scheduler knew when it said so. */
static void hear(const struct job *job)
{
	const struct disk_row *row = &w.disk[job->id];
	struct run *run = run_of(job);
	struct job_change last;
	struct next next;
	size_t n = job_steered_read(row->steered[0] ? row->steered : NULL, &last, 1);

	job_next(job, &next);
	assert_int_equal(n, job->steering.changes);
	if (!n && life_advised(job))
		return; /* its owner knows since it started it, and has not heard anything else */
	assert_true(next.batch == (n ? last.next.batch : row->r.batch));
	assert_true(!n || next.last == last.next.last);
	n_told_again += n && run->told == next.batch && run->told_started;
	run->told = next.batch;
}

static bool do_action(const struct life_action *a)
{
	struct job *job = a->job;
	struct run *run = run_of(job);
	bool gone;

	switch (a->kind) {
	case LIFE_ADD_ROW:
	case LIFE_UPDATE_ROW: collect(job, false); break;
	case LIFE_ADD_OBSERVATION: collect(job, true); break;
	case LIFE_AWAIT:
		w.await[w.n_awaits].id = job->id;
		w.await[w.n_awaits++].batch = w.open_batch;
		break;
	case LIFE_SPAWN:
		check_spawn(job);
		assert_false(run->known);
		if (w.script[script_of(job->key)].delays > 0 && chance(0.5)) {
			w.script[script_of(job->key)].delays--;
			return delay(job);
		}
		run->known = true;
		run->orders++;
		if (!run->claimed)
			run->batch = job->row.batch;
		break;
	case LIFE_STOP:
		do_stop(job, &gone);
		if (gone) {
			struct life_event e = event_of(LIFE_STOP_FAILED, job);

			e.gone = true;
			return event(&e);
		}
		break;
	case LIFE_ANSWER: hear(job); break;
	case LIFE_ADOPT:
		run->known = life_advised(job) || run->claimed;
		run->told_started = true;
		return simple_event(run->known ? LIFE_ADOPTED : LIFE_UNSTARTED, job);
	case LIFE_FORGET:
		assert_true(w.scheduled[job->id] || w.unscheduled[job->id]);
		w.scheduled[job->id] = w.started[job->id] = w.unscheduled[job->id] = w.idle[job->id] = false;
		break;
	case LIFE_RETRY: w.retries[job->id] = true; break;
	case LIFE_IDLE:
		assert_true(w.started[job->id]);
		w.idle[job->id] = a->idle;
		break;
	case LIFE_ADMIT:
		assert_false(w.scheduled[job->id]);
		w.unscheduled[job->id] = true;
		break;
	case LIFE_TELL:
		if (!strcmp(a->what, "ready"))
			w.ready_told[job->id] = true;
		if (!strcmp(a->what, "stopping") && job->step != STEP_EARLY_AWAITS)
			w.victim[job->id] = true;
		break;
	case LIFE_LEARN:
		assert_int_equal(job->row.state, JOB_DONE);
		assert_int_equal(++w.learned[job->id], 1);
		break;
	case LIFE_CLOSE: life_close(&w.life, job, 100); break;
	default: break;
	}
	return true;
}

/* False: the daemon is dead. */
static bool event(const struct life_event *e)
{
	struct life_actions actions = { .n = 0 };

	assert_int_equal(life_event(&w.life, e, &actions, NULL), 0);
	for (size_t i = 0; i < actions.n; i++) {
		if (w.crash_in == 0) {
			w.crashed = true;
			return false;
		}
		w.crash_in -= w.crash_in > 0;
		if (!do_action(&actions.item[i]))
			return false;
	}
	return true;
}

/* ---- the scheduler: slots, and a decision that depends on the script alone ---- */

static double batch_at(size_t script, bool at_start)
{
	return 32.0 * (double)(1 + script) + at_start;
}

static void pretend_decide(size_t script, bool at_start, struct decision *out)
{
	struct candidate c = { .decision = batch_at(script, at_start),
			       .epochs = NAN,
			       .time_s = 10.0 + (double)script,
			       .upper_s = 20.0 + (double)script,
			       .guard_s = 15.0,
			       .accuracy = 0.75 };

	out->candidate[0] = c;
	out->n_candidates = 1;
	out->chosen = 0;
	out->smallest_slo_s = 33.0;
}

static struct decision decision; /* large */

static void turn(void)
{
	unsigned running = 0;

	for (uint64_t id = 1; id < MAX_IDS; id++)
		running += w.started[id];
	for (uint64_t id = 1; id < MAX_IDS && running < SLOTS; id++) {
		struct job *job = w.scheduled[id] && !w.started[id] ? jobs_find(&jobs, id) : NULL;
		struct life_event e;

		if (!job)
			continue;
		w.started[id] = true;
		pretend_decide(script_of(job->key), true, &decision);
		e = event_of(LIFE_TURN, job);
		e.decision = &decision;
		event(&e);
		return;
	}
}

/* ---- jobs that wait for another, or run once more ---- */

static void admit(uint64_t id)
{
	struct job *job = w.unscheduled[id] ? jobs_find(&jobs, id) : NULL;
	const struct job *first = job ? jobs_find(&jobs, job->row.after) : NULL;
	bool waits = job && job->row.verdict == VERDICT_WAITING;
	struct life_event e;

	if (!job || (waits && job_state_live(first->row.state)))
		return;
	if (waits && job->row.after_ok && first->row.state != JOB_DONE) {
		e = event_of(LIFE_CANCEL, job);
		e.text = "not ok";
		event(&e);
		return;
	}
	w.unscheduled[id] = false;
	e = event_of(LIFE_ADMITTED, job);
	e.verdict = waits ? w.script[script_of(job->key)].verdict : SCHED_BEST_EFFORT;
	w.scheduled[id] = e.verdict != SCHED_REJECTED;
	pretend_decide(script_of(job->key), false, &decision);
	e.decision = &decision;
	event(&e);
}

/* ---- clients ---- */

static struct job *job_of(size_t i)
{
	uint64_t id = jobs_key_find(&jobs, 1, (char[]){ 'k', (char)('0' + i), 0 });

	return id ? jobs_find(&jobs, id) : NULL;
}

static void answer_submit(size_t i, const struct job *job)
{
	w.client[i].submit = WAITING;
	w.client[i].submit_batch = w.open_batch;
	w.client[i].id = job->id;
	w.client[i].promise = job->row;
}

static void submit(size_t i)
{
	const struct script *s = &w.script[i];
	char key[] = { 'k', (char)('0' + i), 0 };
	struct job_record row;
	char identity[JOB_IDENTITY + 1];
	struct life_event e;
	struct job *job = job_of(i), *first = s->after < 0 ? NULL : job_of((size_t)s->after);

	if (s->after >= 0 && w.client[s->after].submit != ANSWERED)
		return; /* it has no number to wait for */
	if (job) { /* the first answer was lost */
		answer_submit(i, job);
		return;
	}
	job_record_init(&row);
	row.id = w.next_id++;
	row.key = key;
	row.uid = 1;
	row.type = "t";
	row.mode = s->advised ? "advise" : "run";
	row.params = "{}";
	row.cpus = 1;
	row.slo_s = s->slo_s;
	row.confidence = 0.9;
	row.may_stop = s->late;
	row.submitted_ns = w.now_ns;
	row.retry = s->retry;
	snprintf(identity, sizeof identity, "%031x0", (unsigned)row.id);
	row.identity = identity;
	if (first && job_state_live(first->row.state)) {
		row.after = first->id;
		row.after_ok = s->after_ok;
	}
	assert_int_equal(job_new(&jobs.names, &row, &job, NULL), 0);
	job->type = s->steers ? &steering : NULL;
	w.scheduled[job->id] = s->verdict != SCHED_REJECTED && !row.after;
	pretend_decide(i, false, &decision);
	e = event_of(LIFE_SUBMITTED, job);
	e.verdict = s->verdict;
	e.waits = row.after != 0;
	e.decision = e.waits ? NULL : &decision;
	if (event(&e))
		answer_submit(i, job);
}

static void cancel(size_t i)
{
	struct client *c = &w.client[i];
	struct job *job = job_of(i);

	/* "wrong_state", too, is answered when the end that it speaks of is on disk */
	c->cancel_live = job_state_live(job->row.state);
	c->cancel_sent |= c->cancel_live;
	if (!c->cancel_live || simple_event(LIFE_CANCEL, job)) {
		c->cancel = WAITING;
		c->cancel_batch = w.open_batch;
	}
}

static void start_by_owner(size_t i)
{
	struct client *c = &w.client[i];
	struct job *job = job_of(i);
	struct life_event e;

	if (job->row.verdict == VERDICT_WAITING)
		return; /* the scheduler does not know it: refused */
	c->start_batch = w.open_batch;
	if (job->row.state != JOB_QUEUED) {
		c->start = WAITING;
		return;
	}
	if (job->step != STEP_READY) {
		w.started[job->id] = true;
		pretend_decide(i, true, &decision);
		e = event_of(LIFE_TURN, job);
		e.decision = &decision;
		if (!event(&e))
			return;
	}
	c->started_ns = w.now_ns;
	e = event_of(LIFE_STARTED, job);
	e.at_ns = w.now_ns;
	if (event(&e))
		c->start = WAITING;
}

static void finish_by_owner(size_t i)
{
	struct client *c = &w.client[i];
	struct job *job = job_of(i);
	struct exec_outcome o = life_outcome(job->id, false, "");
	struct life_event e = event_of(LIFE_ENDED, job);

	c->finish_batch = w.open_batch;
	if (job->row.state != JOB_RUNNING) {
		c->finish = WAITING;
		return;
	}
	o.exit_code = w.script[i].exit_code;
	o.accuracy = w.script[i].accuracy;
	o.ended_ns = c->ended_ns = w.now_ns;
	e.outcome = &o;
	if (event(&e))
		c->finish = WAITING;
}

static void answers_leave(void)
{
	for (size_t i = 0; i < w.n_jobs; i++) {
		struct client *c = &w.client[i];

		if (c->submit == WAITING && c->submit_batch < w.durable)
			c->submit = ANSWERED;
		if (c->start == WAITING && c->start_batch < w.durable)
			c->start = ANSWERED;
		if (c->finish == WAITING && c->finish_batch < w.durable)
			c->finish = ANSWERED;
		if (c->cancel == WAITING && c->cancel_batch < w.durable) {
			c->cancel = ANSWERED;
			c->cancel_taken = c->cancel_live;
		}
	}
}

/* ---- the disk and the processes ---- */

static void disk_turns(void)
{
	if (w.durable < w.open_batch)
		w.durable += 1 + below((unsigned)(w.open_batch - w.durable));
	write_to_disk();
	answers_leave();
	while (w.n_awaits > 0 && w.await[0].batch < w.durable) {
		struct job *job = jobs_find(&jobs, w.await[0].id);

		memmove(w.await, w.await + 1, --w.n_awaits * sizeof w.await[0]);
		if (job && !simple_event(LIFE_DURABLE, job))
			return;
	}
}

/* Something happens to a process, whether there is a daemon or not. */
static void process_moves(uint64_t id)
{
	struct run *run = &w.run[id][below(ATTEMPTS)];
	const struct script *s = &w.script[script_of(w.disk[id].key)];

	if (run->orders > 0) {
		run->orders--;
		if (run->claimed)
			return; /* it lost the race */
		run->claimed = true;
		run->runs++;
		run->started_ns = w.now_ns;
		run->stop_asked = run->stop_pending;
	} else if (run->claimed && !run->exited && (run->stop_asked || !s->late || chance(0.1))) {
		run->exited = true;
		run->stopped = run->stop_asked;
		run->ended_ns = w.now_ns;
		run->accuracy = s->accuracy;
	}
}

/* The executor tells the daemon. */
static void executor_tells(struct job *job)
{
	struct run *run = run_of(job);
	struct script *script = &w.script[script_of(job->key)];
	const struct script *s = script;
	struct life_event e;

	if (life_advised(job) || !run->known)
		return;
	if (!run->claimed && run->orders == 1 && script->delays > 0 && chance(0.5)) {
		script->delays--; /* its supervisor was not there in the end */
		run->orders--;
		run->told_waits = false;
		delay(job);
		return;
	}
	if (s->engine && (!run->told_waits || chance(0.1))) { /* or it is away, whether the job runs or not */
		run->told_waits = true;
		n_at_engine++;
		e = event_of(LIFE_WAITS, job);
		e.text = "waiting for the engine";
		event(&e);
		return;
	}
	if (!run->claimed)
		return;
	if (!run->told_started) {
		run->told_started = true;
		e = event_of(LIFE_STARTED, job);
		e.at_ns = run->started_ns;
		e.pid = 77;
		event(&e);
	} else if (run->exited) {
		struct exec_outcome o = life_outcome(job->id, false, "");

		run->known = false;
		o.exit_code = run->stopped ? -1 : job->row.attempt < s->fails ? 1 : s->exit_code;
		o.stopped = run->stopped;
		o.accuracy = run->accuracy;
		o.started_ns = run->started_ns;
		o.ended_ns = run->ended_ns;
		e = event_of(LIFE_ENDED, job);
		e.outcome = &o;
		event(&e);
	} else {
		struct life_progress p = { .epoch = 1.0 + below(3), .epochs = 5.0, .accuracy = 0.5 };

		e = event_of(LIFE_PROGRESS, job);
		e.progress = &p;
		e.stop_after = s->late && life_may_stop_early(job) ? 1 : 0;
		e.gives_back = e.stop_after && below(2);
		event(&e);
	}
}

/* It has reported an epoch, and asks. */
static void steer(struct job *job)
{
	struct job_change c = { .end_s = NAN, .end_upper_s = NAN, .accuracy = NAN };
	struct life_event e = event_of(LIFE_STEERED, job);
	char kept[24];

	if (!life_steers(job) || (!life_advised(job) && !run_of(job)->claimed))
		return;
	job_next(job, &c.next);
	c.next.after = 1.0 + below(5);
	e.changed = chance(0.5) && job->steering.changes < CHANGES;
	if (e.changed) {
		c.next.batch = 1000.0 + below(1000);
		c.next.last = 5.0 + below(3);
		snprintf(c.why, sizeof c.why, "faster");
	}
	snprintf(kept, sizeof kept, "knows %u", job->steering.changes + e.changed);
	e.kept = kept;
	e.change = &c;
	n_steered += e.changed;
	event(&e);
}

static void estimate(struct job *job)
{
	struct life_event e = event_of(LIFE_ESTIMATED, job);

	e.estimate = (struct sched_estimate){ .end_s = 5.0,
					      .late = job->row.verdict == VERDICT_PROMISED,
					      .sure = job->row.verdict == VERDICT_PROMISED };
	e.on_late = chance(0.5) ? ON_LATE_STOP_BEST_EFFORT : ON_LATE_NOTHING;
	event(&e);
}

/* ---- a crash, and the next daemon ---- */

static void forget_memory(void)
{
	struct job_list *list[] = { &jobs.live, &jobs.ended };

	for (size_t i = 0; i < 2; i++) {
		while (list[i]->first) {
			struct job *job = list[i]->first;

			jobs_take_out(&jobs, job);
			job_free(job);
		}
	}
	for (uint64_t id = 1; jobs.n_keys > 0; id = id % MAX_IDS + 1)
		jobs_key_forget_newest(&jobs, id);
	w.life = (struct life){ .jobs = &jobs, .load_since_ns = w.now_ns };
	w.n_awaits = 0;
	w.crashed = false;
	memset(w.scheduled, 0, sizeof w.scheduled);
	memset(w.started, 0, sizeof w.started);
	memset(w.unscheduled, 0, sizeof w.unscheduled);
	memset(w.idle, 0, sizeof w.idle);
	memset(w.retries, 0, sizeof w.retries);
	memset(w.ready_told, 0, sizeof w.ready_told);
	memset(w.learned, 0, sizeof w.learned);
}

/* Requests without an answer are sent again. */
static void ask_again(enum request *r)
{
	if (*r == WAITING)
		*r = NOT_SENT;
}

static void crash(void)
{
	crashes++;
	w.n_changes = w.n_done; /* the rest never reached the disk */
	w.durable = w.open_batch;
	for (uint64_t id = 1; id < MAX_IDS * ATTEMPTS; id++) {
		struct run *run = &w.run[id / ATTEMPTS][id % ATTEMPTS];

		if (run->orders > 0 && chance(0.5)) /* not forked yet; otherwise the supervisor goes on */
			run->orders--;
		run->known = run->told_started = run->stop_pending = run->told_waits = false;
	}
	for (size_t i = 0; i < w.n_jobs; i++) {
		struct client *c = &w.client[i];

		ask_again(&c->submit);
		ask_again(&c->cancel);
		ask_again(&c->start);
		ask_again(&c->finish);
	}
	forget_memory();
}

static bool restore_row(const struct disk_row *row)
{
	struct job_record r = row->r;
	struct sched_restored back;
	struct job *job;

	r.key = row->key;
	r.reason = row->reason[0] ? row->reason : NULL;
	r.type = "t";
	r.params = "{}";
	r.mode = w.script[script_of(row->key)].advised ? "advise" : "run";
	r.identity = row->identity;
	r.steered = row->steered[0] ? row->steered : NULL;
	r.steer_kept = row->kept[0] ? row->kept : NULL;
	assert_int_equal(job_new(&jobs.names, &r, &job, NULL), 0);
	job->type = w.script[script_of(row->key)].steers ? &steering : NULL;
	assert_int_equal(jobs_key_add(&jobs, 1, row->key, r.id, NULL), 0);
	if (!simple_event(LIFE_RESTORED, job))
		return false;
	if (job_state_live(job->row.state) && job->row.verdict != VERDICT_WAITING) {
		life_back(job, &back);
		w.scheduled[r.id] = true;
		assert_int_equal(back.promised, w.script[script_of(row->key)].verdict == SCHED_PROMISED);
		assert_int_equal(back.by_chance, w.script[script_of(row->key)].verdict == SCHED_CHANCE);
		w.started[r.id] = back.running;
		assert_true(back.taken.decision == r.batch);
		assert_string_equal(back.steer ? back.steer : "", row->kept);
	}
	return true;
}

static void restore(void)
{
	w.next_id = 1;
	for (uint64_t id = 1; id < MAX_IDS; id++) {
		if (!w.disk[id].there)
			continue;
		w.next_id = id + 1;
		if (!restore_row(&w.disk[id]))
			return;
	}
	for (uint64_t id = 1; id < MAX_IDS; id++) {
		struct job *job = jobs_find(&jobs, id);

		if (job && job_state_live(job->row.state) && !simple_event(LIFE_RESUMED, job))
			return;
	}
}

/* ---- a history ---- */

static void client_moves(size_t i, bool hurry)
{
	struct client *c = &w.client[i];
	const struct script *s = &w.script[i];

	if (c->submit != ANSWERED) {
		if (c->submit == NOT_SENT)
			submit(i);
		return;
	}
	if (s->may_cancel && c->cancel == NOT_SENT && chance(0.2))
		cancel(i);
	else if (!s->advised || s->absent)
		return;
	else if (c->start == NOT_SENT && (w.ready_told[c->id] || hurry || chance(0.1)))
		start_by_owner(i);
	else if (c->start == ANSWERED && c->finish == NOT_SENT && chance(0.3))
		finish_by_owner(i);
}

static void step(bool hurry)
{
	struct job *job = jobs_find(&jobs, 1 + below((unsigned)w.n_jobs));
	uint64_t id = 1 + below((unsigned)w.n_jobs);

	w.now_ns += 1 + below(2000000000);
	switch (below(8)) {
	case 0:
	case 1: client_moves(below((unsigned)w.n_jobs), hurry); break;
	case 2: disk_turns(); break;
	case 3:
		admit(id);
		turn();
		break;
	case 4:
		if (w.disk[id].there)
			process_moves(id);
		break;
	case 5:
		if (job && w.script[script_of(job->key)].steers && chance(0.5))
			steer(job);
		else if (job && job_state_live(job->row.state))
			executor_tells(job);
		break;
	case 6:
		if (job && job->row.state == JOB_RUNNING && chance(0.2))
			estimate(job);
		if (job && job_state_live(job->row.state) && w.script[script_of(job->key)].loses_chance) {
			w.hopeless[job->id] = true;
			simple_event(LIFE_HOPELESS, job);
		}
		break;
	default:
		if (job && w.script[script_of(job->key)].absent)
			simple_event(LIFE_TICK, job);
		if (job && (w.retries[job->id] || chance(0.1))) { /* or one that is delayed no more */
			w.retries[job->id] = false;
			simple_event(LIFE_TRY_AGAIN, job);
		}
		commit();
		break;
	}
	if (chance(0.5))
		commit();
}

static void draw_script(struct script *s, size_t i)
{
	double verdict = rng_uniform(&w.rng);

	s->advised = chance(0.25);
	s->absent = s->advised && chance(0.2);
	s->late = !s->advised && chance(0.25);
	s->may_cancel = chance(0.3);
	s->verdict = verdict < 0.4    ? SCHED_PROMISED
		     : verdict < 0.65 ? SCHED_BEST_EFFORT
		     : verdict < 0.9  ? SCHED_CHANCE
				      : SCHED_REJECTED;
	s->loses_chance = chance(0.4); /* others are not touched by it */
	s->exit_code = !s->late && chance(0.2);
	s->slo_s = 10.0 + 100.0 * rng_uniform(&w.rng);
	s->accuracy = 0.5 + 0.01 * (double)i;
	s->retry = s->advised || s->late ? 0 : (int)below(ATTEMPTS);
	s->fails = s->advised || s->late ? 0 : (int)below(ATTEMPTS);
	s->engine = !s->advised && chance(0.3);
	s->delays = chance(0.4) ? 1 + (int)below(3) : 0;
	s->steers = chance(0.4);
	s->after = i && chance(0.3) ? (int)below((unsigned)i) : -1;
	s->after_ok = chance(0.5);
}

static bool all_over(void)
{
	for (size_t i = 0; i < w.n_jobs; i++) {
		struct client *c = &w.client[i];

		if (c->submit != ANSWERED || job_state_live(w.disk[c->id].r.state))
			return false;
	}
	return jobs.live.n == 0;
}

static void live_through(uint64_t seed)
{
	bool crashing = seed % 3 != 0;
	int step_no = 0;

	memset(&w, 0, sizeof w);
	w.rng = rng_stream(seed, 1);
	w.now_ns = INT64_C(1000000000000);
	forget_memory();
	w.next_id = 1;
	w.durable = w.open_batch = 1;
	w.n_jobs = 1 + below(MAX_JOBS);
	for (size_t i = 0; i < w.n_jobs; i++)
		draw_script(&w.script[i], i);
	w.crash_in = crashing ? (int)below(30) : -1;
	for (; step_no < MAX_STEPS && !(step_no > STEPS && all_over()); step_no++) {
		step(step_no > STEPS);
		while (w.crashed) {
			crash();
			w.crash_in = step_no < STEPS ? (int)below(30) : -1;
			w.now_ns += 1000000000;
			restore();
		}
		for (const struct job *job = jobs.live.first; job; job = job->after)
			check_step(job);
	}
	assert_true(step_no < MAX_STEPS);
}

/* ---- what must have become of every job ---- */

static void check_state(size_t i, const struct disk_row *row)
{
	const struct script *s = &w.script[i];
	const struct client *c = &w.client[i];
	bool failed = s->exit_code || s->fails > s->retry;
	enum job_state want = s->absent ? JOB_LOST : failed ? JOB_FAILED : JOB_DONE;
	bool not_ok = row->r.after && row->r.after_ok && w.disk[row->r.after].r.state != JOB_DONE;

	if (s->verdict == SCHED_REJECTED)
		want = JOB_REJECTED;
	if (c->cancel_taken || not_ok)
		want = JOB_CANCELLED;
	else if (row->r.state == JOB_CANCELLED && (c->cancel_sent || w.victim[c->id] || w.hopeless[c->id]))
		return; /* it was asked for, and the answer was lost; or the operator wants it so */
	assert_int_equal(row->r.state, want);
	n_not_ok += not_ok && !strcmp(row->reason, "not ok");
	assert_true(!not_ok || row->r.verdict == VERDICT_WAITING);
}

static void check_promise(size_t i, const struct disk_row *row)
{
	const struct job_record *p = &w.client[i].promise;

	n_waited += row->r.after && row->r.verdict != VERDICT_WAITING;
	if (row->r.verdict == VERDICT_WAITING) { /* cancelled before its time came */
		assert_int_equal(row->r.state, JOB_CANCELLED);
		return;
	}
	assert_int_equal(row->r.verdict, job_verdict_of(w.script[i].verdict));
	if (row->r.after) { /* it arrived when the other had ended */
		assert_true(row->r.submitted_ns >= p->submitted_ns);
		assert_true(row->r.submitted_ns >= w.disk[row->r.after].r.ended_ns);
		return;
	}
	assert_int_equal(row->r.verdict, p->verdict);
	assert_true(row->r.slo_s == p->slo_s);
	assert_int_equal(row->r.submitted_ns, p->submitted_ns);
	if (w.script[i].verdict != SCHED_REJECTED) {
		assert_true(row->r.predicted_s == p->predicted_s);
		assert_true(row->r.upper_s == p->upper_s);
	}
}

/* It heard nothing that its row does not say, and an attempt begins from its start. */
static void check_told(const struct disk_row *row, const struct run *run)
{
	struct job_change c[CHANGES];
	size_t n = job_steered_read(row->steered[0] ? row->steered : NULL, c, CHANGES);
	bool said = run->told == 0.0 || run->told == row->r.batch;

	for (size_t i = 0; i < n; i++)
		said |= c[i].next.batch == run->told;
	assert_true(said);
	assert_true(!n || run->runs || w.script[script_of(row->key)].advised);
}

static void check_run(size_t i, const struct disk_row *row)
{
	const struct script *s = &w.script[i];
	const struct run *run = &w.run[row->r.id][row->r.attempt];
	double response_s = (double)(row->r.ended_ns - row->r.submitted_ns) / 1e9;
	bool done = row->r.state == JOB_DONE;
	bool given_up = row->r.state == JOB_CANCELLED && !strcmp(row->reason, LIFE_NO_CHANCE);
	enum slo_outcome want = given_up                                                        ? SLO_MISSED
				: row->r.state == JOB_CANCELLED || row->r.state == JOB_REJECTED ? SLO_NONE
				: done && response_s <= s->slo_s                                ? SLO_MET
												: SLO_MISSED;

	for (int k = 0; k < ATTEMPTS; k++)
		assert_true(w.run[row->r.id][k].runs <= (k <= row->r.attempt));
	assert_true(row->r.attempt <= s->retry && (s->exit_code || row->r.attempt <= s->fails));
	n_repeated += row->r.attempt > 0;
	assert_true(!given_up || (s->verdict == SCHED_CHANCE && w.hopeless[row->r.id]));
	n_given_up += given_up;
	assert_int_equal(row->r.slo_outcome, want);
	assert_int_equal(row->observations, done && isnan(row->r.stopped_epoch) && !row->steered[0]);
	check_told(row, run);
	if (done || row->r.state == JOB_FAILED) {
		assert_true(row->r.accuracy == s->accuracy);
		assert_true(row->r.batch == batch_at(i, true));
		assert_int_equal(row->r.started_ns, s->advised ? w.client[i].started_ns : run->started_ns);
		assert_int_equal(row->r.ended_ns, s->advised ? w.client[i].ended_ns : run->ended_ns);
	}
	if (run->runs)
		assert_true(run->batch == batch_at(i, true));
	if (done && !s->advised)
		assert_int_equal(run->runs, 1);
}

static void check_all(void)
{
	unsigned rows = 0;

	for (uint64_t id = 1; id < MAX_IDS; id++) {
		rows += w.disk[id].there;
		assert_false(w.scheduled[id]);
		if (w.disk[id].there && script_of(w.disk[id].key) < w.n_jobs)
			assert_int_equal(w.client[script_of(w.disk[id].key)].id, id);
	}
	assert_int_equal(rows, w.n_jobs);
	for (size_t i = 0; i < w.n_jobs; i++) {
		const struct disk_row *row = &w.disk[w.client[i].id];

		check_promise(i, row);
		check_state(i, row);
		check_run(i, row);
	}
	assert_int_equal(w.life.load_jobs, 0);
	assert_int_equal(w.life.load_processes, 0);
}

TEST(test_life_loses_no_job_runs_none_twice_and_keeps_every_promise_whenever_the_daemon_dies)
{
	const char *more = getenv("LIFE_HISTORIES");
	unsigned long n = more ? strtoul(more, NULL, 10) : HISTORIES;

	assert_int_equal(jobs_init(&jobs, NULL), 0);
	for (unsigned long seed = 1; seed <= n; seed++) {
		history = seed; /* for a debugger, and the message of a failure */
		live_through(seed);
		check_all();
	}
	printf("%lu histories, %lu crashes, %lu jobs without a chance, %lu repeated, %lu after others, %lu "
	       "not ok, %lu delays, %lu waits at engines, %lu steered, %lu told again\n",
	       n, crashes, n_given_up, n_repeated, n_waited, n_not_ok, n_delayed, n_at_engine, n_steered,
	       n_told_again);
	assert_true(n < 1000 || (crashes > n / 2 && n_given_up > n / 20));
	assert_true(n < 1000 || (n_repeated > n / 10 && n_waited > n / 10 && n_not_ok > n / 50));
	assert_true(n < 1000 || (n_delayed > n / 4 && n_at_engine > n / 4));
	assert_true(n < 1000 || (n_steered > n / 4 && n_told_again > n / 50));
	forget_memory();
	jobs_release(&jobs);
}
