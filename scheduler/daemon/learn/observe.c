/* What a job that ended teaches at once: bounds, drift, and which kinds of jobs are known. See learning.h. */
#include "scheduler/daemon/learn/learning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "scheduler/core/learn/adapt.h"
#include "scheduler/core/outcome.h"
#include "scheduler/daemon/binding.h"
#include "scheduler/daemon/learn/knowledge.h"
#include "scheduler/daemon/learn/learning_internal.h"

/* ---- how many promises were kept ---- */

static struct kept_level *level_of(struct learning *l, double confidence)
{
	int percent = (int)lround(100.0 * confidence);

	for (size_t i = 0; i < l->n_levels; i++) {
		if (l->level[i].percent == percent)
			return &l->level[i];
	}
	if (l->n_levels == LEARNING_LEVELS)
		return NULL;
	l->level[l->n_levels] = (struct kept_level){ .percent = percent };
	return &l->level[l->n_levels++];
}

static void count_kept(struct learning *l, const struct job_record *row, double run_s)
{
	struct kept_level *level;
	bool kept;

	if (!outcome_bounded(run_s, row->run_upper_s, &kept) ||
	    !(row->confidence > 0.0 && row->confidence < 1.0) || !(level = level_of(l, row->confidence)))
		return;
	level->recent[level->n++ % LEARNING_RECENT] = kept;
	level->kept += kept;
}

/* ---- kinds of jobs: those the model knows, and strangers by what is strange about them ---- */

static struct kind *kind_find(struct learning *l, int type, const char *stranger)
{
	for (size_t i = 0; i < l->n_kinds; i++) {
		if (l->kind[i].type == type && !strcmp(l->kind[i].stranger, stranger))
			return &l->kind[i];
	}
	return NULL;
}

static void kind_count(struct learning *l, int type, const char *stranger)
{
	struct kind *k = kind_find(l, type, stranger);

	if (!k && (l->n_kinds == LEARNING_KINDS ||
		   mem_grow((void **)&l->kind, &l->kinds_cap, l->n_kinds + 1, sizeof *l->kind)))
		return;
	if (!k) {
		k = &l->kind[l->n_kinds++];
		*k = (struct kind){ .type = type };
		snprintf(k->stranger, sizeof k->stranger, "%s", stranger);
	}
	k->n++;
}

/* How many of a stranger's kind ended, and of others of its type: what adapts does so by type. */
static void kind_ended(const struct learning *l, int type, const char *stranger, size_t *out_alike,
		       size_t *out_others)
{
	*out_alike = *out_others = 0;
	for (size_t i = 0; i < l->n_kinds; i++) {
		if (l->kind[i].type == type)
			*(strcmp(l->kind[i].stranger, stranger) ? out_others : out_alike) += l->kind[i].n;
	}
}

bool learning_knows(struct learning *l, const struct job_values *v, bool epochs_open, const char *type,
		    char *why, size_t size)
{
	const struct setup *s = l->d->setup;
	char stranger[sizeof l->kind->stranger];
	size_t after = s->config->learning.promise_after, alike, others;

	if (size)
		why[0] = '\0';
	if (!s->model || !v->number || model_knows(s->model, v, epochs_open, stranger, sizeof stranger))
		return true;
	kind_ended(l, names_number(&l->d->jobs.names, type), stranger, &alike, &others);
	/* Without adaptation, or among other jobs of the type, what such jobs took does not reach their
	 * bounds. */
	if (s->config->learning.adapt && !others && alike >= after)
		return true;
	if (!s->config->learning.adapt || others)
		snprintf(why, size, "%s: it runs without a promise until a model is trained on such jobs",
			 stranger);
	else
		snprintf(why, size,
			 "%s: it runs without a promise, as %zu such jobs have ended and %zu are needed",
			 stranger, alike, after);
	return false;
}

/* ---- drift ---- */

/* How the model errs on jobs it has not seen: its own residuals, or the first jobs it meets. unit: what a
 * score of 1 is in log time. */
