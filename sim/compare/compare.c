/* A comparison from beginning to end: traces and worlds are opened, models trained (compare_models.c), runs
 * made (compare_runs.c), and the numbers put together. */
#include "sim/compare/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "sim/compare/compare_internal.h"

#define GENERATED "gen:"

/* ---- the result ---- */

static void policy_release(struct compare_policy *c, size_t replications)
{
	for (size_t i = 0; c->run && i < replications; i++)
		replay_result_release(&c->run[i]);
	for (size_t i = 0; c->feature && i < c->n_features; i++)
		free(c->feature[i]);
	free(c->feature);
	free(c->importance);
	free(c->run);
	free(c->value);
}

void compare_free(struct compare_result *r)
{
	if (!r)
		return;
	for (size_t i = 0; r->policy && i < r->n_policies; i++)
		policy_release(&r->policy[i], r->replications);
	free(r->policy);
	/* A world borrows its trace. Replications that share them do so with the first. */
	for (size_t i = 0; r->world && i < r->replications; i++)
		if (i == 0 || r->world[i] != r->world[0])
			world_free(r->world[i]);
	for (size_t i = 0; r->trace && i < r->replications; i++)
		if (i == 0 || r->trace[i] != r->trace[0])
			trace_free(r->trace[i]);
	free(r->world);
	free(r->trace);
	csv_free(r->training);
	free(r);
}

static int result_new(const struct compare_params *p, struct compare_result **out, struct err *err)
{
	struct compare_result *r = mem_calloc(1, sizeof *r);
	bool ok = r != NULL;

	if (ok) {
		r->n_policies = p->n_policies;
		r->replications = p->replications;
		r->baseline = p->baseline;
		r->policy = mem_calloc(p->n_policies, sizeof *r->policy);
		r->trace = mem_calloc(p->replications, sizeof(struct trace *));
		r->world = mem_calloc(p->replications, sizeof(struct world *));
		ok = r->policy && r->trace && r->world;
	}
	for (size_t i = 0; ok && i < p->n_policies; i++) {
		struct compare_policy *c = &r->policy[i];

		c->policy = p->policy[i];
		c->decision_mean_s = c->decision_p99_s = NAN;
		c->value = mem_calloc(p->replications, METRICS * sizeof *c->value);
		c->run = mem_calloc(p->replications, sizeof *c->run);
		ok = c->value && c->run;
	}
	if (ok) {
		*out = r;
		return 0;
	}
	compare_free(r);
	return err_nomem(err, "a comparison");
}

static int check_params(const struct compare_params *p, struct err *err)
{
	if (!p->n_policies || p->n_policies > SIM_MAX_POLICIES)
		return err_fail(err, ERR_ARG, "%zu policies: 1 to %d can be compared", p->n_policies,
				SIM_MAX_POLICIES);
	if (p->baseline >= p->n_policies)
		return err_fail(err, ERR_ARG, "the baseline is policy %zu of %zu", p->baseline + 1,
				p->n_policies);
	if (!p->replications || p->replications > COMPARE_MAX_REPLICATIONS)
		return err_fail(err, ERR_ARG, "%zu replications: 1 to %d are possible", p->replications,
				COMPARE_MAX_REPLICATIONS);
	if (!(p->level > 0.0 && p->level < 1.0))
		return err_fail(err, ERR_ARG, "level %g of the intervals: it lies between 0 and 1", p->level);
	if (!(p->settings.confidence > 0.0 && p->settings.confidence < 1.0))
		return err_fail(err, ERR_ARG, "confidence %g: it lies between 0 and 1",
				p->settings.confidence);
	if (!(p->noise >= 0.0 && isfinite(p->noise)))
		return err_fail(err, ERR_ARG, "noise %g: it is 0 or more", p->noise);
	return 0;
}

/* ---- traces and worlds ---- */

/* Are the jobs of each replication drawn anew? */
static bool is_drawn(const struct compare_params *p)
{
	return p->trace.resample || !strncmp(p->trace.spec, GENERATED, strlen(GENERATED));
}

static int open_trace(const struct compare_params *p, size_t replication, struct trace **out, struct err *err)
{
	struct trace_source source = p->trace;
	double slo = what_if_or(&p->what, WHAT_SLO, 1.0), load = what_if_or(&p->what, WHAT_LOAD, 1.0);
	int status;

	source.seed += replication;
	status = trace_open(&source, out, err);
	if (!status && (slo != 1.0 || load != 1.0))
		status = trace_scale(*out, slo, load, err);
	return status;
}

/* A moment given as a part of the trace counts from its first arrival, as draws.h counts it from 0. */
static bool drift_is_relative(const char *text)
{
	size_t len = strlen(text);

	return strchr(text, '@') && len && text[len - 1] == '%';
}

