/* The scheduler after a restart, and with another model, policy or machine. */
#include <math.h>

#include "scheduler/core/sched_internal.h"

/* Fills in what is not known of a job's work. */
static void complete(struct sched *s, struct live *j)
{
	size_t n;
	const double *batch = live_batches(s, &j->r, &n);

	if (!(j->taken.decision > 0.0) && n) /* none was handed over */
		j->taken = (struct candidate){ .decision = batch[0], .work_s = NAN };
	if (!(j->taken.work_s > 0.0)) {
		j->taken.work_s = NAN;
		live_take(j, &j->taken);
		live_measure(s, j);
	}
}

int sched_restore(struct sched *s, const struct sched_restored *r, struct err *err)
{
	uint32_t place;
	struct live *j;
	int rc = sched_check_request(s, &r->request, err);

	if (rc)
		return rc;
	if (s->last_ns != INT64_MIN)
		return err_fail(err, ERR_ARG, "jobs are restored before the first event");
	if (!r->request.id || job_index_find(&s->index, r->request.id) != JOB_INDEX_NONE)
		return err_fail(err, ERR_ARG, "job id %llu is %s", (unsigned long long)r->request.id,
				r->request.id ? "restored twice" : "no id");
	if (!s->n_spare)
		return err_fail(err, ERR_BUSY, "%zu jobs are restored, and no more may be", s->max_jobs);
	place = live_add(s, &r->request, r->submitted_ns);
	j = &s->live[place];
	j->promised = r->promised;
	j->running = r->running;
	j->started_ns = r->started_ns;
	live_take(j, &r->taken);
	complete(s, j);
	if (!r->running) {
		live_enqueue(s, place);
		return 0;
	}
	live_insert_running(s, place);
	s->slots_used += j->r.cpus;
	s->unsettled = true;
	return 0;
}

static int check_change(struct sched *s, const struct sched_params *p,
			const struct job_values *(*values_of)(void *owner, uint64_t id), void *owner,
			struct err *err)
{
	const struct live_list *list[] = { &s->running, &s->queue };
	int rc = sched_check_params(p, err);

	for (int k = 0; k < 2 && !rc; k++) {
		for (uint32_t i = list[k]->first; i != NOBODY && !rc; i = s->live[i].next) {
			const struct live *j = &s->live[i];

			if (p->model && (!values_of || !values_of(owner, j->r.id)))
				rc = err_fail(err, ERR_ARG, "job %llu has no values for the new model",
					      (unsigned long long)j->r.id);
			else if (!p->model && !j->r.batch)
				rc = err_fail(err, ERR_ARG,
					      "job %llu leaves its batches to the model, and there is none",
					      (unsigned long long)j->r.id);
		}
	}
	return rc;
}

int sched_use(struct sched *s, int64_t now_ns, const struct sched_params *p,
	      const struct job_values *(*values_of)(void *owner, uint64_t id), void *owner, struct err *err)
{
	const struct live_list *list[] = { &s->running, &s->queue };
	int rc = check_change(s, p, values_of, owner, err);

	if (rc)
		return rc;
	live_settle(s, live_clock(s, now_ns));
	sched_set(s, p);
	s->queue_slot_ns = 0;
	s->queue_cpus = 0;
	for (int k = 0; k < 2; k++) {
		for (uint32_t i = list[k]->first; i != NOBODY; i = s->live[i].next) {
			struct live *j = &s->live[i];

			j->r.values = p->model ? values_of(owner, j->r.id) : NULL;
			complete(s, j);
			if (j->running)
				continue;
			live_weigh(s, j);
			s->queue_slot_ns += j->slot_ns;
			s->queue_cpus += j->slot_cpus;
		}
	}
	live_set_speeds(s);
	return 0;
}
