/* Asking a fold: which settings answer, and what they say together. measured_fold.h says the rules. */
#include "sim/measured/measured_fold.h"

#include <math.h>

#define MOST_BETWEEN                                                                                         \
	4 /* axes on which a question may lie between levels for a cell to have not too many corners */
#define MOST_CORNERS (1 << MOST_BETWEEN)
#define NEAREST 4
#define MOST_STEP 50.0 /* of a logarithm of time: e^50 keeps everything finite */

struct corner {
	const struct measured_setting *setting;
	const struct measured_happened *happened;
	double weight; /* together 1 */
};

struct corners {
	struct corner corner[MOST_CORNERS];
	size_t n;
	double z[MEASURED_MAX_AXES]; /* of the question */
};

/* ---- which settings answer ---- */

static void add_corner(const struct measured_fold *f, size_t setting, double weight, struct corners *c)
{
	if (f->happened[setting].n_levels)
		c->corner[c->n++] =
			(struct corner){ &f->table->setting[setting], &f->happened[setting], weight };
}

/* The level at or below v, and how far it is to the next, from 0 to below 1. */
static uint16_t locate(const struct measured_axis *a, double v, double *out_part)
{
	size_t low = measured_axis_level(a, v);

	*out_part = 0.0;
	if (low + 1 < a->n_levels && v > a->level[low] * (1.0 + MEASURED_SAME))
		*out_part = log(v / a->level[low]) / log(a->level[low + 1] / a->level[low]);
	return (uint16_t)low;
}

/* The corners of the cell around the question. */
static void find_cell(const struct measured_fold *f, const struct measured_question *q, struct corners *c)
{
	const struct measured_table *t = f->table;
	uint16_t low[MEASURED_MAX_AXES], level[MEASURED_MAX_AXES];
	double part[MEASURED_MAX_AXES];
	size_t between[MEASURED_MAX_AXES], n = 0;

	for (size_t a = 0; a < t->n_axes; a++) {
		low[a] = level[a] = locate(&t->axis[a], q->value[a], &part[a]);
		c->z[a] = log(q->value[a]);
		if (part[a] > 0.0)
			between[n++] = a;
	}
	if (n > MOST_BETWEEN)
		return;
	for (unsigned which = 0; which < 1u << n; which++) {
		double weight = 1.0;
		int32_t setting;

		for (size_t k = 0; k < n; k++) {
			size_t a = between[k];
			bool high = which >> k & 1;

			level[a] = (uint16_t)(low[a] + high);
			weight *= high ? part[a] : 1.0 - part[a];
		}
		setting = measured_table_find(t, q->combo, level);
		if (setting >= 0)
			add_corner(f, (size_t)setting, weight, c);
	}
}

static double distance(const struct measured_table *t, const double *z, const struct measured_setting *s)
{
	double sum = 1e-12; /* a question that rounding puts on a setting */

	for (size_t a = 0; a < t->n_axes; a++) {
		double d = (z[a] - s->z[a]) * t->axis[a].scale;

		sum += d * d;
	}
	return sum;
}

/* The nearest that happened, nearest first; of equally near ones those that come first in the table. */
static void find_nearest(const struct measured_fold *f, uint32_t combo, struct corners *c)
{
	const struct measured_table *t = f->table;
	double far[NEAREST];

	for (size_t i = measured_table_first(t, combo); i < t->n_settings && t->setting[i].combo == combo;
	     i++) {
		double d = distance(t, c->z, &t->setting[i]);
		size_t at = c->n;

		if (!f->happened[i].n_levels || (c->n == NEAREST && d >= far[NEAREST - 1]))
			continue;
		if (c->n == NEAREST)
			at--;
		else
			c->n++;
		for (; at && far[at - 1] > d; at--) {
			far[at] = far[at - 1];
			c->corner[at] = c->corner[at - 1];
		}
		far[at] = d;
		c->corner[at] = (struct corner){ &t->setting[i], &f->happened[i], 1.0 / d };
	}
}

static bool find_corners(const struct measured_fold *f, const struct measured_question *q, struct corners *c)
{
	double sum = 0.0;

	c->n = 0;
	find_cell(f, q, c);
	if (!c->n)
		find_nearest(f, q->combo, c);
	for (size_t i = 0; i < c->n; i++)
		sum += c->corner[i].weight;
	for (size_t i = 0; i < c->n; i++)
		c->corner[i].weight /= sum;
	return c->n > 0;
}

/* From a corner to the question along the slopes. */
static double step_to(const struct measured_table *t, const double *z, const struct measured_setting *s,
		      const double *slope)
{
	double step = 0.0;

	for (size_t a = 0; a < t->n_axes; a++)
		step += slope[a] * (z[a] - s->z[a]);
	return step;
}

/* ---- what one of them says ---- */

/* Linear between order statistics. */
static double quantile(const double *sorted, uint32_t n, double u)
{
	double h = u * (double)(n - 1);
	uint32_t i = (uint32_t)h;

	if (i + 1 >= n)
		return sorted[n - 1];
	return sorted[i] + (h - i) * (sorted[i + 1] - sorted[i]);
}

/* A setting measured at one load alone says nothing of others: processes beyond the cores share them. */
static void add_sharing(const struct measured_fold *f, const struct measured_setting *s,
			struct measured_course *out)
{
	const struct measured_table *t = f->table;
	double cpus = t->axis[t->cpus_axis].level[s->level[t->cpus_axis]];
	double full = fmax(f->cores, cpus + out->others[0]);

	if (full - cpus > out->others[0]) {
		out->others[1] = full - cpus;
		out->time_s[1] = out->time_s[0];
		out->n = 2;
	}
	out->slope = out->time_s[0] / full;
}

