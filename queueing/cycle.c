/* Mean value analysis of one closed cycle, and its fit. See cycle.h. */
#include "queueing/cycle.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multimin.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define N_FACTORS 3
#define MOST_STEPS 400
#define FOLLOWED 64.0 /* processes, at least, one by one: it is the few that a table of runs has */
#define STRAIGHT 1e-12 /* of a time: what may be lost where the rest is a straight line */
#define MOST_LOG 12.0 /* of a factor: beyond, it makes no difference */

struct state { /* means with n processes in the cycle */
	double cpu, disk; /* how many are there */
	double idle[CYCLE_EXACT_CORES]; /* probability of so many at the cores, below their number */
};

/* Unlike fmax() no call; where one of them is NaN, so is the time. */
static inline double greater(double a, double b)
{
	return b > a ? b : a;
}

struct stations { /* of the cycle, and what a step would divide out again and again */
	double cpu_s, disk_s, delay_s, cores;
	double each; /* cpu_s / cores */
	double inverse; /* of the cores, where that is exact: they are a power of two; else 0 */
	bool counted; /* the cores are few enough to be followed one by one */
};

static double residence_at_cores(const struct state *s, const struct stations *c)
{
	double waiting = 1.0 + s->cpu;

	if (isinf(c->cores))
		return c->cpu_s;
	if (!c->counted)
		return c->cpu_s * greater(1.0, waiting / c->cores);
	for (size_t j = 0; j + 1 < (size_t)c->cores; j++)
		waiting += (c->cores - 1.0 - (double)j) * s->idle[j];
	return greater(c->cpu_s, c->each * waiting); /* never below what it takes alone */
}

/* One process more. Returns the time of a cycle. A division takes as long as four of the other operations,
 * and each step waits for the one before. */
static inline double add_process(struct state *s, const struct stations *c, double n)
{
	double at_cpu = residence_at_cores(s, c), at_disk = c->disk_s * (1.0 + s->disk);
	double cycle = at_cpu + at_disk + c->delay_s, rate = cycle > 0.0 ? n / cycle : 0.0, some = 0.0, busy;

	s->cpu = rate * at_cpu;
	s->disk = rate * at_disk;
	if (!c->counted || isinf(c->cores))
		return cycle;
	busy = rate * c->cpu_s;
	for (size_t j = (size_t)c->cores - 1; j >= 1; j--) {
		s->idle[j] = (j > 1 ? busy / (double)j : busy) * s->idle[j - 1];
		some += (c->cores - (double)j) * s->idle[j];
	}
	some += busy;
	/* rounding may go below */
	s->idle[0] = greater(0.0, 1.0 - (c->inverse > 0.0 ? some * c->inverse : some / c->cores));
	return cycle;
}

double cycle_time_s(double cpu_s, double cores, double disk_s, double delay_s, double processes)
{
	struct stations c = { .cpu_s = cpu_s, .disk_s = disk_s, .delay_s = delay_s };
	struct state s = { .idle = { 1.0 } };
	double n = fmin(greater(1.0, processes), CYCLE_MOST), whole = floor(n), time = 0.0, steepest, k;
	int exponent;

	c.cores = isinf(cores) ? cores : greater(1.0, round(cores));
	c.counted = c.cores <= CYCLE_EXACT_CORES;
	c.each = cpu_s / c.cores;
	c.inverse = frexp(c.cores, &exponent) == 0.5 ? 1.0 / c.cores : 0.0;
	steepest = greater(isinf(cores) ? 0.0 : c.each, disk_s);
	for (k = 1.0; k <= whole; k++) {
		double last = time;

		/* never shorter with one process more; rounding may say otherwise */
		time = greater(last, add_process(&s, &c, k));
		/* The more there are, the nearer a step comes to what the busiest place needs: the rest is
		 * then a straight line. */
		if (k >= FOLLOWED && fabs(steepest - (time - last)) * (n - k) <= STRAIGHT * time)
			return time + (greater(n, processes) - k) * steepest;
	}
	if (n != whole)
		time += (n - whole) * greater(0.0, add_process(&s, &c, k) - time);
	return time + (greater(n, processes) - n) * steepest;
}

/* ---- the fit ---- */

/* With one process beside nobody: what the factors of a cycle do not change. */
static struct calibrate_parts alone(const struct calibrated *c, const struct calibrate_job *job)
{
	struct calibrate_job one = *job;

