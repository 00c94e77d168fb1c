/* Drives the daemon that is played again. See verify.h. */
#include "scheduler/daemon/verify/verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "scheduler/daemon/admission.h"
#include "scheduler/daemon/binding.h"
#include "scheduler/daemon/verify/replayed.h"

#define MOST_TURNS 64 /* other jobs that may start before the one whose turn it was */
#define MOST_PENDING 20000 /* rows that the replay's own store has not written */

struct run {
	struct past past;
	struct replayed again;
	struct outcome out;
};

static struct daemon *daemon_of(const struct run *r)
{
	return r->again.d;
}

static struct again *again_of(const struct run *r, uint64_t id)
{
	const struct past_job *j = past_job(&r->past, id);

	return j ? &r->out.again[j - r->past.job] : NULL;
}

static void remark(const struct run *r, uint64_t id, const char *why)
{
	struct again *a = again_of(r, id);

	if (a && !a->why[0])
		snprintf(a->why, sizeof a->why, "%s", why);
}

/* ---- what the replay decides ---- */

static void on_decided(void *owner, const struct job *job, const char *moment, const char *json)
{
	struct run *r = owner;
	struct again *a = again_of(r, job->id);
	struct past_choice c;

	if (!a || !past_choice_read(json, &c))
		return;
	if (!strcmp(moment, "start")) {
		if (mem_grow((void **)&a->start, &a->starts_cap, a->n_starts + 1, sizeof *a->start))
			past_choice_release(&c);
		else
			a->start[a->n_starts++] = c;
		return;
	}
	if (a->arrival || !(a->arrival = mem_alloc(sizeof *a->arrival))) {
		past_choice_release(&c);
		return;
	}
	a->verdict = job->row.verdict;
	*a->arrival = c;
}

/* ---- a job arrives ---- */

/* As it came in: nothing of what was decided or happened later. Text is borrowed. */
static struct job_record submitted_row(const struct daemon *d, const struct past_job *j)
{
	const struct job_record *is = &j->is->row;
	struct job_record row;

	job_record_init(&row);
	row.id = is->id;
	row.key = is->key;
	row.uid = is->uid;
	row.gid = is->gid;
	row.type = is->type;
	row.mode = is->mode;
	row.params = is->params;
	row.batches = is->batches;
	row.cpus = is->cpus;
	row.gpus = row.gpus_least = is->gpus_least;
	row.slo_s = is->slo_s;
	row.confidence = is->confidence;
	row.max_memory_mb = is->max_memory_mb;
	row.best_effort = is->best_effort;
	row.chance = is->chance;
	row.value = is->value;
	row.submitted_ns = j->arrived_ns;
	row.tenant = is->tenant;
	row.priority = is->priority;
	row.may_stop = is->may_stop;
	row.policy = d->setup->config->policy;
	row.tag = is->tag;
	row.identity = is->identity;
	row.after = is->after;
	row.after_more = is->after_more;
	row.after_ok = is->after_ok;
	row.retry = is->retry;
	row.array_index = is->array_index;
	return row;
}

static int make_job(struct daemon *d, const struct past_job *j, struct job **out, struct err *err)
{
	struct job_record row = submitted_row(d, j);
	const char *tenant = row.tenant ? row.tenant : "earlier", *model;
	struct binding b;
	int rc = binding_of_row(d->setup, &row, &b, err);

	if (rc)
		return rc;
	model = d->setup->slot[b.slot].name;
	row.model = model[0] ? model : NULL;
	rc = job_new(&d->jobs.names, &row, out, err);
	if (!rc) {
		binding_give(&b, *out);
		(*out)->limited = !config_is_admin(d->setup->config, row.uid);
		rc = tenants_named(&d->tenants, d->setup->config, d->sched, daemon_now_ns(d), tenant,
				   &(*out)->tenant, err);
		if (rc)
			job_free(*out);
	}
	binding_release(&b);
	return rc;
}

static void cancel(struct daemon *d, struct job *job, const char *why)
{
	struct life_event e = carry_event(d, LIFE_CANCEL, job);

	e.text = why;
	carry_out(d, &e, NULL);
}