/* The line through the last two loads. Where these are close, as in a history, noise could make it as steep
 * as it likes: beyond the square of the load, which even thrashing hardly does, nothing is believed. */
static double end_slope(const struct measured_table *t, const struct measured_setting *s,
			const struct measured_course *c)
{
	uint32_t last = c->n - 1;
	double processes = t->axis[t->cpus_axis].level[s->level[t->cpus_axis]] + c->others[last];
	double slope = (c->time_s[last] - c->time_s[last - 1]) / (c->others[last] - c->others[last - 1]);

	return fmin(slope, 2.0 * c->time_s[last] / processes);
}

static void course_of(const struct measured_fold *f, const struct corner *c, double u,
		      struct measured_course *out)
{
	out->n = c->happened->n_levels;
	for (uint32_t i = 0; i < out->n; i++) {
		const struct measured_level *l = &f->level[c->happened->level + i];
		double time = quantile(f->time + l->first, l->n, u);

		/* more load never makes a job faster: what looks so is noise */
		out->time_s[i] = i && time < out->time_s[i - 1] ? out->time_s[i - 1] : time;
		out->others[i] = l->others;
	}
	if (out->n == 1)
		add_sharing(f, c->setting, out);
	else
		out->slope = end_slope(f->table, c->setting, out);
}

double measured_course_at(const struct measured_course *c, double others)
{
	uint32_t i = 0, last = c->n - 1;
	double part;

	if (others >= c->others[last])
		return c->time_s[last] + c->slope * (others - c->others[last]);
	if (others <= c->others[0])
		return c->time_s[0];
	while (others > c->others[i + 1])
		i++;
	part = (others - c->others[i]) / (c->others[i + 1] - c->others[i]);
	return c->time_s[i] + part * (c->time_s[i + 1] - c->time_s[i]);
}

/* ---- what they say together ---- */

static void insert_knot(double *knot, size_t *n, double v)
{
	size_t at = *n;

	for (size_t i = 0; i < *n; i++)
		if (knot[i] == v)
			return;
	for (; at && knot[at - 1] > v; at--)
		knot[at] = knot[at - 1];
	knot[at] = v;
	++*n;
}

/* The loads at which any of them was measured; if these are too many, some of them, the first and the last
 * included. */
static void put_knots(const struct measured_course *course, size_t n, struct measured_course *out)
{
	double knot[MOST_CORNERS * MEASURED_MAX_KNOTS];
	size_t knots = 0;

	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < course[i].n; k++)
			insert_knot(knot, &knots, course[i].others[k]);
	out->n = knots < MEASURED_MAX_KNOTS ? (uint32_t)knots : MEASURED_MAX_KNOTS;
	for (uint32_t k = 0; k < out->n; k++)
		out->others[k] = knots == out->n ? knot[k] : knot[k * (knots - 1) / (MEASURED_MAX_KNOTS - 1)];
}

static void combine(const struct measured_fold *f, const struct corners *c,
		    const struct measured_course *course, const double *slope, struct measured_course *out)
{
	double step = 0.0, relative = 0.0;

	put_knots(course, c->n, out);
	for (size_t i = 0; i < c->n; i++)
		step += c->corner[i].weight * step_to(f->table, c->z, c->corner[i].setting, slope);
	step = fmax(-MOST_STEP, fmin(MOST_STEP, step));
	for (uint32_t k = 0; k < out->n; k++) {
		double sum = step;

		for (size_t i = 0; i < c->n; i++)
			sum += c->corner[i].weight * log(measured_course_at(&course[i], out->others[k]));
		out->time_s[k] = exp(sum);
		if (k && out->time_s[k] < out->time_s[k - 1]) /* by rounding */
			out->time_s[k] = out->time_s[k - 1];
	}
	for (size_t i = 0; i < c->n; i++)
		relative += c->corner[i].weight * course[i].slope /
			    measured_course_at(&course[i], out->others[out->n - 1]);
	out->slope = relative * out->time_s[out->n - 1];
}

static double accuracy_of(const struct measured_fold *f, const struct corners *c, const double *slope,
			  double u)
{
	double sum = 0.0, weight = 0.0;

	for (size_t i = 0; i < c->n; i++) {
		const struct measured_happened *h = c->corner[i].happened;

		if (!h->n_accuracies)
			continue;
		sum += c->corner[i].weight * (quantile(f->accuracy + h->accuracy, h->n_accuracies, u) +
					      step_to(f->table, c->z, c->corner[i].setting, slope));
		weight += c->corner[i].weight;
	}
	if (!(weight > 0.0))
		return NAN;
	return fmax(f->least_accuracy, fmin(f->most_accuracy, sum / weight));
}

bool measured_ask(const struct measured_fold *f, const struct measured_question *q,
		  struct measured_course *out, double *out_accuracy)
{
	struct measured_course course[MOST_CORNERS];
	struct corners c;
	size_t slopes = q->combo * f->table->n_axes;

	if (!find_corners(f, q, &c))
		return false;
	*out_accuracy = accuracy_of(f, &c, f->accuracy_slope + slopes, q->accuracy_u);
	for (size_t i = 0; i < c.n; i++)
		course_of(f, &c.corner[i], q->time_u, &course[i]);
	if (c.n == 1 && step_to(f->table, c.z, c.corner[0].setting, f->time_slope + slopes) == 0.0)
		*out = course[0]; /* measured as it is: not a bit of it is lost in logarithms */
	else
		combine(f, &c, course, f->time_slope + slopes, out);
	return true;
}
