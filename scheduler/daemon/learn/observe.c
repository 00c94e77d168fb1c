/* What a job that ended teaches at once: bounds, drift, and which kinds of jobs are known. See learning.h. */
#include "scheduler/daemon/learn/learning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "scheduler/core/admit/knowledge.h"
#include "scheduler/core/outcome.h"
#include "scheduler/daemon/binding.h"
#include "scheduler/daemon/learn/learning_internal.h"
#include "scheduler/process/machine.h"

/* ---- drift ---- */

/* How the model errs on jobs it has not seen: its own residuals, or the first jobs it meets. unit: what a
 * score of 1 is in log time. */
static void drift_begin(struct learner *l, const double *score, size_t n, double unit)
{
	struct drift_reference r = { 0 };
	struct err err = { 0 };
	int rc = drift_reference_of(score, n, &r, &err);

	r.centre *= unit;
	r.spread *= unit;
	if (rc || drift_new(&r, &l->drift, &err))
		log_warn("no alarm when the machine changes: %s", err.text);
}

/* Another model. */
static void begin_anew(struct learner *l)
{
	const struct model_slot *s = learner_slot(l);
	const struct conformal *c = s->model ? &s->model->time.conformal : NULL;

	snprintf(l->model_name, sizeof l->model_name, "%s", s->name);
	strangers_release(&l->strangers);
	l->n_first = 0;
	drift_free(l->drift);
	l->drift = NULL;
	if (c && c->log && c->n >= 8)
		drift_begin(l, c->score, c->n, spread_typical(s->model->time.spread));
}

static bool alarm_of(const struct learner *l, int type, struct drift_evidence *out)
{
	return drift_evidence(l->drift, type, out) && out->alarm;
}

static void log_alarm(const struct learner *l, int type, const char *of)
{
	struct drift_evidence e;

	if (!alarm_of(l, type, &e))
		return;
	log_warn("drift: %s take %.0f %% %s than the model says, for %llu of %llu jobs (statistic %.1f, "
		 "threshold %.1f); "
		 "bounds follow%s",
		 of, fabs(e.shift_percent), e.shift_percent > 0.0 ? "longer" : "less",
		 (unsigned long long)e.since, (unsigned long long)e.jobs, e.statistic, e.threshold,
		 l->l->d->setup->config->learning.adapt ? "" : " after a training only");
}

/* Is there one still? An alarm ends by itself when nothing is left of what raised it. */
static bool alarm_stays(struct learner *l, int type)
{
	struct drift_evidence e;

	if (!alarm_of(l, type, &e))
		return false;
	if (e.statistic <= 0.0)
		drift_acknowledge(l->drift, type);
	return e.statistic > 0.0;
}

static void watch_drift(struct learner *l, int type, const char *name, double model_s, double run_s,
			bool quiet)
{
	bool type_before, all_before;
	char of[96];

	if (!l->drift) {
		l->first[l->n_first++] = log(run_s / model_s);
		if (l->n_first == LEARNING_FIRST) {
			drift_begin(l, l->first, l->n_first, 1.0);
			l->n_first = 0;
		}
		return;
	}
	type_before = alarm_stays(l, type);
	all_before = alarm_stays(l, DRIFT_POOLED);
	if (!drift_observe(l->drift, type, model_s, run_s) || quiet)
		return;
	snprintf(of, sizeof of, "jobs of type %s", name);
	if (!type_before)
		log_alarm(l, type, of);
	if (!all_before)
		log_alarm(l, DRIFT_POOLED, l->l->n > 1 ? "all jobs of this model" : "all jobs together");
	l->alarms++;
	watch_tell(l->l->d, "drift", NULL);
}

/* ---- ended jobs ---- */

bool learning_is_observation(const struct job_record *row)
{
	return row->state == JOB_DONE && row->started_ns && row->ended_ns > row->started_ns;
}

static struct sched_observation seen_of(const struct learner *e, const struct job *job, bool stranger,
					const struct job_values *v)
{
	const struct job_record *r = &job->row;

	return (struct sched_observation){
		.model = e->slot,
		.type = job->type_number,
		.user = r->uid,
		.stranger = stranger,
		.values = v,
		.cpus = r->cpus,
		.confidence = r->confidence,
		.model_s = r->model_s,
		.upper_s = r->run_upper_s,
		.foreseen_s = r->foreseen_s,
		.actual_s = (double)(r->ended_ns - r->started_ns) / 1e9,
		.waited_s = (double)(r->started_ns - r->submitted_ns) / 1e9,
		.response_s = (double)(r->ended_ns - r->submitted_ns) / 1e9,
		.told_s = r->predicted_s,
		.told_upper_s = r->upper_s,
		/* The run of a repeated job was foreseen later than its time began. */
		.limit_s = r->verdict == VERDICT_PROMISED && !r->attempt ? r->slo_s : NAN,
	};
}

