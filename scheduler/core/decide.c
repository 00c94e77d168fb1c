/* The decision: predict the candidates, judge each, take the best. What it costs the others, and what they
 * cost it, is lookahead.c. */
#include "scheduler/core/decide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/stats.h"
#include "predictors/models/reach.h"
#include "scheduler/core/decide_internal.h"

const char *decide_reason_text(enum decide_reason one)
{
	switch (one) {
	case REASON_SLO_EXCEEDED: return "slo_exceeded";
	case REASON_NO_BOUND: return "no_bound";
	case REASON_EXTRAPOLATED: return "extrapolated";
	case REASON_LOWER_ACCURACY: return "lower_accuracy";
	case REASON_SLOWER: return "slower";
	case REASON_UNSTABLE: return "unstable";
	case REASON_MEMORY: return "memory";
	case REASON_BREAKS_PROMISE: return "breaks_promise";
	case REASON_TOO_WIDE: return "too_wide";
	case REASON_NOT_PICKED: return "not_picked";
	case REASON_PRICE: return "price";
	case REASON_NOT_TRIED: return "not_tried";
	case REASON_BEYOND_MODEL: return "beyond_model";
	case REASON_DEVICES: return "devices";
	}
	return "unknown";
}

/* ---- the machine ---- */

double decide_stretch(const struct fluid_machine *m, const struct fluid_job *j, double processes)
{
	double own = j->cpus, rest = 1.0 - j->cpu_share - j->disk_share;
	double s = rest > 0.0 ? rest : 0.0;

	s += isinf(m->cores) ? j->cpu_share
			     : j->cpu_share * (fmax(m->cores, processes) / fmax(m->cores, own));
	s += isinf(m->disk_saturation)
		     ? j->disk_share
		     : j->disk_share * ((m->disk_saturation + processes) / (m->disk_saturation + own));
	return s;
}

struct fluid_machine decide_machine(const struct model *m, double cores, uint32_t slots)
{
	struct fluid_machine machine = { .cores = cores, .disk_saturation = INFINITY, .slots = slots };

	if (m && m->time.predictor.ops->machine)
		m->time.predictor.ops->machine(m->time.predictor.self, &machine.cores,
					       &machine.disk_saturation);
	return machine;
}

static double within(double v, double low, double high)
{
	return v >= low ? (v <= high ? v : high) : low; /* NaN: low */
}

struct fluid_job decide_fluid_job(const struct candidate *c, uint32_t cpus)
{
	double cpu = within(c->cpu_share, 0.0, 1.0);

	return (struct fluid_job){
		.work_s = within(c->work_s, 0.0, FLUID_MAX_WORK_S),
		.cpu_share = cpu,
		.disk_share = within(c->disk_share, 0.0, 1.0 - cpu),
		.cpus = cpus,
		.devices = c->devices,
	};
}

/* ---- devices ---- */

uint32_t device_need_count(const struct device_need *n, double batch)
{
	double wanted = n->records_each > 0.0 && batch > 0.0 ? ceil(batch / n->records_each) : 0.0;

	if (!(wanted > n->least))
		return n->least;
	return wanted < UINT32_MAX ? (uint32_t)wanted : UINT32_MAX;
}

double device_need_memory_mb(const struct device_need *n, double batch)
{
	uint32_t devices = device_need_count(n, batch);
	double mb = n->memory_mb > 0.0 ? n->memory_mb : 0.0;

	if (!devices)
		return 0.0;
	if (n->memory_mb_per_record > 0.0 && batch > 0.0)
		mb += n->memory_mb_per_record * batch / devices;
	return mb;
}

double decide_work_s(const struct decide_scene *s, const struct candidate *c, double time_s, double processes)
{
	struct fluid_job j = decide_fluid_job(c, s->cpus);

	return isnan(time_s)
		       ? NAN
		       : within(time_s / decide_stretch(&s->machine, &j, processes), 0.0, FLUID_MAX_WORK_S);
}

/* ---- predictions ---- */