static void drift_begin(struct learning *l, const double *score, size_t n, double unit)
{
	struct drift_params p = { 0 };
	struct err err = { 0 };

	int rc = drift_reference_of(score, n, &p.reference, &err);

	p.reference.centre *= unit;
	p.reference.spread *= unit;
	if (rc || drift_new(&p, &l->drift, &err))
		log_warn("no alarm when the machine changes: %s", err.text);
}

void learning_begin_anew(struct learning *l)
{
	const struct setup *s = l->d->setup;
	const struct conformal *c = s->model ? &s->model->time.conformal : NULL;

	snprintf(l->model_name, sizeof l->model_name, "%s", s->model_name);
	l->n_kinds = l->n_first = 0;
	drift_free(l->drift);
	l->drift = NULL;
	if (c && c->log && c->n >= 8)
		drift_begin(l, c->score, c->n, spread_typical(s->model->time.spread));
}

static void log_alarm(const struct learning *l, int type, const char *of)
{
	struct drift_evidence e;

	if (!drift_evidence(l->drift, type, &e) || !e.alarm)
		return;
	log_warn("drift: %s take %.0f %% %s than the model says, for %llu of %llu jobs (statistic %.1f, "
		 "threshold %.1f); "
		 "bounds follow%s",
		 of, fabs(e.shift_percent), e.shift_percent > 0.0 ? "longer" : "less",
		 (unsigned long long)e.since, (unsigned long long)e.jobs, e.statistic, e.threshold,
		 l->d->setup->config->learning.adapt ? "" : " after a training only");
}

static bool alarm_of(const struct learning *l, int type)
{
	struct drift_evidence e;

	return drift_evidence(l->drift, type, &e) && e.alarm;
}

/* An alarm ends by itself when nothing is left of what raised it. */
static void end_alarm(struct learning *l, int type)
{
	struct drift_evidence e;

	if (drift_evidence(l->drift, type, &e) && e.alarm && e.statistic <= 0.0)
		drift_acknowledge(l->drift, type);
}

static void watch_drift(struct learning *l, int type, const char *name, double model_s, double run_s,
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
	end_alarm(l, type);
	end_alarm(l, DRIFT_POOLED);
	type_before = alarm_of(l, type);
	all_before = alarm_of(l, DRIFT_POOLED);
	if (!drift_observe(l->drift, type, model_s, run_s) || quiet)
		return;
	snprintf(of, sizeof of, "jobs of type %s", name);
	if (!type_before)
		log_alarm(l, type, of);
	if (!all_before)
		log_alarm(l, DRIFT_POOLED, "all jobs together");
	l->alarms++;
	watch_tell(l->d, "drift", NULL);
}

/* ---- ended jobs ---- */

bool learning_is_observation(const struct job_record *row)
{
	return row->state == JOB_DONE && row->started_ns && row->ended_ns > row->started_ns;
}

static struct sched_observation seen_of(const struct job *job, bool stranger)
{
	const struct job_record *r = &job->row;