/* As far from what was predicted as ten times all errors of the model together, and no share either. */
static bool accuracy_plausible(const struct model *m, const struct job_record *r)
{
	const struct conformal *c = m ? &m->accuracy.conformal : NULL;
	double reach, p = r->predicted_accuracy;

	if (isnan(r->accuracy))
		return true;
	if (!c || c->n < 9 || isnan(p))
		return fabs(r->accuracy) <= LEARNING_MOST_ACCURACY;
	reach = 10.0 * (c->score[c->n - 1] - c->score[0]) * (c->base + c->slope * fmax(p, 0.0));
	return r->accuracy >= fmin(0.0, p - reach) && r->accuracy <= fmax(1.0, p + reach);
}

/* Why nothing is to be learnt from it; NULL: it is plausible. Only the model that decided can tell. */
static const char *doubt_of(const struct learner *e, const struct job *job, bool stranger)
{
	const struct job_record *r = &job->row;
	struct sched_observation seen = seen_of(e, job, stranger, NULL);

	if (!r->model || strcmp(r->model, e->model_name) || learner_is_young(e))
		seen.model_s = NAN;
	if (!sched_plausible(e->l->d->sched, &seen))
		return "time";
	return accuracy_plausible(learner_slot(e)->model, r) ? NULL : "accuracy";
}

/* met: what it ran beside. quiet: it ended before the daemon started. */
static void observe(struct learner *e, const struct job *job, const char *stranger,
		    const struct job_values *v, const struct pairs_met *met, bool quiet)
{
	const struct job_record *r = &job->row;
	double run_s = (double)(r->ended_ns - r->started_ns) / 1e9;
	struct sched_observation seen = seen_of(e, job, *stranger, v);

	/* Stopped early, or steered: it did not do what was predicted. */
	if (!isnan(r->stopped_epoch) || r->steered)
		return;
	tally_kept(&e->l->d->tally, r);
	/* Decided by another model: it says nothing of this one. */
	if (!r->model || strcmp(r->model, e->model_name) || !(r->model_s > 0.0 && isfinite(r->model_s)))
		return;
	seen.met = met;
	strangers_count(&e->strangers, job->type_number, stranger);
	/* An error of the model on jobs it does not know says nothing about the machine. */
	if (sched_observe(e->l->d->sched, &seen))
		watch_drift(e, job->type_number, r->type, r->model_s,
			    r->foreseen_s > 0.0 ? r->foreseen_s : run_s, quiet);
}

static void strangeness(const struct learner *e, const struct job_values *v, bool epochs_open, char *out,
			size_t size)
{
	const struct model *m = learner_slot(e)->model;

	out[0] = '\0';
	if (m && v->number)
		model_knows(m, v, epochs_open, out, size);
}

const char *learning_doubt(const struct learning *l, const struct job *job)
{
	const struct learner *e = learner_of(l, job);
	char stranger[STRANGERS_TEXT];

	strangeness(e, job_values(job), job->n_epoch_choices > 0, stranger, sizeof stranger);
	return doubt_of(e, job, *stranger);
}

void learning_ended(struct learning *l, const struct job *job)
{
	struct learner *e = learner_of(l, job);
	char stranger[STRANGERS_TEXT];
	const char *doubt;

	if (!learning_is_observation(&job->row))
		return;
	strangeness(e, job_values(job), job->n_epoch_choices > 0, stranger, sizeof stranger);
	doubt = doubt_of(e, job, *stranger);
	if (doubt) {
		l->doubted++;
		log_warn("job %llu of uid %u: its %s is not plausible, so nothing is learnt from it",
			 (unsigned long long)job->id, (unsigned)job->row.uid, doubt);
		return;
	}
	observe(e, job, stranger, job_values(job), &l->d->met, false);
	learner_train_due(e);
}

/* A job that was read from the store is not bound to the model's columns. */
void learning_observe_again(struct learning *l, const struct job *job, const struct pairs_met *met)
{
	struct learner *e = learner_of(l, job);
	char stranger[STRANGERS_TEXT] = "";
	struct binding b;
	bool bound = job->row.model && !strcmp(job->row.model, e->model_name) &&
		     !binding_of_row(l->d->setup, &job->row, &b, NULL);

	if (bound)
		strangeness(e, &b.bound->values, b.n_epochs > 0, stranger, sizeof stranger);
	if (doubt_of(e, job, *stranger))
		l->doubted++;
	else
		observe(e, job, stranger, bound ? &b.bound->values : NULL, met, true);
	if (bound)
		binding_release(&b);
}

