/* See admission.h. */
#include "scheduler/daemon/admission.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "scheduler/core/admit/admit.h"
#include "scheduler/daemon/binding.h"
#include "scheduler/daemon/ops/decision_json.h"
#include "scheduler/daemon/retention.h"

/* The batches and epochs of the job become those of the terms. */
static int keep_terms(struct job *job, const struct admit_terms *t, struct err *err)
{
	job->guess_s = t->guess_s;
	if (t->n_batches) {
		double *copy = mem_array(t->n_batches, sizeof *copy);

		if (!copy)
			return err_nomem(err, "the batches of a job");
		memcpy(copy, t->batch, t->n_batches * sizeof *copy);
		free(job->batch);
		job->batch = copy;
		job->n_batches = t->n_batches;
	}
	if (!isnan(t->epochs) && job->n_epoch_choices) {
		job->epoch_choice[0] = t->epochs;
		job->n_epoch_choices = 1;
	}
	return 0;
}

/* A run of it failed: it waits to be repeated. */
static bool is_repeated(const struct job *job)
{
	return job->row.attempt && job->row.verdict != VERDICT_WAITING;
}

/* Refused: fewer epochs, where the command is told how many. */
static void find_shorter(struct daemon *d, const struct job *job, int64_t now_ns,
			 const struct sched_request *q, struct admission *a)
{
	const struct model *m = d->setup->slot[job->slot].model;
	double epochs[DECIDE_MAX_CANDIDATES], below = q->n_epochs ? q->epochs[0] : job_epochs_given(job);
	size_t n_batches = q->n_batches ? q->n_batches : m ? m->n_candidates : 0, n;
	struct decision scratch;

	if (!m || !n_batches || !job->type || !(below > 1.0) || schema_role(m->schema, ROLE_EPOCHS) < 0)
		return;
	n = job_type_epochs(job->type, job_type_least_epochs(job->type), below - 1.0, epochs,
			    DECIDE_MAX_CANDIDATES / n_batches);
	a->shorter = admit_shorter(d->sched, now_ns, q, epochs, n, &scratch);
}

int admission_decide(struct daemon *d, struct job *job, int64_t now_ns, bool keep, struct admission *out,
		     struct err *err)
{
	double before = clock_monotonic_us();
	struct sched_request asked, q;
	struct admit_memory known = learning_memory(d->learning, job);
	struct admit_job j = {
		.request = &asked,
		.model = d->setup->slot[job->slot].model,
		.command = known.failing->n ? learning_command(d->learning, job) : 0,
		.named = job->row.batches,
		.again = is_repeated(job),
		.promised = job->row.verdict == VERDICT_PROMISED,
		.failed_batch = job->row.batch,
		.waited_s = (double)(now_ns - job->row.submitted_ns) / 1e9,
		.type_batch = job->type && !job->row.batches ? job->type->batch : NULL,
		.n_type_batches = job->type && !job->row.batches ? job->type->n_batches : 0,
	};
	struct admit_terms terms;
	int rc;

	binding_request(job, &asked);
	rc = admit_terms(d->sched, now_ns, &known, &j, &out->decision, &terms, err);
	if (!rc)
		rc = keep_terms(job, &terms, err);
	if (rc)
		return rc;
	binding_request(job, &asked); /* it borrows what the job has now */
	q = admit_request(&terms, &asked);
	q.batch = asked.batch;
	q.epochs = asked.epochs;
	rc = (keep ? sched_submit : sched_what_if)(d->sched, now_ns, &q, &out->decision, &out->verdict, err);
	out->shorter = alternative_none;
	if (!rc && out->verdict == SCHED_REJECTED && terms.promise && !isnan(q.slo_s))
		find_shorter(d, job, now_ns, &q, out);
	out->took_us = clock_monotonic_us() - before;
	memcpy(out->why, terms.why, sizeof out->why);
	if (!rc)
		daemon_decided(d, out->took_us);
	return rc;
}

void admission_json(const struct daemon *d, const struct job *job, int64_t now_ns, const struct admission *a,
		    struct json_writer *w)
{
	const struct model_slot *slot = &d->setup->slot[job->slot];
	struct decision_about about = {
		.at_ns = now_ns,
		.when = "arrival",
		.policy = d->setup->config->policy,
		.model = slot->name,
		.type = job->type,
		.epochs = job_epochs_given(job),
		.slo_s = job->row.slo_s,
		.took_us = a->took_us,
		.accuracy_error = decide_accuracy_noise(slot->model),
		.shorter = &a->shorter,
	};

	for (size_t i = 0; job->type && i < job->type->n_batches && !job->row.batches; i++)
		if (learning_fails(d->learning, job, job->type->batch[i]))
			about.failing[about.n_failing++] = job->type->batch[i];
	decision_json(w, &a->decision, &about);
}

int admission_submit(struct daemon *d, struct job *job, bool waits, int64_t now_ns, struct arrival *out,
		     struct err *err)
{
	struct life_event e = carry_event(d, LIFE_SUBMITTED, job);
	struct admission *a = &out->admission;
	struct json_writer w;
	int rc = waits ? 0 : admission_decide(d, job, now_ns, true, a, err);

	out->decided = !rc;
	out->text = (struct strbuf){ 0 };
	out->probe = NULL;
	if (rc)
		return rc;
	e.now_ns = now_ns;
	e.waits = waits;
	if (!waits) {
		if (a->why[0])
			job_set_reason(job, a->why);
		json_begin(&w, &out->text, false);
		admission_json(d, job, now_ns, a, &w);
		e.verdict = a->verdict;
		e.decision = &a->decision;
		e.text = strbuf_text(&out->text);
		out->probe = learning_probe_make(d->learning, job, now_ns);
	}
	rc = out->text.failed ? err_nomem(err, "a decision") : carry_out(d, &e, err);
	if (!rc) {
		d->next_id++;
		return 0;
	}
	sched_remove(d->sched, now_ns, job->id, NULL);
	job_free(out->probe);
	strbuf_release(&out->text);
	return rc;
}

void admission_done(struct daemon *d, const struct job *job, struct arrival *a)
{
	strbuf_release(&a->text);
	if (job->row.state == JOB_REJECTED) /* it has ended */
		retention_ended(d->retention);
	jobs_trim(&d->jobs, d->setup->config->max_finished);
}
