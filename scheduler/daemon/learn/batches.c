/* What ended jobs leave for the admission of others: which batches they took, how long they took, and which
 * batches they failed with. See learning.h and core/admit/admit.h. */
#include <signal.h>

#include "common/text/hash.h"
#include "scheduler/daemon/learn/learning_internal.h"
#include "scheduler/process/machine.h"

struct admit_memory learning_memory(const struct learning *l, const struct job *job)
{
	const struct setup *s = l->d->setup;
	const struct learner *e = learner_of(l, job);
	const struct job_type *type = learner_type(e);

	return (struct admit_memory){
		.strangers = &e->strangers,
		.first = &l->first,
		.failing = &l->failing,
		.predicts = s->policy.policy->predictor,
		.adapt = s->config->learning.adapt,
		.promise_after = s->config->learning.promise_after,
		.training = learner_train_busy(e),
		.young = learner_is_young(e),
		.first_after = type ? type->first_after : 0,
		.ended = e->since_training,
	};
}

uint64_t learning_command(const struct learning *l, const struct job *job)
{
	const struct job_type *t = config_type(l->d->setup->config, job->row.type);

	return t ? hash_words(HASH_START, t->argv, t->n_argv) : HASH_START;
}

static struct failing_who who_of(const struct learning *l, const struct job *job)
{
	return (struct failing_who){ job->type_number, job->row.uid, learning_command(l, job) };
}

bool learning_fails(const struct learning *l, const struct job *job, double batch)
{
	return l->failing.n && failing_has(&l->failing, who_of(l, job), batch, daemon_now_ns(l->d));
}

/* The kernel ends what takes its last memory by a signal as anybody could send, and counts that. */
static bool killed_for_memory(struct learning *l, const struct exec_outcome *o)
{
	uint64_t before = l->oom_kills;

	if (o->exit_signal != SIGKILL)
		return false;
	l->oom_kills = machine_oom_kills();
	return l->oom_kills > before;
}

void learning_run_failed(struct learning *l, const struct job *job, const struct exec_outcome *o,
			 int64_t now_ns)
{
	bool ran = o->exit_code >= 0 || o->exit_signal || o->timed_out, oom = killed_for_memory(l, o);

	if (failing_counts(ran, o->timed_out ? 0 : o->exit_signal, oom, o->reason))
		failing_add(&l->failing, who_of(l, job), job->row.batch, oom ? "out of memory" : o->reason,
			    now_ns);
}

void learning_first_taken(struct learning *l, const struct job *job)
{
	const struct learner *e = learner_of(l, job);

	if (!learner_slot(e)->model || learner_is_young(e))
		first_taken(&l->first, job->type_number, job->row.batch);
}

void learning_first_ended(struct learning *l, const struct job *job)
{
	const struct job_record *r = &job->row;

	if (r->state == JOB_DONE)
		failing_ended_well(&l->failing, who_of(l, job), r->batch, r->ended_ns);
	if (r->state == JOB_FAILED) {
		first_failed(&l->first, job->type_number, r->batch);
	} else if (learning_is_observation(r)) {
		first_took(&l->first, job->type_number, r->batch,
			   (double)(r->ended_ns - r->started_ns) / 1e9);
	} else if (r->state == JOB_CANCELLED) {
		first_cancelled(&l->first, job->type_number, r->batch);
	}
}

/* It ended before the daemon started. */
static void failed_before(struct learning *l, const struct job *job)
{
	const struct job_record *r = &job->row;

	if (failing_counts(r->started_ns, r->exit_signal, false, r->reason))
		failing_add(&l->failing, who_of(l, job), r->batch, r->reason, r->ended_ns);
}

void learning_first_restore(struct learning *l)
{
	const struct job_list *list[] = { &l->d->jobs.ended, &l->d->jobs.live };

	first_release(&l->first);
	failing_release(&l->failing);
	for (size_t i = 0; i < 2; i++) {
		for (const struct job *j = list[i]->first; j; j = j->after) {
			if (j->row.state == JOB_REJECTED)
				continue;
			learning_first_taken(l, j);
			learning_first_ended(l, j);
			if (j->row.state == JOB_FAILED)
				failed_before(l, j);
		}
	}
}
