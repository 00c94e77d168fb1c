/* The work of other programs in a decision: it counts once. A model whose table has a column of it gets what
 * is measured now, and its njobs and processes are those of our own jobs. For any other model it is more jobs
 * and processes, which makes the time longer. But the table was measured beside other work, too, and it is
 * not known how much. So this load does not count as a level outside the table, which would also widen the
 * bound. */
#include <math.h>

#include "scheduler/core/decide_internal.h"

static int feature_of(const struct features *f, int source)
{
	for (size_t i = 0; i < f->n && source >= 0; i++)
		if (f->feature[i].source == (size_t)source)
			return (int)i;
	return -1;
}

void decide_other_init(struct decide_rows *r)
{
	const struct features *f = r->p->model->features;
	int source = f->other >= 0 ? (int)f->feature[f->other].source : -1;

	r->other_load = r->p->scene ? r->p->scene->other_load : 0.0;
	r->load_feature[0] = feature_of(f, r->njobs);
	r->load_feature[1] = feature_of(f, r->processes);
	r->other = source;
	/* A simulation gives a job the work of others that its table was measured beside. */
	r->other_given = source >= 0 && !isnan(r->number[source]);
}

void decide_other_load(struct decide_rows *r, const struct decide_load *load)
{
	double apart = r->other >= 0 ? r->other_load : 0.0;

	if (r->njobs >= 0)
		r->number[r->njobs] = load->njobs - apart;
	if (r->processes >= 0) /* a derived one too: what is given is not derived */
		r->number[r->processes] = load->processes - apart;
	if (r->other >= 0 && !r->other_given)
		r->number[r->other] = r->other_load;
}

void decide_other_settle(const struct decide_rows *r, double *x)
{
	if (r->other >= 0 || !(r->other_load > 0.0))
		return;
	for (int i = 0; i < 2; i++) {
		int at = r->load_feature[i];
		double max = at >= 0 ? r->p->model->features->feature[at].max : NAN;

		if (at >= 0 && x[at] > max)
			x[at] = fmax(max, x[at] - r->other_load);
	}
}

/* The chosen one, or the one that could be promised soonest. */
static const struct candidate *shown(const struct decide_params *p, const struct decision *d)
{
	const struct candidate *best = d->chosen >= 0 ? &d->candidate[d->chosen] : NULL;

	for (size_t i = 0; i < d->n_candidates && d->chosen < 0; i++) {
		const struct candidate *c = &d->candidate[i];

		if (!isnan(c->time_s) && (!best || decide_needed_s(p, c) < decide_needed_s(p, best)))
			best = c;
	}
	return best;
}

void decide_other_weigh(struct decide_rows *r, struct decision *d)
{
	const struct decide_scene *s = r->p->scene;
	const struct candidate *from = shown(r->p, d);
	struct decide_load load = { .njobs = 1.0 + (double)s->n_running, .processes = s->cpus };
	double other = r->other_load, with_s, without_s;

	if (!from)
		return;
	for (size_t i = 0; i < s->n_running; i++)
		load.processes += s->running[i].cpus;
	r->other_load = 0.0;
	without_s = decide_predict_time(r, &load, from);
	r->other_load = other;
	load.njobs += other;
	load.processes += other;
	/* on an idle machine this is the load that its time is for */
	with_s = s->n_running + s->n_queued ? decide_predict_time(r, &load, from) : from->model_s;
	if (without_s > 0.0 && isfinite(with_s))
		d->other_factor = with_s / without_s;
}