static int rows_init(struct decide_rows *r, const struct decide_params *p, struct err *err)
{
	const struct model *m = p->model;
	const struct schema *s = m->schema;
	size_t n_columns = s->n_columns + s->n_derived;
	int cpus = schema_role(s, ROLE_CPUS);

	r->p = p;
	r->decision = schema_role(s, ROLE_BATCH);
	r->epochs = schema_role(s, ROLE_EPOCHS);
	r->njobs = schema_role(s, ROLE_NJOBS);
	r->processes = schema_role(s, ROLE_PROCESSES);
	r->devices = p->scene ? schema_role(s, ROLE_DEVICES) : -1;
	if (r->decision < 0 || n_columns > SCHEMA_MAX_COLUMNS || m->features->n > DECIDE_MAX_FEATURES)
		return err_fail(err, ERR_ARG,
				"the model has %zu columns and %zu features, too many for a decision",
				n_columns, m->features->n);
	if (p->epochs && r->epochs < 0)
		return err_fail(err, ERR_ARG, "the epochs are open, and the model has no column of them");
	memcpy(r->number, p->job->number, n_columns * sizeof *r->number);
	r->job = (struct job_values){ .number = r->number, .category = p->job->category };
	if (p->scene && cpus >= 0 && isnan(r->number[cpus]))
		r->number[cpus] = p->scene->cpus;
	r->has_shares = false;
	decide_other_init(r);
	decide_bounds_init(r);
	return 0;
}

static void encode(struct decide_rows *r, const struct decide_load *load, const struct candidate *c,
		   double *x)
{
	r->number[r->decision] = c->decision;
	if (r->devices >= 0) { /* as many as this batch wants; the values may say them where nobody counts */
		uint32_t wanted = device_need_count(&r->p->scene->device, c->decision);

		if (wanted || isnan(r->number[r->devices]))
			r->number[r->devices] = wanted;
	}
	if (r->p->epochs)
		r->number[r->epochs] = c->epochs;
	if (load)
		decide_other_load(r, load);
	features_encode_job(r->p->model->features, &r->job, x);
}

static void fill_shares(const struct predictor *time, const double *x, struct candidate *c)
{
	struct work_shares s = { .cpu = 1.0, .disk = 0.0, .start = NAN };

	if (time->ops->shares)
		time->ops->shares(time->self, x, &s);
	c->cpu_share = s.cpu;
	c->disk_share = s.disk;
	c->start_share = s.start;
}

/* A model without a law may say that a job takes no time, or less: that is no answer. */
static double time_or_none(double model_s)
{
	return model_s > 0.0 ? model_s : NAN;
}

static void take_time(const struct decide_rows *r, double model_s, struct candidate *c)
{
	c->model_s = time_or_none(model_s);
	c->time_s = c->model_s * r->bias;
}

static bool by_bounds(const struct decide_params *p)
{
	return !p->scene || p->scene->policy->policy->bounds;
}

/* A policy without bounds takes the model at its word everywhere. */
static void note_range(const struct decide_rows *r, const double *x, struct candidate *c)
{
	c->out_of_range = reach_notable(r->p->model, x);
	c->extrapolated = c->out_of_range >= 0;
	c->out_of_range_value = c->extrapolated ? x[c->out_of_range] : NAN;
	c->beyond = c->extrapolated && by_bounds(r->p) ? reach_beyond(r->p->model, x) : -1;
}

void decide_predict_one(struct decide_rows *r, const struct decide_load *load, struct candidate *c, double *x)
{
	const struct model *m = r->p->model;
	double model_s;

	encode(r, load, c, x);
	predictor_predict(&m->time.predictor, x, 1, &model_s);
	take_time(r, model_s, c);
	if (m->accuracy.predictor.ops && !r->p->epochs)
		predictor_predict(&m->accuracy.predictor, x, 1, &c->accuracy);
	decide_other_settle(r, x);
	note_range(r, x, c);
}

double decide_predict_time(struct decide_rows *r, const struct decide_load *load, const struct candidate *c)
{
	double x[DECIDE_MAX_FEATURES], model_s;

	encode(r, load, c, x);
	predictor_predict(&r->p->model->time.predictor, x, 1, &model_s);
	return time_or_none(model_s);
}

/* More epochs do not make a model worse, as far as it is kept at its best; a predicted dip is an error of the
 * predictor. stats_rising() spreads that error over both sides of the dip. A running maximum would take every
 * error upwards at its word, and ties go to the shorter time, so that a noisy peak early in the curve would
 * win. */