/* The records say another verdict: the replay goes on with that one. */
static void follow(struct run *r, struct job **job, const struct past_job *j, bool waits)
{
	struct daemon *d = daemon_of(r);
	enum job_state is = (*job)->row.state;
	bool was_rejected = j->is->row.verdict == VERDICT_REJECTED || j->is->row.state == JOB_REJECTED;
	struct arrival in;
	struct job *second;

	if (waits || (is == JOB_REJECTED) == was_rejected)
		return;
	if (was_rejected) {
		cancel(d, *job, "it was rejected");
		return;
	}
	/* It takes part in what follows, if without its promise. */
	jobs_take_out(&d->jobs, *job);
	job_free(*job);
	*job = NULL;
	if (make_job(d, j, &second, NULL))
		return;
	second->row.slo_s = NAN;
	second->row.chance = NAN;
	second->row.best_effort = true;
	d->next_id = j->is->id;
	if (admission_submit(d, second, false, daemon_now_ns(d), &in, NULL)) {
		job_free(second);
		return;
	}
	job_free(in.probe);
	second->row.slo_s = j->is->row.slo_s;
	admission_done(d, second, &in);
	*job = second;
}

static void submit(struct run *r, const struct past_job *j)
{
	struct daemon *d = daemon_of(r);
	struct again *a = again_of(r, j->is->id);
	struct err err = { 0 };
	struct arrival in;
	struct job *job;
	char why[160];

	a->played = true;
	if (jobs_find(&d->jobs, j->is->id)) { /* a probe: it came with its job */
		a->verdict = jobs_find(&d->jobs, j->is->id)->row.verdict;
		return;
	}
	if (make_job(d, j, &job, &err)) {
		snprintf(why, sizeof why, "in the replay it is refused: %.120s", err.text);
		remark(r, j->is->id, why);
		return;
	}
	d->next_id = j->is->id;
	if (admission_submit(d, job, j->waits, j->arrived_ns, &in, &err)) {
		snprintf(why, sizeof why, "in the replay it is refused: %.120s", err.text);
		remark(r, j->is->id, why);
		job_free(job);
		return;
	}
	a->verdict = job->row.verdict;
	if (in.probe && !past_job(&r->past, in.probe->id)) {
		remark(r, j->is->id, "in the replay a probe would have been submitted with it");
		job_free(in.probe);
	} else {
		learning_probe_submit(d->learning, in.probe, j->arrived_ns);
	}
	strbuf_release(&in.text);
	follow(r, &job, j, j->waits);
	jobs_trim(&d->jobs, d->setup->config->max_finished);
}

/* ---- a job starts ---- */

/* What its row says of the decision behind its last run; of an earlier one the decision says the batch. */
static void follow_start(struct job *job, const struct past_job *j, const struct past_choice *was)
{
	struct job_record *r = &job->row;
	const struct job_record *is = &j->is->row;

	if (r->batch == was->batch && (r->epochs == was->epochs || isnan(was->epochs)))
		return;
	r->batch = was->batch;
	if (!isnan(was->epochs))
		r->epochs = was->epochs;
	r->run_predicted_s = is->run_predicted_s;
	r->run_upper_s = is->run_upper_s;
	r->model_s = is->model_s;
	r->guard_s = is->guard_s;
}

static void start(struct run *r, struct past_decision *at)
{
	struct daemon *d = daemon_of(r);
	const struct past_job *j = past_job(&r->past, at->job);
	struct again *a = again_of(r, at->job);
	struct job *job = jobs_find(&d->jobs, at->job);
	struct err err = { 0 };
	uint64_t id = 0;
	char why[160];

	if (!a)
		return;
	at->judged = true;
	at->again = a->n_due++;
	if (a->n_starts > at->again) /* by its owner, or before others in the replay */
		goto follow;
	for (int i = 0; i < MOST_TURNS && id != at->job && carry_next(d, &id); i++) {
		if (id && id != at->job) {
			snprintf(why, sizeof why, "in the replay it starts before job %llu",
				 (unsigned long long)at->job);
			remark(r, id, why);
		}
	}
	job = jobs_find(&d->jobs, at->job);
	if (!job || !job_state_live(job->row.state)) {
		remark(r, at->job, "in the replay it has ended when it starts");
		return;
	}
	if (id != at->job && (job->row.state != JOB_QUEUED || job->step == STEP_READY ||
			      carry_now(d, job, daemon_now_ns(d), &err)))
		remark(r, at->job, err.code ? err.text : "in the replay it runs already when it starts");
	else if (id != at->job)
		remark(r, at->job, "in the replay it would still wait when it starts");
follow:
	if (j && job)
		follow_start(job, j, &at->choice);
}