static int disturbances_of(const struct compare_params *p, const struct trace *t, struct disturbances *out,
			   struct err *err)
{
	struct disturbances d = p->world.disturbances ? *p->world.disturbances : (struct disturbances){ 0 };
	double noise = what_if_or(&p->what, WHAT_NOISE, p->noise),
	       first_s = 1e-9 * (double)t->job[0].arrival_ns;
	double span_s = 1e-9 * (double)t->job[t->n_jobs - 1].arrival_ns - first_s;
	int status = 0;

	if (noise > 0.0)
		d.noise = noise;
	if (p->drift) {
		status = disturbances_drift(p->drift, span_s, &d, err);
		if (!status && drift_is_relative(p->drift))
			d.drift_at_s += first_s;
	}
	if (!status && p->stragglers)
		status = disturbances_stragglers(p->stragglers, &d, err);
	if (!status && p->failures)
		status = disturbances_failures(p->failures, &d, err);
	if (!status)
		*out = d;
	return status;
}

/* Leaves out the jobs that the world does not know (mark_unknown). */
static int leave_out_unknown(const struct world *w, struct trace *t, bool *out_any, struct err *err)
{
	bool *unknown = mem_calloc(t->n_kinds, sizeof *unknown);
	const char *first = NULL;
	size_t kinds = 0;
	struct strbuf reason = { 0 };
	int status = unknown ? 0 : err_nomem(err, "%zu kinds of jobs", t->n_kinds);

	for (size_t i = 0; unknown && i < t->n_kinds; i++) {
		const char *why = world_unknown(w, (uint32_t)i);

		unknown[i] = why != NULL;
		first = first ? first : why;
		kinds += unknown[i];
	}
	if (!status && first) {
		strbuf_puts(&reason, first);
		if (kinds > 1)
			strbuf_printf(&reason, " (and %zu more kinds of jobs)", kinds - 1);
		status = trace_leave_out(t, unknown, strbuf_text(&reason), err);
	}
	*out_any = first != NULL;
	strbuf_release(&reason);
	free(unknown);
	return status;
}

static int open_replication(const struct compare_params *p, size_t replication, struct compare_result *r,
			    struct err *err)
{
	struct world_params world = p->world;
	struct disturbances d;
	bool left_out = false;
	int status = open_trace(p, replication, &r->trace[replication], err);

	if (!status)
		status = disturbances_of(p, r->trace[replication], &d, err);
	if (status)
		return status;
	world.trace = r->trace[replication];
	world.disturbances = &d;
	world.what = &p->what;
	status = world_open(&world, &r->world[replication], err);
	if (!status)
		status = leave_out_unknown(r->world[replication], r->trace[replication], &left_out, err);
	if (status || !left_out)
		return status;
	world_free(r->world[replication]); /* it counts the kinds as they were */
	r->world[replication] = NULL;
	return world_open(&world, &r->world[replication], err);
}

struct opening {
	const struct compare_params *p;
	struct compare_result *r;
	pthread_mutex_t lock;
	size_t failed, done;
	struct err err;
};

static void open_turn(void *opening, size_t i, size_t worker)
{
	struct opening *o = opening;
	struct err err = { 0 };
	int status;

	(void)worker;
	i++; /* the first is open */
	status = open_replication(o->p, i, o->r, &err);
	pthread_mutex_lock(&o->lock);
	if (status && i < o->failed) {
		o->failed = i;
		o->err = err;
	}
	o->done++;
	if (o->p->on_progress)
		o->p->on_progress(o->p->owner, "opening", o->done + 1, o->p->replications);
	pthread_mutex_unlock(&o->lock);
}

static int open_others(const struct compare_params *p, struct compare_result *r, struct err *err)
{
	struct opening o = { .p = p, .r = r, .lock = PTHREAD_MUTEX_INITIALIZER, .failed = SIZE_MAX };

	pool_run(p->pool, p->replications - 1, open_turn, &o);
	pthread_mutex_destroy(&o.lock);
	if (o.failed == SIZE_MAX)
		return 0;
	if (err)
		*err = o.err;
	err_prefix(err, "replication %zu", o.failed + 1);
	return -(int)o.err.code;
}

/* The first one alone: most errors are in all of them, and its message is the simplest. */
static int open_all(const struct compare_params *p, struct compare_result *r, struct err *err)
{
	int status = open_replication(p, 0, r, err);

	if (status)
		return status;
	if (is_drawn(p))
		return open_others(p, r, err);
	for (size_t i = 1; i < r->replications; i++) {
		r->trace[i] = r->trace[0];
		r->world[i] = r->world[0];
	}
	return 0;
}

/* ---- the numbers ---- */

/* Student's t has nothing to go by where there is one replication, or all say the same: then a share is
 * known as well as the jobs behind it make it. And no share lies outside of 0 and 1. */
static struct interval interval_of(const struct compare_runs *x, const struct compare_policy *c,
				   enum metric m, const double *column)
{
	const struct compare_shares *s = &x->shares[c - x->r->policy];
	struct interval t = metrics_interval(column, x->p->replications, x->p->level);