static void smooth_curve(struct candidate *c, size_t n)
{
	double accuracy[DECIDE_MAX_CANDIDATES];
	size_t scratch[DECIDE_MAX_CANDIDATES];

	for (size_t i = 0; i < n; i++)
		accuracy[i] = c[i].accuracy;
	stats_rising(accuracy, n, scratch);
	for (size_t i = 0; i < n; i++)
		c[i].accuracy = accuracy[i];
}

void decide_predict_all(struct decide_rows *r, const struct decide_load *load, struct decision *d,
			bool times_only, struct model_errors *out_errors)
{
	const struct model *m = r->p->model;
	double x[DECIDE_MAX_FEATURES], time[DECIDE_MAX_CANDIDATES], accuracy[DECIDE_MAX_CANDIDATES];
	size_t n_features = m->features->n, per_pass = DECIDE_MAX_FEATURES / n_features;

	for (size_t done = 0; done < d->n_candidates; done += per_pass) {
		size_t n = d->n_candidates - done < per_pass ? d->n_candidates - done : per_pass;

		for (size_t i = 0; i < n; i++)
			encode(r, load ? &load[done + i] : NULL, &d->candidate[done + i], x + i * n_features);
		predictor_predict(&m->time.predictor, x, n, time);
		if (m->accuracy.predictor.ops && !times_only)
			predictor_predict(&m->accuracy.predictor, x, n, accuracy);
		for (size_t i = 0; i < n; i++) {
			struct candidate *c = &d->candidate[done + i];
			double *row = x + i * n_features;
			struct model_errors e;

			if (r->p->scene && !r->has_shares)
				fill_shares(&m->time.predictor, row, c);
			take_time(r, time[i], c);
			if (times_only)
				continue;
			decide_other_settle(r, row);
			note_range(r, row, c);
			e = decide_errors_at(r, row);
			if (out_errors) {
				out_errors[done + i] = e;
			} else {
				decide_bound(r, &e, c);
				c->chance = decide_chance(r, c);
			}
			c->accuracy = m->accuracy.predictor.ops ? accuracy[i] : NAN;
		}
	}
	r->has_shares = r->p->scene; /* no load changes them */
	for (size_t i = 0; r->p->epochs && m->accuracy.predictor.ops && !times_only && i < d->n_candidates;
	     i += r->p->n_epochs)
		smooth_curve(&d->candidate[i], r->p->n_epochs);
}

/* As the paper does it: what runs now, and this one beside it, for as long as it takes. */
static void predict_at_present(struct decide_rows *r, struct decision *d)
{
	const struct decide_scene *s = r->p->scene;
	struct decide_load load[DECIDE_MAX_CANDIDATES];
	double processes = s->cpus + s->other_load;

	for (size_t i = 0; i < s->n_running; i++)
		processes += s->running[i].cpus;
	for (size_t i = 0; i < d->n_candidates; i++)
		load[i] = (struct decide_load){ .njobs = (double)s->n_running + 1.0 + s->other_load,
						.processes = processes };
	decide_predict_all(r, load, d, false, NULL);
	for (size_t i = 0; i < d->n_candidates; i++) {
		struct candidate *c = &d->candidate[i];

		c->work_s = decide_work_s(s, c, c->time_s, processes);
	}
}

/* ---- judging and choosing ---- */

double decide_accuracy_noise(const struct model *m)
{
	const struct conformal *c = m ? &m->accuracy.conformal : NULL;

	if (!c || c->n < 9)
		return 0.0;
	return (c->score[(3 * c->n) / 4] - c->score[c->n / 4]) / 2.0 * c->base;
}

double decide_needed_s(const struct decide_params *p, const struct candidate *c)
{
	return by_bounds(p) ? c->wait_upper_s + c->guard_s : c->wait_s + c->time_s;
}

void decide_judge(const struct decide_params *p, struct candidate *c)
{
	bool objective = !isnan(p->slo_s);

	c->reasons &= REASONS_HARD;
	c->cost = c->harm;
	if (p->scene && c->time_s > 0.0)
		c->cost += p->scene->price * p->scene->cpus * c->time_s;
	if (c->extrapolated)
		c->reasons |= REASON_EXTRAPOLATED;
	if (isnan(c->time_s))
		c->reasons |= REASON_UNSTABLE;
	else if (objective && c->beyond >= 0)
		c->reasons |= REASON_BEYOND_MODEL;
	else if (objective && by_bounds(p) && isnan(c->guard_s))
		c->reasons |= REASON_NO_BOUND;
	else if (objective &&
		 (!(decide_needed_s(p, c) <= p->slo_s) || (c->way > 0.0 && c->wait_s + c->time_s > p->slo_s)))
		c->reasons |= REASON_SLO_EXCEEDED;
	if (objective && by_bounds(p) && !isnan(c->chance)) /* rounding must not contradict the bound */
		c->chance = !(c->reasons & REASON_SLO_EXCEEDED)
				    ? fmax(c->chance, p->confidence)
				    : fmin(c->chance, nextafter(p->confidence, 0));
	c->feasible = !(c->reasons & (REASON_NO_BOUND | REASON_SLO_EXCEEDED | REASON_UNSTABLE |
				      REASON_BEYOND_MODEL | REASONS_HARD));
}