/* ---- inputs ---- */

/* What was on its way to the disk is there. */
static void durable(struct daemon *d)
{
	for (size_t i = 0; i < d->starts.n; i++) { /* it may grow meanwhile */
		struct job *job = jobs_find(&d->jobs, d->starts.item[i].job);
		struct life_event e = carry_event(d, LIFE_DURABLE, job);

		if (job)
			carry_out(d, &e, NULL);
	}
	d->starts.n = 0;
}

static void give_life_event(struct daemon *d, enum life_event_kind kind, struct job *job, const char *text)
{
	struct life_event e = carry_event(d, kind, job);

	e.text = text;
	carry_out(d, &e, NULL);
}

static void started(struct daemon *d, struct job *job, const struct past_input *in)
{
	if (job->step == STEP_DELAYED)
		give_life_event(d, LIFE_TRY_AGAIN, job, NULL);
	d->delayed.n = 0;
	carry_sink.started(d, job->id, in->at_ns + (int64_t)llround(in->number * 1e9), 0);
}

static int64_t moment_of(const struct json *v, const char *key, int64_t at_ns)
{
	double s = json_number(json_get(v, key), NAN);

	return isnan(s) ? 0 : at_ns + (int64_t)llround(s * 1e9);
}

static int ended(struct daemon *d, struct job *job, const struct past_input *in, struct err *err)
{
	struct exec_outcome o = { .id = job->id };
	const char *text = in->text ? in->text : "";
	struct json *v = NULL;
	int rc = json_parse("inputs", text, strlen(text), &v, err);

	if (rc)
		return rc;
	o.lost = json_bool(json_get(v, "lost"), false);
	o.exit_code = (int)json_number(json_get(v, "exit_code"), -1.0);
	o.exit_signal = (int)json_number(json_get(v, "exit_signal"), 0.0);
	o.timed_out = json_bool(json_get(v, "timed_out"), false);
	o.stopped = json_bool(json_get(v, "stopped"), false);
	o.rounded = json_bool(json_get(v, "rounded"), false);
	o.started_ns = moment_of(v, "started_s", in->at_ns);
	o.ended_ns = moment_of(v, "ended_s", in->at_ns);
	o.run_s = json_number(json_get(v, "run_s"), NAN);
	o.accuracy = json_number(json_get(v, "accuracy"), NAN);
	o.max_rss_mb = json_number(json_get(v, "max_rss_mb"), NAN);
	o.cpu_s = json_number(json_get(v, "cpu_s"), NAN);
	snprintf(o.reason, sizeof o.reason, "%s", json_string(json_get(v, "reason"), ""));
	json_free(v);
	carry_ended(d, job, &o);
	return 0;
}

static void progress(struct daemon *d, struct job *job, const struct past_input *in)
{
	struct life_progress p = { .run_s = NAN };

	if (in->text && sscanf(in->text, "%lf %lf %lf", &p.epoch, &p.epochs, &p.accuracy) == 3)
		carry_progress(d, job, in->number, &p);
	else
		carry_progress(d, job, in->number, NULL);
}

/* A job that is cancelled while its start is on its way to the disk has ended with that. */
static void cancelled(struct run *r, struct job *job, const struct past_input *in)
{
	struct daemon *d = daemon_of(r);
	const struct past_job *j = past_job(&r->past, job->id);
	struct exec_outcome o = life_outcome(job->id, false, LIFE_CANCELLED);

	cancel(d, job, in->text);
	if (j && !j->ends && !job_state_live(j->is->row.state) && job_state_live(job->row.state))
		carry_ended(d, job, &o);
}

static void turn(struct run *r)
{
	uint64_t id;

	for (int i = 0; i < MOST_TURNS && carry_next(daemon_of(r), &id); i++)
		if (id)
			remark(r, id, "in the replay it starts earlier");
}