	return (struct sched_observation){
		.type = job->type_number,
		.user = r->uid,
		.stranger = stranger,
		.confidence = r->confidence,
		.model_s = r->model_s,
		.guard_s = isnan(r->guard_s) ? r->run_upper_s : r->guard_s,
		.upper_s = r->run_upper_s,
		.foreseen_s = r->foreseen_s,
		.actual_s = (double)(r->ended_ns - r->started_ns) / 1e9,
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
static const char *doubt_of(const struct learning *l, const struct job *job, bool stranger)
{
	const struct job_record *r = &job->row;
	struct sched_observation seen = seen_of(job, stranger);

	if (!r->model || strcmp(r->model, l->model_name))
		seen.model_s = NAN;
	if (!sched_plausible(l->d->sched, &seen))
		return "time";
	return accuracy_plausible(l->d->setup->model, r) ? NULL : "accuracy";
}

static void observe(struct learning *l, const struct job *job, const char *stranger, bool quiet)
{
	const struct job_record *r = &job->row;
	double run_s = (double)(r->ended_ns - r->started_ns) / 1e9;
	struct sched_observation seen = seen_of(job, *stranger);

	/* Stopped early: it did not do what was predicted. */
	if (!isnan(r->stopped_epoch))
		return;
	count_kept(l, r, run_s);
	/* Decided by another model: it says nothing of this one. */
	if (!r->model || strcmp(r->model, l->model_name) || !(r->model_s > 0.0 && isfinite(r->model_s)))
		return;
	sched_observe(l->d->sched, &seen);
	kind_count(l, job->type_number, stranger);
	if (!*stranger) /* an error of the model on jobs it does not know says nothing about the machine */
		watch_drift(l, job->type_number, r->type, r->model_s,
			    r->foreseen_s > 0.0 ? r->foreseen_s : run_s, quiet);
}

static void strangeness(const struct learning *l, const struct job_values *v, bool epochs_open, char *out,
			size_t size)
{
	out[0] = '\0';
	if (l->d->setup->model && v->number)
		model_knows(l->d->setup->model, v, epochs_open, out, size);
}

const char *learning_doubt(const struct learning *l, const struct job *job)
{
	char stranger[sizeof l->kind->stranger];

	strangeness(l, &job->values, job->n_epoch_choices > 0, stranger, sizeof stranger);
	return doubt_of(l, job, *stranger);
}

void learning_ended(struct learning *l, const struct job *job)
{
	char stranger[sizeof l->kind->stranger];
	const char *doubt;

	if (!learning_is_observation(&job->row))
		return;
	strangeness(l, &job->values, job->n_epoch_choices > 0, stranger, sizeof stranger);
	doubt = doubt_of(l, job, *stranger);
	if (doubt) {
		l->doubted++;
		log_warn("job %llu of uid %u: its %s is not plausible, so nothing is learnt from it",
			 (unsigned long long)job->id, (unsigned)job->row.uid, doubt);
		return;
	}
	observe(l, job, stranger, false);
	learning_probe_ended(l, job);
	learning_train_due(l);
}

static int by_end(const void *a_, const void *b_)
{
	const struct job *a = *(struct job *const *)a_, *b = *(struct job *const *)b_;

	if (a->row.ended_ns != b->row.ended_ns)
		return a->row.ended_ns < b->row.ended_ns ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

/* A job read back from the store is bound to nothing; only strangers need it, and who is one the model
 * says. */
static void observe_again(struct learning *l, const struct job *job)
{
	char stranger[sizeof l->kind->stranger] = "";
	struct binding b;

	if (job->row.model && !strcmp(job->row.model, l->model_name) &&
	    !binding_of_row(l->d->setup, &job->row, &b, NULL)) {
		strangeness(l, &b.values, b.n_epochs > 0, stranger, sizeof stranger);
		binding_release(&b);
	}
	if (doubt_of(l, job, *stranger))
		l->doubted++;
	else
		observe(l, job, stranger, true);
}

void learning_restore(struct learning *l)
{
	const struct job_list *ended = &l->d->jobs.ended;
	struct job **job = mem_array(ended->n ? ended->n : 1, sizeof *job);
	size_t n = 0;

	learning_train_restore(l);
	if (!job) {
		log_warn("out of memory: bounds begin anew");
		return;
	}
	for (struct job *j = ended->first; j; j = j->after) {
		if (learning_is_observation(&j->row))
			job[n++] = j;
	}
	qsort(job, n, sizeof *job, by_end);
	for (size_t i = 0; i < n; i++)
		observe_again(l, job[i]);
	free(job);
}

/* ---- beginning, changing, leaving ---- */

int learning_new(struct daemon *d, struct learning **out, struct err *err)
{
	struct learning *l = mem_calloc(1, sizeof *l);
	int rc;

	if (!l)
		return err_nomem(err, "learning");
	l->d = d;
	l->took_s = NAN;
	rc = learning_train_new(l, err);
	if (rc) {
		learning_free(l);
		return rc;
	}
	learning_begin_anew(l);
	*out = l;
	return 0;
}

void learning_model_changed(struct learning *l)
{
	/* The same model again: what was learned of it holds. */
	if (strcmp(l->model_name, l->d->setup->model_name))
		learning_begin_anew(l);
	learning_train_changed(l);
}

void learning_free(struct learning *l)
{
	if (!l)
		return;
	learning_train_release(l);
	drift_free(l->drift);
	free(l->kind);
	free(l->probe);
	if (l->d->learning == l)
		l->d->learning = NULL;
	free(l);
}

/* ---- stats ---- */

static void put_kept(const struct learning *l, struct json_writer *w)
{
	json_kv_open(w, "kept", '[');
	for (size_t i = 0; i < l->n_levels; i++) {
		const struct kept_level *v = &l->level[i];
		size_t recent = v->n < LEARNING_RECENT ? (size_t)v->n : LEARNING_RECENT, kept = 0;

		for (size_t k = 0; k < recent; k++)
			kept += v->recent[k];
		json_open(w, '{');
		json_kv_number(w, "confidence", v->percent / 100.0);
		json_kv_int(w, "n", (long long)v->n);
		json_kv_int(w, "kept", (long long)v->kept);
		json_kv_fixed(w, "share", (double)v->kept / (double)v->n, 6);
		json_kv_fixed(w, "recent_share", (double)kept / (double)recent, 6);
		json_close(w, '}');
	}
	json_close(w, ']');
}

static void put_evidence(const struct learning *l, int type, struct json_writer *w)
{
	struct drift_evidence e;

	json_put_key(w, "drift");
	if (!l->drift || !drift_evidence(l->drift, type, &e)) {
		json_put_null(w);
		return;
	}
	json_open(w, '{');
	json_kv_bool(w, "alarm", e.alarm);
	json_kv_bool(w, "slower", e.slower);
	json_kv_int(w, "jobs", (long long)e.jobs);
	json_kv_int(w, "since", (long long)e.since);
	json_kv_fixed(w, "shift_percent", e.shift_percent, 3);
	json_kv_fixed(w, "statistic", e.statistic, 3);
	json_kv_fixed(w, "threshold", e.threshold, 3);
	json_close(w, '}');
}

static void put_types(const struct learning *l, struct json_writer *w)
{
	const struct config *c = l->d->setup->config;
	const struct adapt *a = sched_adapt(l->d->sched);

	json_kv_open(w, "types", '[');
	for (size_t i = 0; i < c->n_types; i++) {
		int type = names_number(&l->d->jobs.names, c->type[i].name);
		size_t known, strangers;

		kind_ended(l, type, "", &known, &strangers);
		if (known + strangers == 0)
			continue;
		json_open(w, '{');
		json_kv_string(w, "type", c->type[i].name);
		json_kv_int(w, "observed", (long long)(known + strangers));
		json_kv_int(w, "strangers", (long long)strangers);
		json_kv_fixed(w, "bias", a ? adapt_bias_shown(a, type) : 1.0, 6);
		put_evidence(l, type, w);
		json_close(w, '}');
	}
	json_close(w, ']');
}

void learning_json(struct learning *l, struct json_writer *w, bool sums)
{
	const struct config_learning *c = &l->d->setup->config->learning;

	json_kv_open(w, "learning", '{');
	json_kv_bool(w, "adapt", sched_adapt(l->d->sched) != NULL);
	put_kept(l, w);
	put_evidence(l, DRIFT_POOLED, w);
	json_kv_int(w, "alarms", (long long)l->alarms);
	json_kv_int(w, "implausible", (long long)l->doubted);
	if (!sums)
		put_types(l, w);
	json_kv_int(w, "probes", (long long)l->probes);
	json_kv_int(w, "since_training", (long long)l->since_training);
	json_kv_int(w, "retrain_after", (long long)c->retrain_after);
	json_kv_string(w, "last", !sums && l->outcome[0] ? l->outcome : NULL);
	json_kv_fixed(w, "last_took_s", l->took_s, 3);
	json_kv_int(w, "current", l->in_use);
	json_kv_bool(w, "training", learning_train_busy(l));
	json_close(w, '}');
}

void learning_now(struct learning *l, struct learning_now *out)
{
	*out = (struct learning_now){
		.version = l->in_use,
		.training = learning_train_busy(l),
		.alarms = l->alarms,
		.probes = l->probes,
		.since_training = l->since_training,
	};
	out->has_drift = l->drift && drift_evidence(l->drift, DRIFT_POOLED, &out->drift);
}