/* More accurate, or as accurate (or not known) and faster. */
static bool beats(const struct candidate *a, const struct candidate *b)
{
	if (isfinite(a->accuracy) && isfinite(b->accuracy) && a->accuracy != b->accuracy)
		return a->accuracy > b->accuracy;
	return a->time_s < b->time_s;
}

/* What the system gets from it, less what its capacity would be worth to others. */
double decide_worth(const struct decision *d, const struct candidate *c)
{
	double accuracy = isfinite(c->accuracy) ? c->accuracy : 1.0;
	double chance = isnan(c->chance) ? 1.0 : c->chance;

	return d->value * chance * accuracy - c->cost;
}

/* May it be refused for what it costs, or be made to wait? On an idle machine no job gains by that, and a
 * price from a few arrivals is a guess. While nothing runs there is no end to wait for. */
static bool price_refuses(const struct decide_params *p)
{
	const struct decide_scene *s = p->scene;

	if (isnan(p->slo_s))
		return false;
	return s->starting ? s->by_chance && s->n_running : s->n_running || s->n_queued;
}

/* A job that could be refused, or wait, takes none that is worth more to others. */
static int worth_most(const struct decide_params *p, const struct decision *d)
{
	bool refuses = price_refuses(p);
	int best = -1;

	for (size_t i = 0; i < d->n_candidates; i++) {
		const struct candidate *c = &d->candidate[i];

		if (c->feasible && (!refuses || decide_worth(d, c) > 0.0) &&
		    (best < 0 || decide_worth(d, c) > decide_worth(d, &d->candidate[best])))
			best = (int)i;
	}
	return best;
}

static bool has_cost(const struct decision *d)
{
	for (size_t i = 0; i < d->n_candidates; i++)
		if (d->candidate[i].cost > 0.0)
			return true;
	return false;
}

int decide_best(const struct decide_params *p, const struct decision *d)
{
	bool exact = p->scene && p->scene->policy->policy->exact;
	double noise = exact ? 0.0 : decide_accuracy_noise(p->model);
	int best = -1;

	if (has_cost(d))
		return worth_most(p, d);
	/* The most accurate first, then the fastest among those that tie with it: pairwise ties alone would
	 * not be transitive. */
	for (size_t i = 0; i < d->n_candidates; i++) {
		const struct candidate *c = &d->candidate[i];
		if (c->feasible && (best < 0 || beats(c, &d->candidate[best])))
			best = (int)i;
	}
	if (best >= 0 && isfinite(d->candidate[best].accuracy)) {
		double most = d->candidate[best].accuracy;
		for (size_t i = 0; i < d->n_candidates; i++) {
			const struct candidate *c = &d->candidate[i];
			if (c->feasible && most - c->accuracy <= noise &&
			    c->time_s < d->candidate[best].time_s)
				best = (int)i;
		}
	}
	return best;
}

int decide_likeliest(const struct decision *d, double least_chance, unsigned reasons)
{
	int best = -1;

	for (size_t i = 0; i < d->n_candidates; i++) {
		const struct candidate *c = &d->candidate[i];

		if (c->chance >= fmax(least_chance, DECIDE_NO_CHANCE) && !(c->reasons & reasons) &&
		    (best < 0 || decide_worth(d, c) > decide_worth(d, &d->candidate[best])))
			best = (int)i;
	}
	return best;
}

/* The bound for users allows for jobs that arrive later: these slow it down, and overtake it while it waits.
 * A limit that will be promised is a bound, too: they must not break it. */