/* What happened to a job. */
static int happened(struct run *r, const struct past_input *in, struct job *job, struct err *err)
{
	struct daemon *d = daemon_of(r);
	const char *what = in->what;
	int rc = 0;

	if (!strcmp(what, INPUT_ENDED))
		rc = ended(d, job, in, err);
	else if (!strcmp(what, INPUT_STARTED))
		started(d, job, in);
	else if (!strcmp(what, INPUT_OWNER))
		carry_started_by_owner(d, job, NULL);
	else if (!strcmp(what, INPUT_PROGRESS))
		progress(d, job, in);
	else if (!strcmp(what, INPUT_CANCEL))
		cancelled(r, job, in);
	else if (!strcmp(what, INPUT_HOPELESS))
		give_life_event(d, LIFE_HOPELESS, job, NULL);
	else if (!strcmp(what, INPUT_DELAYED))
		give_life_event(d, LIFE_DELAYED, job, in->text);
	else if (!strcmp(what, INPUT_AT_ENGINE))
		give_life_event(d, LIFE_WAITS, job, in->text);
	return rc;
}

/* "CPUS:SECONDS ..." */
static void cluster(struct daemon *d, const struct past_input *in)
{
	struct sched_guest guest[SCHED_MAX_GUESTS];
	const char *s = in->text ? in->text : "";
	size_t n = 0;

	while (*s && n < SCHED_MAX_GUESTS) {
		char *end;

		guest[n] =
			(struct sched_guest){ .cpus = (uint32_t)strtoul(s, &end, 10), .end_ns = SCHED_NEVER };
		if (*end != ':')
			break;
		if (end[1] != '-')
			guest[n].end_ns = in->at_ns + (int64_t)llround(strtod(end + 1, NULL) * 1e9);
		n++;
		s = end + strcspn(end, " ");
		s += *s == ' ';
	}
	sched_set_cluster(d->sched, in->at_ns, (uint32_t)in->number, guest, n, NULL);
}

static int begin(struct run *r, const struct past_input *in, bool again, struct err *err)
{
	return again ? replayed_reload(&r->again, in->text, err) : replayed_begin(&r->again, in->text, err);
}

static int input(struct run *r, const struct past_input *in, struct err *err)
{
	struct daemon *d = daemon_of(r);
	struct job *job = in->job ? jobs_find(&d->jobs, in->job) : NULL;

	if (!strcmp(in->what, INPUT_BEGAN))
		return begin(r, in, false, err);
	if (!strcmp(in->what, INPUT_RELOADED))
		return begin(r, in, true, err);
	if (!strcmp(in->what, INPUT_LOADS)) {
		d->life.other_load = in->number;
		sched_set_other_load(d->sched, in->at_ns, in->number, NULL);
	} else if (!strcmp(in->what, INPUT_CLUSTER)) {
		cluster(d, in);
	} else if (!strcmp(in->what, INPUT_LAG)) {
		r->again.played.lag_s = in->number;
		carry_lag(d);
	} else if (!strcmp(in->what, INPUT_LOOKED)) {
		turn(r);
	} else if (!strcmp(in->what, INPUT_ADMITTED)) {
		waiting_until(d, in->job);
	}
	return job && job_state_live(job->row.state) ? happened(r, in, job, err) : 0;
}

/* ---- all of it ---- */

/* After a restart it is known at once which jobs had never run, and the records say so before "began". */
static int look_ahead(struct run *r, size_t from, struct err *err)
{
	struct replayed *a = &r->again;

	for (size_t i = from; i-- > 0;) {
		const struct past_input *in = &r->past.input[i];

		if (strcmp(in->what, INPUT_UNSTARTED))
			break;
		if (mem_grow((void **)&a->unstarted, &a->unstarted_cap, a->n_unstarted + 1,
			     sizeof *a->unstarted))
			return err_nomem(err, "a restart");
		a->unstarted[a->n_unstarted++] = in->job;
	}
	return 0;
}