	one.processes = 1.0;
	return calibrate_parts_of(c, &one);
}

static double time_of(const struct calibrated *c, const struct cycle *m, const struct calibrate_job *job,
		      const struct calibrate_parts *p)
{
	/* a job wider than the machine is stretched alone, and the disk by its one process: take both back */
	double n = job->iterations, stretch = greater(1.0, job->cpus / c->value[CALIBRATE_CORES]);
	double queue_s = p->disk_s / (1.0 + 1.0 / c->value[CALIBRATE_SATURATION]) / n;

	return p->start_s + n * cycle_time_s(m->cpu * p->cpu_s / n / stretch, c->value[CALIBRATE_CORES],
					     m->disk * queue_s, p->delay_s / n + m->rest * queue_s,
					     greater(job->cpus, job->processes));
}

double cycle_job_s(const struct calibrated *c, const struct cycle *m, const struct calibrate_job *job)
{
	struct calibrate_parts p = alone(c, job);

	return time_of(c, m, job, &p);
}

struct search {
	const struct calibrate_params *p;
	const struct calibrated *c;
	struct calibrate_parts *alone; /* of each row */
	double *log_t; /* NaN: it has no time */
	size_t n;
};

static struct cycle factors_of(const gsl_vector *u)
{
	double v[N_FACTORS];

	for (size_t i = 0; i < N_FACTORS; i++)
		v[i] = exp(fmax(fmin(gsl_vector_get(u, i), MOST_LOG), -MOST_LOG));
	return (struct cycle){ .cpu = v[0], .disk = v[1], .rest = v[2] };
}

static double squares(const gsl_vector *u, void *owner)
{
	struct search *s = owner;
	struct cycle m = factors_of(u);
	double sum = 0.0;

	s->n = 0;
	for (size_t i = 0; i < s->p->n; i++) {
		double said, e;

		if (isnan(s->log_t[i]))
			continue;
		said = time_of(s->c, &m, &s->p->job[i], &s->alone[i]);
		if (!(said > 0.0) || !isfinite(said))
			continue;
		e = s->log_t[i] - log(said);
		sum += e * e;
		s->n++;
	}
	return s->n ? sum / (double)s->n : 1e9;
}

int cycle_fit(const struct calibrate_params *p, const struct calibrated *c, struct cycle *out,
	      struct err *err)
{
	struct search s = { .p = p, .c = c };
	gsl_multimin_function f = { squares, N_FACTORS, &s };
	gsl_vector *at = gsl_vector_alloc(N_FACTORS), *step = gsl_vector_alloc(N_FACTORS);
	gsl_multimin_fminimizer *m =
		gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, N_FACTORS);
	bool done = false;
	int rc;

	s.alone = mem_array(p->n + 1, sizeof *s.alone);
	s.log_t = mem_array(p->n + 1, sizeof *s.log_t);
	rc = at && step && m && s.alone && s.log_t ? 0 : err_nomem(err, "the closed cycle");
	for (size_t i = 0; !rc && i < p->n; i++) {
		double t = p->time_s[i];

		s.alone[i] = alone(c, &p->job[i]);
		s.log_t[i] = t > 0.0 && isfinite(t) ? log(t) : NAN;
	}
	if (!rc) {
		gsl_vector_set(at, 0, 0.0);
		gsl_vector_set(at, 1, log(0.5));
		gsl_vector_set(at, 2, log(0.5));
		gsl_vector_set_all(step, 0.5);
		gsl_multimin_fminimizer_set(m, &f, at, step);
	}
	for (size_t i = 0; !rc && !done && i < MOST_STEPS; i++) {
		rc = err_if_stopped(p->stop, err);
		if (!rc && gsl_multimin_fminimizer_iterate(m))
			break;
		done = gsl_multimin_fminimizer_size(m) < 1e-4;
	}
	if (!rc) {
		double best = squares(m->x, &s);

		*out = factors_of(m->x);
		out->sd = sqrt(best);
		if (!s.n)
			rc = err_fail(err, ERR_NODATA, "no row has a time above 0");
	}
	free(s.alone);
	free(s.log_t);
	gsl_multimin_fminimizer_free(m);
	if (at)
		gsl_vector_free(at);
	if (step)
		gsl_vector_free(step);
	return rc;
}