static void tell_bound(const struct decide_rows *r, struct candidate *c)
{
	const struct decide_scene *s = r->p->scene;
	double end_s = c->wait_s + c->time_s, limit_s = r->p->slo_s - c->wait_upper_s; /* NaN: no limit */
	double overtaken_s;

	c->upper_s = c->guard_s;
	if (!s || isnan(c->guard_s))
		return;
	c->upper_s = belief_bound_at(
		belief_with((struct belief){ c->time_s, c->spread }, s->later.shift, s->later.spread),
		r->spreads);
	overtaken_s = end_s + s->waits_share * waits_room_s(end_s, r->p->slo_s) - c->wait_upper_s;
	if (c->feasible && c->wait_s > 0.0 && overtaken_s > c->upper_s)
		c->upper_s = overtaken_s;
	if (c->feasible && c->upper_s > limit_s)
		c->upper_s = limit_s;
	if (!(c->upper_s >= c->guard_s))
		c->upper_s = c->guard_s;
}

unsigned decide_lost(const struct decision *d, const struct candidate *c)
{
	const struct candidate *chosen = &d->candidate[d->chosen];

	if (c->accuracy < chosen->accuracy)
		return REASON_LOWER_ACCURACY;
	return d->costs && c->accuracy > chosen->accuracy ? REASON_PRICE : REASON_SLOWER;
}

/* Its capacity is worth more to others, even with a limit that it would meet. */
static bool too_costly(const struct decide_params *p, const struct decision *d, const struct candidate *c)
{
	double chance = fmax(c->chance, p->confidence); /* NaN: the confidence */

	return c->cost > 0.0 && !p->scene->starting && price_refuses(p) &&
	       !(d->value * chance * (isfinite(c->accuracy) ? c->accuracy : 1.0) > c->cost);
}

/* Without a model: the feasible one nearest to the middle, the larger of two; -1: none. */
static int middle_of(const struct decision *d)
{
	int n = (int)d->n_candidates, best = -1;

	for (int i = n - 1; i >= 0; i--) {
		if (d->candidate[i].feasible && (best < 0 || abs(i - n / 2) < abs(best - n / 2)))
			best = i;
	}
	return best;
}

/* The same job among the others: its time is a guess, or unknown, and then it does not end. */
static int look_without_model(const struct decide_scene *s, struct decision *d, struct err *err)
{
	int status = 0;

	for (size_t i = 0; i < d->n_candidates && !status; i++) {
		struct candidate *c = &d->candidate[i];
		struct fluid_job job;

		c->work_s = s->guess_s;
		c->cpu_share = 1.0;
		c->disk_share = 0.0;
		if (!s->starting || s->indifferent)
			continue;
		job = decide_fluid_job(c, s->cpus);
		if (isnan(s->guess_s))
			job.work_s = FLUID_MAX_WORK_S;
		status = decide_probe(s, &job, &c->breaks, NULL, err);
		if (c->breaks)
			c->reasons |= REASON_BREAKS_PROMISE;
	}
	return status;
}

/* Chooses, says why the others lost, and what could have been promised. */
static void conclude(const struct decide_params *p, const struct decide_rows *rows, struct decision *d)
{
	const struct policy_choice *by = p->scene ? p->scene->policy : NULL;
	bool own_rule = by && by->policy->choose;
	struct rng rng = by ? p->scene->rng : (struct rng){ 0 };
	int offer;

	d->costs = has_cost(d);
	d->chosen = own_rule   ? by->policy->choose(by, d, decide_accuracy_noise(p->model), &rng)
		    : p->model ? decide_best(p, d)
			       : middle_of(d);
	for (size_t i = 0; i < d->n_candidates; i++) {
		struct candidate *c = &d->candidate[i];
		double needed_s = decide_needed_s(p, c);

		if (rows)
			tell_bound(rows, c);
		if (d->chosen < 0 && too_costly(p, d, c)) {
			c->reasons |= REASON_PRICE;
			c->feasible = false;
			continue;
		}
		/* one that was not played may break a promise: nothing can be said for sure of it */
		if (!(c->reasons & REASONS_HARD) && !isnan(needed_s) &&
		    (d->chosen >= 0 || !isnan(c->delays_s)) && !(d->smallest_slo_s <= needed_s))
			d->smallest_slo_s = needed_s;
		if (d->chosen < 0 || (int)i == d->chosen)
			continue;
		if (own_rule)
			c->reasons |= c->reasons & REASONS_HARD ? 0 : REASON_NOT_PICKED;
		else if (c->feasible)
			c->reasons |= decide_lost(d, c);
	}
	offer = d->chosen < 0 ? decide_likeliest(d, 0.0, REASONS_NO_ROOM) : -1;
	if (offer >= 0)
		d->offer = d->candidate[offer];
}