static int play(struct run *r, const struct past_moment *m, struct err *err)
{
	const struct past_input *in = m->kind == PAST_INPUT ? &r->past.input[m->i] : NULL;
	int rc = in && !strcmp(in->what, INPUT_BEGAN) ? look_ahead(r, m->i, err) : 0;

	r->again.now_ns = m->at_ns;
	if (rc)
		return rc;
	if (in)
		rc = input(r, in, err);
	else if (m->kind == PAST_SUBMIT)
		submit(r, &r->past.job[m->i]);
	else
		start(r, &r->past.decision[m->i]);
	if (rc)
		return rc;
	durable(daemon_of(r));
	store_commit(daemon_of(r)->store);
	while (store_pending(daemon_of(r)->store) > MOST_PENDING)
		usleep(1000);
	return 0;
}

static int add_gap(struct run *r, int64_t from_ns, int64_t until_ns, const char *why, struct err *err)
{
	struct outcome *o = &r->out;
	struct gap *g;

	if (mem_grow((void **)&o->gap, &o->gaps_cap, o->n_gaps + 1, sizeof *o->gap))
		return err_nomem(err, "the result");
	g = &o->gap[o->n_gaps++];
	*g = (struct gap){ .from_ns = from_ns, .until_ns = until_ns };
	snprintf(g->why, sizeof g->why, "%.300s", why);
	return 0;
}

/* Up to where it cannot go on: a model that was in use is gone, or a record is damaged. A daemon that begins
 * knows what is in its rows and nothing else, so from the next one on all is known again. */
static int play_from(struct run *r, size_t *at, struct err *err)
{
	struct past *p = &r->past;
	size_t i = *at;
	int rc = replayed_fill(&r->again, p->moment[i].at_ns, err);

	if (rc)
		return rc;
	for (; i < p->n_moments; i++) {
		struct err why = { 0 };

		if (!play(r, &p->moment[i], &why))
			continue;
		if (why.code != ERR_NOTFOUND && why.code != ERR_FORMAT)
			return err_fail(err, why.code, "%s", why.text);
		*at = past_next_daemon(p, i + 1);
		return add_gap(r, p->moment[i].at_ns, *at < p->n_moments ? p->moment[*at].at_ns : INT64_MAX,
			       why.text, err);
	}
	*at = i;
	return 0;
}

static int play_all(struct run *r, struct err *err)
{
	struct past *p = &r->past;
	size_t at = past_next_daemon(p, 0);
	int rc = 0;

	r->out.from_ns = at < p->n_moments ? p->moment[at].at_ns : INT64_MAX;
	while (at < p->n_moments && !rc)
		rc = play_from(r, &at, err);
	return rc;
}

static void release(struct run *r)
{
	for (size_t i = 0; i < r->past.n_jobs && r->out.again; i++) {
		struct again *a = &r->out.again[i];

		if (a->arrival)
			past_choice_release(a->arrival);
		free(a->arrival);
		for (size_t k = 0; k < a->n_starts; k++)
			past_choice_release(&a->start[k]);
		free(a->start);
	}
	free(r->out.again);
	free(r->out.gap);
	replayed_close(&r->again);
	past_release(&r->past);
}

static int prepare(struct run *r, const struct verify_params *p, struct err *err)
{
	int rc = past_read(p->state_dir, &r->past, err);

	if (rc)
		return rc;
	r->out.past = &r->past;
	r->out.again = mem_calloc(r->past.n_jobs + 1, sizeof *r->out.again);
	if (!r->out.again)
		return err_nomem(err, "the jobs");
	rc = replayed_open(&r->again, &r->past, p->state_dir, err);
	r->again.played.decided = on_decided;
	r->again.played.owner = r;
	return rc;
}

int verify_run(const struct verify_params *p)
{
	struct run r = { 0 };
	struct strbuf out = { 0 };
	struct verdicts v = { 0 };
	struct err err = { 0 };
	int code = 0, rc = prepare(&r, p, &err);

	if (!rc)
		rc = play_all(&r, &err);
	if (!rc)
		outcome_print(&r.out, p->json, &out, &v);
	if (!rc && out.failed)
		rc = err_nomem(&err, "the result");
	release(&r);
	if (rc) {
		log_error("%s", err.text);
		code = err_exit_code(err.code);
	} else {
		fputs(strbuf_text(&out), stdout);
		if (fflush(stdout)) {
			log_error("standard output cannot be written");
			code = 1;
		} else if (!isnan(p->least) &&
			   !((double)v.agree >= p->least * (double)v.judged && v.judged)) {
			code = 1;
		}
	}
	strbuf_release(&out);
	return code;
}