/* ---- beginning, changing, leaving ---- */

struct learner *learner_of(const struct learning *l, const struct job *job)
{
	return l->learner[job->bound ? job->slot : setup_slot_of(l->d->setup, job->row.type)];
}

const struct job_type *learner_type(const struct learner *e)
{
	return e->type ? config_type(e->l->d->setup->config, e->type) : NULL;
}

static void learner_free(struct learner *e)
{
	if (!e)
		return;
	learner_train_release(e);
	drift_free(e->drift);
	strangers_release(&e->strangers);
	free(e->type);
	free(e);
}

static int learner_new(struct learning *l, const struct setup *s, uint32_t slot, struct learner **out,
		       struct err *err)
{
	const char *type = s->slot[slot].type;
	struct learner *e = mem_calloc(1, sizeof *e);
	int rc = 0;

	if (e) {
		e->l = l;
		e->slot = slot;
		e->took_s = NAN;
		e->type = type ? mem_strdup(type) : NULL;
	}
	if (!e || (type && !e->type))
		rc = err_nomem(err, "learning");
	if (!rc)
		rc = learner_train_new(e, s, err);
	if (rc)
		learner_free(e);
	else
		*out = e;
	return rc;
}

struct learner **learner_find(const struct learning *l, const char *type)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct learner *e = l->learner[i];

		if (e && (type && e->type ? !strcmp(type, e->type) : type == e->type))
			return &l->learner[i];
	}
	return NULL;
}

static void learners_free(struct learner **e, size_t n)
{
	for (size_t i = 0; i < n; i++)
		learner_free(e[i]);
	free(e);
}

int learning_prepare(struct learning *l, const struct setup *fresh, struct err *err)
{
	struct learner **e = mem_calloc(fresh->n_slots, sizeof *e);
	int rc = e ? 0 : err_nomem(err, "learning");

	learners_free(l->fresh, l->n_fresh); /* of a reload that came to nothing */
	l->fresh = e;
	l->n_fresh = e ? fresh->n_slots : 0;
	for (uint32_t i = 0; i < l->n_fresh && !rc; i++) {
		if (!learner_find(l, fresh->slot[i].type))
			rc = learner_new(l, fresh, i, &e[i], err);
	}
	return rc;
}

/* Those there were stay what they are, with another number perhaps; those without a slot go. */
static void learners_install(struct learning *l)
{
	const struct setup *s = l->d->setup;

	for (uint32_t i = 0; i < l->n_fresh; i++) {
		struct learner **was = l->fresh[i] ? NULL : learner_find(l, s->slot[i].type);

		if (!was)
			continue;
		l->fresh[i] = *was;
		l->fresh[i]->slot = i;
		*was = NULL;
	}
	learners_free(l->learner, l->n);
	l->learner = l->fresh;
	l->n = l->n_fresh;
	l->fresh = NULL;
	l->n_fresh = 0;
}

int learning_new(struct daemon *d, struct learning **out, struct err *err)
{
	struct learning *l = mem_calloc(1, sizeof *l);
	int rc;

	if (!l)
		return err_nomem(err, "learning");
	l->d = d;
	l->oom_kills = machine_oom_kills();
	rc = learning_prepare(l, d->setup, err);
	if (rc) {
		learning_free(l);
		return rc;
	}
	learners_install(l);
	learning_use_versions(l);
	for (size_t i = 0; i < l->n; i++)
		begin_anew(l->learner[i]);
	learning_teach_mixed(l);
	*out = l;
	return 0;
}

void learning_model_changed(struct learning *l)
{
	learners_install(l);
	for (size_t i = 0; i < l->n; i++) {
		struct learner *e = l->learner[i];

		/* The same model again: what was learned of it holds. */
		if (strcmp(e->model_name, learner_slot(e)->name))
			begin_anew(e);
		learner_train_changed(e);
	}
	learning_teach_mixed(l);
}

void learning_free(struct learning *l)
{
	if (!l)
		return;
	learners_free(l->learner, l->n);
	learners_free(l->fresh, l->n_fresh);
	first_release(&l->first);
	failing_release(&l->failing);
	if (l->d->learning == l)
		l->d->learning = NULL;
	free(l);
}