/* What is out of the model's reach in every candidate, for the answer. Candidates may differ in it: the value
 * that is nearest to the reach counts. */
static void name_beyond(struct decide_rows *r, struct decision *d)
{
	const struct model *m = r->p->model;
	double x[DECIDE_MAX_FEATURES], nearest = INFINITY;
	int at = d->candidate[0].beyond;

	for (size_t i = 0; i < d->n_candidates; i++)
		if (!(d->candidate[i].reasons & REASON_BEYOND_MODEL) || d->candidate[i].beyond != at)
			return;
	d->beyond = schema_source_name(m->schema, m->features->feature[at].source);
	reach_of(m, (size_t)at, &d->beyond_least, &d->beyond_most);
	for (size_t i = 0; i < d->n_candidates; i++) {
		double off;

		encode(r, NULL, &d->candidate[i], x);
		off = fmax(d->beyond_least - x[at], x[at] - d->beyond_most);
		if (off < nearest) {
			nearest = off;
			d->beyond_value = x[at];
		}
	}
}

struct decide_out_of_range decide_out_of_range(const struct decision *d, const struct candidate *c)
{
	struct decide_out_of_range o = { .value = NAN, .least = NAN, .most = NAN };
	const struct feature *f;

	if (!d->model || !c->extrapolated)
		return o;
	f = &d->model->features->feature[c->out_of_range];
	o.column = schema_source_name(d->model->schema, f->source);
	o.category = feature_is_category(f);
	if (!o.category) {
		o.value = c->out_of_range_value;
		o.least = f->min;
		o.most = f->max;
	}
	return o;
}

/* Memory, width and devices: what no prediction changes. */
static void refuse_the_impossible(const struct decide_scene *s, struct decision *d)
{
	for (size_t i = 0; i < d->n_candidates; i++) {
		struct candidate *c = &d->candidate[i];

		c->memory_mb = NAN;
		if (!isnan(s->memory_mb) || !isnan(s->memory_mb_per_record))
			c->memory_mb = (isnan(s->memory_mb) ? 0.0 : s->memory_mb) +
				       (isnan(s->memory_mb_per_record) ? 0.0 : s->memory_mb_per_record) *
					       c->decision;
		if (c->memory_mb > s->memory_limit_mb)
			c->reasons |= REASON_MEMORY;
		if (s->cpus > s->most_cpus)
			c->reasons |= REASON_TOO_WIDE;
		c->devices = device_need_count(&s->device, c->decision);
		if (c->devices > s->most_devices ||
		    (s->device_memory_mb > 0.0 &&
		     device_need_memory_mb(&s->device, c->decision) > s->device_memory_mb))
			c->reasons |= REASON_DEVICES;
	}
}

static int check(const struct decide_params *p, size_t n_batches, struct err *err)
{
	const struct policy *policy = p->scene ? p->scene->policy->policy : NULL;
	size_t n_epochs = p->epochs ? p->n_epochs : 1;

	if (!p->model && !policy)
		return err_fail(err, ERR_ARG, "a decision by prediction needs a model");
	if (!n_batches || !n_epochs || n_batches > DECIDE_MAX_CANDIDATES / n_epochs)
		return err_fail(err, ERR_ARG,
				"%zu batches x %zu numbers of epochs; a decision takes 1 to %d pairs",
				n_batches, n_epochs, DECIDE_MAX_CANDIDATES);
	if (!(p->confidence > 0.0 && p->confidence < 1.0))
		return err_fail(err, ERR_ARG, "confidence %g: need a number between 0 and 1", p->confidence);
	return 0;
}

/* The fastest by its bound of those with as many epochs that there is room for; NULL: there is none. */
static const struct candidate *fastest_of(const struct decision *d, size_t epochs, size_t n_epochs)
{
	const struct candidate *best = NULL;

	for (size_t i = epochs; i < d->n_candidates; i += n_epochs) {
		const struct candidate *c = &d->candidate[i];

		if (!(c->reasons & REASONS_NO_ROOM) && c->guard_s > 0.0 && c->beyond < 0 &&
		    (!best || c->guard_s < best->guard_s))
			best = c;
	}
	return best;
}

