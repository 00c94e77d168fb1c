/* What jobs that ended before the daemon started teach it again: their starts and ends are played in the
 * order of time, so that what each of them ran beside is known as it was. See learning.h. */
#include <stdlib.h>

#include "common/log.h"
#include "common/mem.h"
#include "scheduler/daemon/binding.h"
#include "scheduler/daemon/learn/learning_internal.h"

struct moment {
	int64_t at_ns;
	const struct job *job;
	bool start;
};

/* Ends come before starts, as the end of one job is what lets the next one start. */
static int by_time(const void *a_, const void *b_)
{
	const struct moment *a = a_, *b = b_;

	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns ? -1 : 1;
	if (a->start != b->start)
		return a->start - b->start;
	return (a->job->id > b->job->id) - (a->job->id < b->job->id);
}

static size_t add_moments(const struct job *job, struct moment *out)
{
	size_t n = 0;

	if (!job->row.started_ns)
		return 0;
	if (job_state_live(job->row.state) || job->row.ended_ns > job->row.started_ns)
		out[n++] = (struct moment){ job->row.started_ns, job, true };
	if (n && !job_state_live(job->row.state))
		out[n++] = (struct moment){ job->row.ended_ns, job, false };
	return n;
}

static int start(struct learning *l, const struct moment *m, struct sched_past *past, struct err *err)
{
	struct sched_request r = { .id = m->job->id,
				   .cpus = m->job->row.cpus,
				   .type = m->job->type_number,
				   .user = m->job->row.uid };
	struct binding b;
	bool known = !binding_of_row(l->d->setup, &m->job->row, &b, NULL);
	int rc;

	if (known) {
		r.model = b.slot;
		r.values = &b.bound->values;
	}
	rc = sched_past_start(past, m->at_ns, &r, err);
	if (known)
		binding_release(&b);
	return rc;
}

static int play(struct learning *l, const struct moment *moment, size_t n, struct err *err)
{
	struct sched_past *past = NULL;
	struct pairs_met met;
	int rc = sched_past_new(l->d->sched, &past, err);

	for (size_t i = 0; i < n && !rc; i++) {
		const struct moment *m = &moment[i];

		if (m->start) {
			rc = start(l, m, past, err);
			continue;
		}
		sched_past_end(past, m->at_ns, m->job->id, &met);
		if (learning_is_observation(&m->job->row))
			learning_observe_again(l, m->job, &met);
	}
	sched_past_free(past);
	return rc;
}

void learning_restore(struct learning *l)
{
	const struct jobs *jobs = &l->d->jobs;
	size_t n = 0;
	struct moment *moment = mem_array(2 * (jobs->ended.n + jobs->live.n) + 1, sizeof *moment);
	struct err err = { 0 };

	for (size_t i = 0; i < l->n; i++)
		learner_train_restore(l->learner[i]);
	learning_first_restore(l);
	for (const struct job *j = jobs->ended.first; j && moment; j = j->after)
		n += add_moments(j, moment + n);
	for (const struct job *j = jobs->live.first; j && moment; j = j->after)
		n += add_moments(j, moment + n);
	if (moment)
		qsort(moment, n, sizeof *moment, by_time);
	if (!moment || play(l, moment, n, &err))
		log_warn("out of memory: bounds start again");
	free(moment);
}
