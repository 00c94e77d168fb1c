/* The upper bound of large instances.
 *
 * Let T(P) be the time that an option of a job with c cpus takes where P processes run, and K (share_s) the
 * least of T(P) c / P over all P that the slots allow. A job that runs beside P processes gets on at the
 * rate 1 / T(P), which is at most c / (P K). So the sum of rate x K over the running jobs is at most the
 * sum of c over P, which is 1: to end, an option takes K seconds of a machine that hands out one second a
 * second, whatever binds (cores, disk, slots). It takes them between its arrival and its deadline, and at a
 * rate of at most K / least_s. Every schedule obeys that, so none is worth more than the best choice of
 * options that does, in parts and with interruptions.
 *
 * That is a linear program. Any price of the machine by time, p(t) >= 0, bounds it from above: the integral
 * of p, and for each job the most that an option's accuracy exceeds its cheapest seconds by, or 0. The
 * price is constant in cells, and found by subgradient steps from 0; the least bound seen is returned. More
 * steps make it tighter, none makes it wrong. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "sim/replay/optimum.h"

#define STEPS 400
#define MAX_PAIRS 100000 /* of a job and a cell of its window: a step costs so much */
#define ROUNDING 1e-9 /* of the sums */

struct priced { /* a cell of one job's window */
	double price, length_s;
	size_t cell;
};

struct cells {
	size_t n;
	double *edge; /* n + 1, s */
	double *price, *used; /* n */
	struct priced *window; /* scratch: of one job, the cheapest first */
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void cells_release(struct cells *c)
{
	free(c->edge);
	free(c->price);
	free(c->used);
	free(c->window);
}

static size_t cell_of(const double *edge, size_t n, double at_s)
{
	size_t low = 0, high = n;

	while (low + 1 < high) {
		size_t middle = (low + high) / 2;

		if (edge[middle] <= at_s)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Edges at arrivals and deadlines; where windows have too many of them, at every so many. */
static int cells_make(const struct optimum_jobs *j, struct cells *c, struct err *err)
{
	size_t n = 2 * j->n, pairs = 0, every, kept = 0;

	c->edge = mem_array(n + 1, sizeof *c->edge);
	c->price = mem_calloc(n + 1, sizeof *c->price);
	c->used = mem_calloc(n + 1, sizeof *c->used);
	c->window = mem_array(n + 1, sizeof *c->window);
	if (!c->edge || !c->price || !c->used || !c->window)
		return err_nomem(err, "the bound of %zu jobs", j->n);
	for (size_t i = 0; i < j->n; i++) {
		c->edge[2 * i] = 1e-9 * (double)j->job[i].arrival_ns;
		c->edge[2 * i + 1] = 1e-9 * (double)j->job[i].deadline_ns;
	}
	qsort(c->edge, n, sizeof *c->edge, by_value);
	for (size_t i = 0; i < j->n; i++)
		pairs += cell_of(c->edge, n, 1e-9 * (double)j->job[i].deadline_ns) -
			 cell_of(c->edge, n, 1e-9 * (double)j->job[i].arrival_ns);
	every = 1 + pairs / MAX_PAIRS;
	for (size_t i = 0; i < n; i++)
		if ((i % every == 0 || i + 1 == n) && (!kept || c->edge[i] > c->edge[kept - 1]))
			c->edge[kept++] = c->edge[i];
	c->n = kept > 1 ? kept - 1 : 0;
	return 0;
}

static int by_price(const void *a, const void *b)
{
	const struct priced *x = a, *y = b;

	return x->price != y->price ? (x->price > y->price ? 1 : -1)
				    : (x->cell > y->cell) - (x->cell < y->cell);
}

static size_t cheapest_first(struct cells *c, double from_s, double to_s)
{
	size_t n = 0;

	for (size_t i = cell_of(c->edge, c->n, from_s); i < c->n && c->edge[i] < to_s; i++)
		c->window[n++] = (struct priced){ c->price[i],
						  fmin(to_s, c->edge[i + 1]) - fmax(from_s, c->edge[i]), i };
	qsort(c->window, n, sizeof *c->window, by_price);
	return n;
}

/* The cheapest seconds of an option; `used`: they are counted there, unless NULL. */
static double cost_of(const struct cells *c, const struct optimum_option *o, size_t n, double *used)
{
	double left = o->share_s, rate = o->share_s / o->least_s, cost = 0.0;

	for (size_t i = 0; i < n && left > 0.0; i++) {
		const struct priced *w = &c->window[i];
		double part = fmin(left, rate * w->length_s);

		cost += part * w->price;
		if (used)
			used[w->cell] += part;
		left -= part;
	}
	return cost;
}

/* The bound at these prices, and what the jobs would then use. */
static double bound_at(const struct optimum_jobs *j, struct cells *c)
{
	double sum = 0.0;

	memset(c->used, 0, c->n * sizeof *c->used);
	for (size_t i = 0; i < c->n; i++)
		sum += c->price[i] * (c->edge[i + 1] - c->edge[i]);
	for (size_t i = 0; i < j->n; i++) {
		const struct optimum_job *job = &j->job[i];
		double from_s = 1e-9 * (double)job->arrival_ns, to_s = 1e-9 * (double)job->deadline_ns;
		double best = 0.0;
		size_t n = cheapest_first(c, from_s, to_s), chosen = job->n_options;

		for (size_t o = 0; o < job->n_options; o++) {
			double gain = job->option[o].accuracy - cost_of(c, &job->option[o], n, NULL);

			if (gain > best) {
				best = gain;
				chosen = o;
			}
		}
		if (chosen < job->n_options)
			cost_of(c, &job->option[chosen], n, c->used);
		sum += best;
	}
	return sum;
}

/* What a second of the machine may be worth: the accuracy of the smallest option by the seconds it takes. */
static double price_scale(const struct optimum_jobs *j)
{
	double sum = 0.0;

	for (size_t i = 0; i < j->n; i++) {
		const struct optimum_option *o = j->job[i].option, *small = o;

		for (size_t k = 1; k < j->job[i].n_options; k++)
			if (o[k].share_s < small->share_s)
				small = &o[k];
		sum += small->accuracy / small->share_s;
	}
	return sum / (double)j->n;
}

int optimum_bound(const struct optimum_jobs *j, double *out_value, struct err *err)
{
	struct cells c = { 0 };
	double best = INFINITY, scale;
	int status = cells_make(j, &c, err);

	scale = j->n ? price_scale(j) : 0.0;
	for (int step = 1; !status && step <= STEPS; step++) {
		best = fmin(best, bound_at(j, &c));
		for (size_t i = 0; i < c.n; i++) {
			/* a burst asks for many times what there is: such steps would never come back */
			double over = fmin(1.0, c.used[i] / (c.edge[i + 1] - c.edge[i]) - 1.0);

			c.price[i] = fmax(0.0, c.price[i] + scale * over / (4.0 + step));
		}
	}
	if (!status)
		*out_value = j->n ? best * (1.0 + ROUNDING) : 0.0;
	cells_release(&c);
	return status;
}