/* A job that steers needs the fastest batch to fit after its first epoch, and the batch that it begins with
 * to be expected in time. Nobody knows whom a candidate harms that was not played: it stays as it is. */
static void lean_on_the_fastest(const struct decide_rows *r, struct decision *d)
{
	size_t n = r->p->epochs ? r->p->n_epochs : 1;

	for (size_t e = 0; e < n; e++) {
		const struct candidate *fastest = fastest_of(d, e, n);
		double guard_s = fastest ? fastest->guard_s : NAN, epochs = NAN;

		if (r->epochs >= 0)
			epochs = r->p->epochs ? r->p->epochs[e] : r->p->job->number[r->epochs];
		for (size_t i = e; i < d->n_candidates && epochs >= 1.0 && fastest; i += n) {
			struct candidate *c = &d->candidate[i];
			double way_s = guard_s + (c->guard_s - guard_s) / epochs;

			if (isnan(c->delays_s) || !(way_s < c->guard_s))
				continue;
			c->guard_s = way_s;
			way_s = fastest->time_s + (c->time_s - fastest->time_s) / epochs;
			c->way = fmin(way_s / c->time_s, 1.0);
			if (c->time_s > fastest->time_s && c->accuracy > fastest->accuracy)
				c->way_per_s = (c->accuracy - fastest->accuracy) /
					       (c->time_s - fastest->time_s);
		}
	}
}

int decide(const struct decide_params *p, struct decision *out, struct err *err)
{
	const struct model *m = p->model;
	const struct decide_scene *scene = p->scene;
	const double *value = p->candidate ? p->candidate : m ? m->candidate : NULL;
	size_t n_batches = p->candidate ? p->n_candidates : m ? m->n_candidates : 0;
	size_t n_epochs = p->epochs ? p->n_epochs : 1;
	struct decide_rows rows;
	int status;

	out->n_candidates = 0;
	out->chosen = -1;
	out->smallest_slo_s = NAN;
	out->offer.chance = NAN;
	out->other_load = scene ? scene->other_load : NAN;
	out->other_factor = scene && scene->other_load == 0.0 ? 1.0 : NAN;
	out->confidence = p->confidence;
	out->price = scene ? scene->price : 0.0;
	out->value = scene && scene->value > 0.0 ? scene->value : 1.0;
	out->costs = false;
	out->by_bounds = by_bounds(p);
	out->beyond = NULL;
	out->model = m;
	out->beyond_value = out->beyond_least = out->beyond_most = NAN;
	status = check(p, n_batches, err);
	if (!status && m)
		status = rows_init(&rows, p, err);
	if (status)
		return status;
	out->n_candidates = n_batches * n_epochs;
	for (size_t i = 0; i < out->n_candidates; i++)
		out->candidate[i] = (struct candidate){ .decision = value[i / n_epochs],
							.epochs = p->epochs ? p->epochs[i % n_epochs] : NAN,
							.time_s = NAN,
							.guard_s = NAN,
							.upper_s = NAN,
							.model_s = NAN,
							.accuracy = NAN,
							.chance = NAN,
							.spread = NAN,
							.memory_mb = NAN,
							.work_s = NAN,
							.cpu_share = NAN,
							.disk_share = NAN,
							.beyond = -1 };
	if (scene)
		refuse_the_impossible(scene, out);
	if (!m && scene && scene->scratch && scene->policy->policy->looks_ahead)
		status = look_without_model(scene, out, err);
	else if (m && scene && scene->policy->policy->looks_ahead)
		status = decide_look_ahead(&rows, out, err);
	else if (m && scene)
		predict_at_present(&rows, out);
	else if (m)
		decide_predict_all(&rows, NULL, out, false, NULL);
	if (status)
		return status;
	if (m && scene && scene->steers)
		lean_on_the_fastest(&rows, out);
	for (size_t i = 0; i < out->n_candidates; i++) {
		if (m)
			decide_judge(p, &out->candidate[i]);
		else
			out->candidate[i].feasible = !(out->candidate[i].reasons & REASONS_HARD);
	}
	conclude(p, m ? &rows : NULL, out);
	if (m)
		name_beyond(&rows, out);
	if (m && scene && scene->other_load > 0.0)
		decide_other_weigh(&rows, out);
	return 0;
}
