#include "scheduler/core/decide.h"

#include <math.h>
#include <string.h>

const char *decide_reason_text(enum decide_reason one)
{
	switch (one) {
	case REASON_SLO_EXCEEDED: return "slo_exceeded";
	case REASON_NO_BOUND: return "no_bound";
	case REASON_EXTRAPOLATED: return "extrapolated";
	case REASON_LOWER_ACCURACY: return "lower_accuracy";
	case REASON_SLOWER: return "slower";
	case REASON_UNSTABLE: return "unstable";
	}
	return "unknown";
}

/* Half the distance between the quartiles of the accuracy model's residuals: for errors that are alike
 * in both directions their median size. Accuracies nearer than that are not told apart. */
static double accuracy_noise(const struct conformal *c)
{
	if (c->n < 9)
		return 0.0;
	return (c->score[(3 * c->n) / 4] - c->score[c->n / 4]) / 2.0 * c->base;
}

/* Time and accuracy of each candidate, and the bound of the time that goes with score q (NaN: none). */
static int predict_candidates(const struct decide_params *p, double q, struct decision *d, struct err *err)
{
	const struct model *m = p->model;
	const struct schema *s = m->schema;
	size_t n_columns = s->n_columns + s->n_derived, n_features = m->features->n;
	double number[2 * SCHEMA_MAX_COLUMNS], x[DECIDE_MAX_CANDIDATES * 16], *row = x;
	double time[DECIDE_MAX_CANDIDATES], accuracy[DECIDE_MAX_CANDIDATES];
	struct job_values job = { .number = number, .category = p->job->category };
	size_t per_pass = sizeof x / sizeof *x / n_features;
	int at = schema_find(s, s->decision);

	if (at < 0 || n_columns > sizeof number / sizeof *number || per_pass == 0)
		return err_fail(err, ERR_ARG,
				"the model has %zu columns and %zu features, too many for a decision",
				n_columns, n_features);
	memcpy(number, p->job->number, n_columns * sizeof *number);
	for (size_t done = 0; done < d->n_candidates; done += per_pass) {
		size_t n = d->n_candidates - done < per_pass ? d->n_candidates - done : per_pass;

		for (size_t i = 0; i < n; i++) {
			struct candidate *c = &d->candidate[done + i];

			number[at] = c->decision;
			row = x + i * n_features;
			features_encode_job(m->features, &job, row);
			c->extrapolated = features_extrapolated(m->features, row);
		}
		predictor_predict(&m->time.predictor, x, n, time);
		if (m->accuracy.predictor.ops)
			predictor_predict(&m->accuracy.predictor, x, n, accuracy);
		for (size_t i = 0; i < n; i++) {
			struct candidate *c = &d->candidate[done + i];

			c->time_s = time[i];
			c->upper_s = isnan(q) || isnan(time[i])
					     ? NAN
					     : model_upper(m, &m->time, x + i * n_features, q, time[i]);
			c->accuracy = m->accuracy.predictor.ops ? accuracy[i] : NAN;
		}
	}
	return 0;
}

/* More accurate, or as accurate (or not known) and faster. */
static bool beats(const struct candidate *a, const struct candidate *b)
{
	if (isfinite(a->accuracy) && isfinite(b->accuracy) && a->accuracy != b->accuracy)
		return a->accuracy > b->accuracy;
	return a->time_s < b->time_s;
}

static void choose(struct decision *d, double noise)
{
	int best = -1;

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
	d->chosen = best;
	for (size_t i = 0; best >= 0 && i < d->n_candidates; i++) {
		struct candidate *c = &d->candidate[i];
		if (!c->feasible || (int)i == best)
			continue;
		c->reasons |= c->accuracy < d->candidate[best].accuracy ? REASON_LOWER_ACCURACY
									: REASON_SLOWER;
	}
}

int decide(const struct decide_params *p, struct decision *out, struct err *err)
{
	const struct model *m = p->model;
	const double *value = p->candidate ? p->candidate : m->candidate;
	bool bounded;
	double q = NAN;
	int status;

	out->n_candidates = p->candidate ? p->n_candidates : m->n_candidates;
	out->chosen = -1;
	out->smallest_slo_s = NAN;
	out->confidence = p->confidence;
	if (out->n_candidates == 0 || out->n_candidates > DECIDE_MAX_CANDIDATES)
		return err_fail(err, ERR_ARG, "%zu candidates; a decision takes 1 to %d", out->n_candidates,
				DECIDE_MAX_CANDIDATES);
	if (!(p->confidence > 0.0 && p->confidence < 1.0))
		return err_fail(err, ERR_ARG, "confidence %g: need a number between 0 and 1", p->confidence);
	for (size_t i = 0; i < out->n_candidates; i++)
		out->candidate[i] = (struct candidate){ .decision = value[i] };
	bounded = conformal_quantile(&m->time.conformal, p->confidence, &q, NULL) == 0;
	status = predict_candidates(p, q, out, err);
	if (status)
		return status;
	for (size_t i = 0; i < out->n_candidates; i++) {
		struct candidate *c = &out->candidate[i];

		if (c->extrapolated)
			c->reasons |= REASON_EXTRAPOLATED;
		if (isnan(c->time_s))
			c->reasons |= REASON_UNSTABLE;
		else if (!isnan(p->slo_s) && !bounded)
			c->reasons |= REASON_NO_BOUND;
		else if (!isnan(p->slo_s) && !(c->upper_s <= p->slo_s))
			c->reasons |= REASON_SLO_EXCEEDED;
		c->feasible = !(c->reasons & (REASON_NO_BOUND | REASON_SLO_EXCEEDED | REASON_UNSTABLE));
		if (!isnan(c->upper_s) && !(out->smallest_slo_s <= c->upper_s))
			out->smallest_slo_s = c->upper_s;
	}
	choose(out, accuracy_noise(&m->accuracy.conformal));
	return 0;
}