	if (s->whole[m] > 0.0 && !(t.low < t.high)) {
		struct interval w = metrics_wilson(s->part[m], s->whole[m], x->p->level);

		return (struct interval){ t.mean, fmin(w.low, t.mean), fmax(w.high, t.mean) };
	}
	if (!strcmp(metric_info[m].unit, "share") && isfinite(t.low)) {
		t.low = fmax(t.low, 0.0);
		t.high = fmax(fmin(t.high, 1.0), t.mean);
	}
	return t;
}

static void metric_column(const struct compare_policy *c, enum metric m, size_t n, double *out)
{
	for (size_t i = 0; i < n; i++)
		out[i] = c->value[i * METRICS + m];
}

static int summarise(struct compare_runs *x, struct err *err)
{
	size_t n = x->p->replications;
	double *base = mem_array(2 * n, sizeof *base), *own = base ? base + n : NULL;
	const struct paired_result none = { NAN, NAN, NAN, NAN, 0, NAN };

	if (!base)
		return err_nomem(err, "a comparison");
	for (size_t i = 0; i < x->p->n_policies; i++) {
		struct compare_policy *c = &x->r->policy[i];
		const struct decision_times *d = &x->times[i];

		for (enum metric m = 0; m < METRICS; m++) {
			metric_column(&x->r->policy[x->p->baseline], m, n, base);
			metric_column(c, m, n, own);
			c->metric[m] = interval_of(x, c, m, own);
			c->versus[m] = i == x->p->baseline ? none : metrics_paired(base, own, n, x->p->level);
		}
		c->decision_mean_s = d->n ? d->sum_s / (double)d->n : NAN;
		c->decision_p99_s = decision_times_quantile(d, 0.99);
	}
	free(base);
	return 0;
}

/* A few runs cannot show whether a difference is luck, however many replications are drawn from them: only
 * the figures are printed. */
static void withhold_verdict(struct compare_result *r, size_t runs)
{
	snprintf(r->note, sizeof r->note,
		 "no verdict: the table has %zu usable rows, and fewer than %d are too few to call a policy "
		 "better or worse",
		 runs, COMPARE_LEAST_RUNS);
	for (size_t i = 0; i < r->n_policies; i++)
		for (size_t m = 0; m < METRICS; m++) {
			struct paired_result *v = &r->policy[i].versus[m];

			v->low = v->high = v->p = NAN;
		}
}

static void judge(struct compare_result *r)
{
	struct paired_result *versus[SIM_MAX_POLICIES];
	size_t runs = world_runs(r->world[0]);

	if (runs < COMPARE_LEAST_RUNS)
		withhold_verdict(r, runs);
	for (size_t i = 0; i < r->n_policies; i++)
		versus[i] = i == r->baseline ? NULL : r->policy[i].versus;
	r->tests = metrics_correct(versus, r->n_policies);
}

void compare_verdicts(const struct compare_result *r, size_t policy, double level,
		      size_t out[VERDICT_UNKNOWN + 1])
{
	memset(out, 0, (VERDICT_UNKNOWN + 1) * sizeof *out);
	for (size_t k = 0; k < METRICS_TESTED; k++)
		out[metrics_verdict(&r->policy[policy].versus[metric_tested[k]], metric_tested[k], level)]++;
}

int compare_open(const struct compare_params *p, struct compare_result **out, struct err *err)
{
	struct compare_result *r = NULL;
	int status = check_params(p, err);

	if (!status)
		status = result_new(p, &r, err);
	if (!status)
		status = open_all(p, r, err);
	if (!status)
		*out = r;
	else
		compare_free(r);
	return status;
}

int compare_play(const struct compare_params *p, struct compare_result *r, struct err *err)
{
	struct compare_runs x = { .p = p, .r = r, .lock = PTHREAD_MUTEX_INITIALIZER };
	struct compare_models models = { 0 };
	int status;

	x.shares = mem_calloc(p->n_policies, sizeof *x.shares);
	x.times = mem_calloc(p->n_policies, sizeof *x.times);
	status = x.shares && x.times ? compare_models_of(&x, &models, err) : err_nomem(err, "a comparison");
	if (!status)
		status = compare_models_importances(&x, err);
	if (!status)
		status = compare_best_fixed(p, r, err);
	if (!status)
		status = compare_runs_all(&x, err);
	if (!status)
		status = summarise(&x, err);
	if (!status) {
		judge(r);
		r->training = models.table[0];
		models.table[0] = NULL;
	}
	compare_models_release(&models);
	free(x.times);
	free(x.shares);
	pthread_mutex_destroy(&x.lock);
	return status;
}

int compare_run(const struct compare_params *p, struct compare_result **out, struct err *err)
{
	struct compare_result *r = NULL;
	int status = compare_open(p, &r, err);

	if (!status)
		status = compare_play(p, r, err);
	if (!status)
		*out = r;
	else
		compare_free(r);
	return status;
}
