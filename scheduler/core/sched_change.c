/* The scheduler after a restart, and with another model, policy or machine. */
#include <math.h>

#include "scheduler/core/sched_internal.h"

/* Fills in what is not known of a job's work. */
static void complete(struct sched *s, struct live *j, bool running)
{
	uint32_t held = j->taken.devices;
	size_t n;
	const double *batch = live_batches(s, &j->r, &n);

	if (!(j->taken.decision > 0.0) && n) /* none was handed over */
		j->taken = (struct candidate){ .decision = batch[0], .work_s = NAN };
	if (!j->r.epochs)
		j->taken.epochs = NAN;
	else if (!(j->taken.epochs > 0.0))
		j->taken.epochs = j->r.epochs[0];
	if (!(j->taken.work_s > 0.0)) {
		j->taken.work_s = NAN;
		live_take(s, j, &j->taken);
		live_measure(s, j);
	}
	/* what runs holds what it holds */
	j->taken.devices = running ? held : device_need_count(&j->r.device, j->taken.decision);
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
				r->request.id ? "restored twice" : "not an id");
	if (!s->n_spare)
		return err_fail(err, ERR_BUSY, "%zu jobs are restored, and no more may be", s->max_jobs);
	place = live_add(s, &r->request, r->submitted_ns);
	j = &s->live[place];
	j->promised = r->promised;
	s->n_promised += r->promised && !r->request.apart;
	j->by_chance = r->by_chance;
	s->n_by_chance += r->by_chance;
	j->started_ns = r->started_ns;
	live_take(s, j, &r->taken);
	complete(s, j, r->running);
	if (!r->running) {
		place_restored(s, place);
		return 0;
	}
	live_measure_start(s, j);
	live_run(s, place);
	s->unsettled = true;
	return 0;
}

/* The next live job from place `i` on; live_end: there is none. */
static size_t next_live(const struct sched *s, size_t i)
{
	while (i < s->live_end && !s->live[i].r.id)
		i++;
	return i;
}

static int check_change(struct sched *s, const struct sched_params *p, sched_values_fn *values_of,
			void *owner, struct err *err)
{
	int rc = sched_check_params(p, err);

	for (size_t i = next_live(s, 0); i < s->live_end && !rc; i = next_live(s, i + 1)) {
		struct live *j = &s->live[i];
		unsigned long long id = j->r.id;
		uint32_t number = 0;
		const struct job_values *v;
		const struct model *m;

		v = values_of ? values_of(owner, j->r.id, &number) : NULL;
		m = number == 0 ? p->model : number <= p->n_own_models ? p->own_model[number - 1] : NULL;
		j->next_values = v;
		j->next_model = number;
		if (number > p->n_own_models)
			rc = err_fail(err, ERR_ARG, "job %llu is of model %u, and there are %zu", id, number,
				      p->n_own_models + 1);
		else if (m && !v)
			rc = err_fail(err, ERR_ARG, "job %llu has no values for the new model", id);
		else if (!m && !j->r.batch)
			rc = err_fail(err, ERR_ARG,
				      "job %llu leaves its batches to the model, and there is none", id);
		else if (m && j->r.epochs && schema_role(m->schema, ROLE_EPOCHS) < 0)
			rc = err_fail(err, ERR_ARG,
				      "job %llu has open epochs, and the new model has no column of them",
				      id);
	}
	return rc;
}

int sched_use(struct sched *s, int64_t now_ns, const struct sched_params *p, sched_values_fn *values_of,
	      void *owner, struct err *err)
{
	int rc = check_change(s, p, values_of, owner, err);
	struct fluid_machine was;
	bool same, unknown;
	uint32_t devices;

	if (!rc && (s->beside || s->n_beside))
		rc = err_fail(err, ERR_ARG, "another scheduler shares what this one has learnt");
	if (rc)
		return rc;
	/* Before anything has happened it is no event: jobs may still be restored. */
	if (s->last_ns != INT64_MIN || next_live(s, 0) < s->live_end) {
		now_ns = live_clock(s, now_ns);
		live_settle(s, now_ns);
		tenants_settle(s, now_ns);
	}
	rc = learn_use(s, p, err);
	if (rc)
		return rc;
	was = s->fluid;
	sched_set(s, p);
	same = was.cores == s->fluid.cores && was.disk_saturation == s->fluid.disk_saturation &&
	       was.slots == s->fluid.slots && was.devices == s->fluid.devices;
	for (size_t i = next_live(s, 0); i < s->live_end; i = next_live(s, i + 1)) {
		struct live *j = &s->live[i];

		j->r.model = j->next_model; /* asked for once: to find a job is what takes long here */
		j->r.values = j->next_values;
		if (!j->running)
			j->kind = s->kinds ? learn_kind(s, &j->r) : 0;
		unknown = isnan(j->total_s);
		devices = j->taken.devices;
		complete(s, j, j->running);
		/* Else it will take what it would have taken. */
		if (!j->running && !j->r.apart &&
		    (!same || unknown != isnan(j->total_s) || devices != j->taken.devices)) {
			live_weigh(s, j);
			live_reorder(s, (uint32_t)i);
		}
	}
	live_set_speeds(s);
	live_changed(s);
	return 0;
}
