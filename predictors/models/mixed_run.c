/* Effective iterations of runs whose batch changes. See mixed_run.h. */
#include "predictors/models/mixed_run.h"

#include <math.h>

#include "common/stats.h"

static double power(double beta)
{
	return isnan(beta) ? MIXED_RUN_BETA : beta;
}

double mixed_run_effort(double epochs, double batch, double beta)
{
	return epochs / pow(batch, power(beta));
}

double mixed_run_epochs(double effort, double batch, double beta)
{
	return effort * pow(batch, power(beta));
}

void mixed_run_add(struct mixed_run_curve *m, double effort, double accuracy)
{
	double at = log(effort);
	size_t i = m->n;

	if (m->n == MIXED_RUN_POINTS || !isfinite(at) || !isfinite(accuracy))
		return;
	for (; i && m->log_effort[i - 1] > at; i--) {
		m->log_effort[i] = m->log_effort[i - 1];
		m->accuracy[i] = m->accuracy[i - 1];
	}
	m->log_effort[i] = at;
	m->accuracy[i] = accuracy;
	m->n++;
}

/* A dip is an error of the model, which is spread over both sides of it. */
void mixed_run_settle(struct mixed_run_curve *m)
{
	size_t scratch[MIXED_RUN_POINTS];

	stats_rising(m->accuracy, m->n, scratch);
}

double mixed_run_at(const struct mixed_run_curve *m, double effort)
{
	double at = log(effort), part;
	size_t low = 0, high = m->n;

	if (!m->n || isnan(at))
		return NAN;
	while (low < high) { /* the first that is not below */
		size_t middle = (low + high) / 2;

		if (m->log_effort[middle] < at)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || low == m->n)
		return m->accuracy[low ? low - 1 : 0];
	part = (at - m->log_effort[low - 1]) / (m->log_effort[low] - m->log_effort[low - 1]);
	return m->accuracy[low - 1] + part * (m->accuracy[low] - m->accuracy[low - 1]);
}
