/* For each job that runs: the seconds it still takes if nothing changes (left_s), and the seconds that the
 * whole of it takes at the present load (whole_s). Time that passes is taken off left_s; when the load
 * changes, left_s is stretched like whole_s. So the next end is the least left_s, and the loops that an
 * event costs run over plain arrays.
 *
 * Rates are brought up to date as late as possible: where a job ends and another of as many cpus takes its
 * place at the same moment, the load is what it was, and only the new one's law is asked for. */
#include "sim/world/sharing.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define LEAST_S 1e-15 /* a whole job: keeps divisions finite */
#define MOST_S 1e15 /* thirty million years */
#define NS_PER_S 1e9

struct since { /* when a job started */
	double at_s, processes_s, jobs_s; /* the moment, and the integrals then */
};

struct sharing {
	struct sharing_params params;
	double now_s;
	bool drifted; /* the moment of the drift has passed */
	double stretch; /* of all times: 1, or 1 + drift */

	size_t n, cap;
	double *left_s, *whole_s; /* n; whole_s only of the first n_rated */
	struct sharing_job *job;
	struct since *since;
	char *payload; /* n x params.payload_size bytes */
	uint64_t processes; /* sum of cpus */
	uint64_t *held; /* the same by kind; params.n_kinds */

	/* jobs whose left_s and whole_s are seconds; of the others left_s is a part of the work */
	size_t n_rated;
	uint64_t rated_at; /* the processes they were rated at */
	bool mixed; /* the kinds that run have changed since */
	size_t next; /* index of the next to end */
	bool next_known;

	double processes_s, jobs_s; /* integrals over time since the machine was last empty */
	double busy_s;
	uint64_t events;
};

int sharing_new(const struct sharing_params *p, struct sharing **out, struct err *err)
{
	struct sharing *s;

	if (!p->law || !(p->cores > 0.0))
		return err_fail(err, ERR_ARG, "%g cores: need a law of times and more than 0", p->cores);
	if (!(p->drift > -1.0 && isfinite(p->drift)) || isnan(p->drift_at_s))
		return err_fail(err, ERR_ARG, "a drift of %g at %g s: need more than -1 and a moment",
				p->drift, p->drift_at_s);
	s = mem_calloc(1, sizeof *s);
	if (!s)
		return err_nomem(err, "the jobs of a machine");
	s->params = *p;
	s->held = mem_calloc(p->n_kinds ? p->n_kinds : 1, sizeof *s->held);
	if (!s->held) {
		sharing_free(s);
		return err_nomem(err, "the jobs of a machine");
	}
	s->drifted = p->drift == 0.0 || p->drift_at_s <= 0.0;
	s->stretch = s->drifted ? 1.0 + p->drift : 1.0;
	*out = s;
	return 0;
}

void sharing_free(struct sharing *s)
{
	if (!s)
		return;
	free(s->left_s);
	free(s->whole_s);
	free(s->job);
	free(s->since);
	free(s->payload);
	free(s->held);
	free(s);
}

static bool resize(void *array, size_t n, size_t size)
{
	void *p, *grown;

	memcpy(&p, array, sizeof p);
	grown = mem_resize(p, n, size);
	if (grown)
		memcpy(array, &grown, sizeof grown);
	return grown != NULL;
}

/* If one array cannot grow, those that have grown stay larger: cap is what all of them have. */
static int reserve(struct sharing *s, size_t need, struct err *err)
{
	size_t cap = s->cap ? s->cap : 16;

	if (need <= s->cap)
		return 0;
	while (cap < need)
		cap *= 2;
	if (!resize(&s->left_s, cap, sizeof *s->left_s) || !resize(&s->whole_s, cap, sizeof *s->whole_s) ||
	    !resize(&s->job, cap, sizeof *s->job) || !resize(&s->since, cap, sizeof *s->since) ||
	    (s->params.payload_size && !resize(&s->payload, cap, s->params.payload_size)))
		return err_nomem(err, "%zu jobs that run at the same time", need);
	s->cap = cap;
	return 0;
}

int sharing_copy(struct sharing *to, const struct sharing *from, struct err *err)
{
	struct sharing kept;
	int rc = to == from ? 0 : reserve(to, from->n, err);

	if (rc || to == from)
		return rc;
	kept = *to;
	*to = *from;
	to->params = kept.params; /* the owner of the law may hold what its own jobs are like */
	to->cap = kept.cap;
	to->left_s = kept.left_s;
	to->whole_s = kept.whole_s;
	to->job = kept.job;
	to->since = kept.since;
	to->payload = kept.payload;
	to->held = kept.held;
	memcpy(to->held, from->held, to->params.n_kinds * sizeof *to->held); /* both are of one world */
	if (from->n) {
		memcpy(to->left_s, from->left_s, from->n * sizeof *to->left_s);
		memcpy(to->whole_s, from->whole_s, from->n * sizeof *to->whole_s);
		memcpy(to->job, from->job, from->n * sizeof *to->job);
		memcpy(to->since, from->since, from->n * sizeof *to->since);
		if (to->params.payload_size)
			memcpy(to->payload, from->payload, from->n * to->params.payload_size);
	}
	return 0;
}

/* ---- rates ---- */

static void *payload_of(const struct sharing *s, size_t i)
{
	return s->params.payload_size ? s->payload + i * s->params.payload_size : NULL;
}

/* What the kinds beside job i do to its time. */
static double pair_factor(const struct sharing *s, size_t i)
{
	const double *pair = s->params.log_pair + s->job[i].kind * s->params.n_kinds;
	double sum = 0.0;

	for (size_t g = 0; g < s->params.n_kinds; g++)
		sum += pair[g] * (double)s->held[g];
	return exp(sum / fmax(s->params.cores, (double)s->processes));
}

static double whole_of(const struct sharing *s, size_t i)
{
	double t;

	s->job[i].payload = payload_of(s, i);
	t = s->params.law(s->params.owner, &s->job[i], (double)s->processes) * s->job[i].slow * s->stretch;
	if (s->params.n_kinds)
		t *= pair_factor(s, i);
	assert(!isnan(t)); /* laws are ours */
	return t < LEAST_S ? LEAST_S : t > MOST_S ? MOST_S : t;
}

static void rate_all(struct sharing *s)
{
	for (size_t i = 0; (s->processes != s->rated_at || s->mixed) && i < s->n_rated; i++) {
		double whole = whole_of(s, i);

		s->left_s[i] *= whole / s->whole_s[i];
		s->whole_s[i] = whole;
	}
	s->rated_at = s->processes;
	s->mixed = false;
	for (; s->n_rated < s->n; s->n_rated++) {
		s->whole_s[s->n_rated] = whole_of(s, s->n_rated);
		s->left_s[s->n_rated] *= s->whole_s[s->n_rated];
	}
}

static void find_next(struct sharing *s)
{
	double least = INFINITY;

	if (s->next_known)
		return;
	rate_all(s);
	for (size_t i = 0; i < s->n; i++)
		if (s->left_s[i] < least) {
			least = s->left_s[i];
			s->next = i;
		}
	s->next_known = true;
}

/* When a job ends that has left_s to go: beyond the drift all takes longer. */
static double moment_of(const struct sharing *s, double left_s)
{
	double at = s->now_s + left_s;

	if (!s->drifted && at > s->params.drift_at_s)
		at = s->params.drift_at_s + (at - s->params.drift_at_s) * (1.0 + s->params.drift);
	return at;
}

/* ---- time ---- */

/* No left_s falls below 0: the start of a job is rounded up to the next nanosecond, in which others may have
 * ended. */
static void pass(struct sharing *s, double dt)
{
	double p = (double)s->processes;

	if (!(dt > 0.0))
		return;
	for (size_t i = 0; i < s->n; i++)
		s->left_s[i] = s->left_s[i] > dt ? s->left_s[i] - dt : 0.0;
	s->processes_s += p * dt;
	s->jobs_s += (double)s->n * dt;
	s->busy_s += (p < s->params.cores ? p : s->params.cores) * dt;
}

static void pass_drift(struct sharing *s)
{
	double factor = 1.0 + s->params.drift;

	pass(s, s->params.drift_at_s - s->now_s);
	for (size_t i = 0; i < s->n; i++) {
		s->left_s[i] *= factor;
		s->whole_s[i] *= factor;
	}
	s->now_s = s->params.drift_at_s;
	s->stretch = factor;
	s->drifted = true;
	s->events++;
}

/* The jobs are all rated. */
static void pass_until(struct sharing *s, double at_s)
{
	if (!s->drifted && at_s > s->params.drift_at_s)
		pass_drift(s);
	if (at_s > s->now_s) {
		pass(s, at_s - s->now_s);
		s->now_s = at_s;
	}
	if (!s->n) /* small integrals have small rounding errors */
		s->processes_s = s->jobs_s = 0.0;
}

/* ---- starts and ends ---- */

static void count_kind(struct sharing *s, const struct sharing_job *j, bool starts)
{
	if (!s->params.n_kinds)
		return;
	if (starts)
		s->held[j->kind] += j->cpus;
	else
		s->held[j->kind] -= j->cpus;
	s->mixed = true;
}

static int check(double now_s, const struct sharing_job *j, struct err *err)
{
	if (isfinite(now_s) && j->cpus >= 1 && j->slow > 0.0 && isfinite(j->slow) && j->until >= 0.0 &&
	    j->until <= 1.0)
		return 0;
	return err_fail(err, ERR_ARG,
			"job %llu: %u cpus, %g times as slow, until %g of its work, at %g s: need at least 1 "
			"cpu, more "
			"than 0, from 0 to 1, and a moment",
			(unsigned long long)j->id, j->cpus, j->slow, j->until, now_s);
}

int sharing_start(struct sharing *s, double now_s, const struct sharing_job *j, struct err *err)
{
	int rc = check(now_s, j, err);

	if (!rc && s->params.n_kinds && j->kind >= s->params.n_kinds)
		rc = err_fail(err, ERR_ARG, "job %llu is of kind %u: there are %zu",
			      (unsigned long long)j->id, j->kind, s->params.n_kinds);
	if (!rc)
		rc = reserve(s, s->n + 1, err);
	if (rc)
		return rc;
	if (now_s > s->now_s) {
		rate_all(s);
		pass_until(s, now_s);
	}
	s->job[s->n] = *j;
	if (s->params.payload_size)
		memcpy(payload_of(s, s->n), j->payload, s->params.payload_size);
	s->left_s[s->n] = j->until;
	s->since[s->n] = (struct since){ s->now_s, s->processes_s, s->jobs_s };
	s->n++;
	count_kind(s, j, true);
	s->processes += j->cpus;
	s->next_known = false;
	s->events++;
	return 0;
}

double sharing_next_s(struct sharing *s)
{
	if (!s->n)
		return INFINITY;
	find_next(s);
	return moment_of(s, s->left_s[s->next]);
}

/* Among those that end in the nanosecond of the first, the one with the lowest id. */
static size_t first_of_equals(const struct sharing *s)
{
	double last_ns = ceil(moment_of(s, s->left_s[s->next]) * NS_PER_S);
	/* far more than a nanosecond and the rounding of a moment: one comparison rules out most jobs */
	double margin = s->left_s[s->next] + 1e-7 + s->now_s * 1e-15;
	size_t first = s->next;

	for (size_t i = 0; i < s->n; i++)
		if (s->left_s[i] <= margin && moment_of(s, s->left_s[i]) * NS_PER_S <= last_ns &&
		    s->job[i].id < s->job[first].id)
			first = i;
	return first;
}

/* Rounding may put a mean a hair below what the job itself brings. */
static double mean_of(double integral, double duration, double own)
{
	double mean = duration > 0.0 ? integral / duration : own;

	return mean < own ? own : mean;
}

static void remove_job(struct sharing *s, size_t i)
{
	size_t last = --s->n;

	count_kind(s, &s->job[i], false);
	s->processes -= s->job[i].cpus;
	s->left_s[i] = s->left_s[last];
	s->whole_s[i] = s->whole_s[last];
	s->job[i] = s->job[last];
	s->since[i] = s->since[last];
	if (i != last && s->params.payload_size)
		memcpy(payload_of(s, i), payload_of(s, last), s->params.payload_size);
	s->n_rated = s->n;
	s->next_known = false;
}

/* It leaves now. */
static void leave(struct sharing *s, size_t i, struct sharing_end *out)
{
	const struct since *since = &s->since[i];
	double duration = s->now_s - since->at_s;

	out->job = s->job[i];
	out->at_s = s->now_s;
	out->processes = mean_of(s->processes_s - since->processes_s, duration, s->job[i].cpus);
	out->njobs = mean_of(s->jobs_s - since->jobs_s, duration, 1.0);
	out->done = 1.0;
	if (s->left_s[i] > 0.0 && s->job[i].until > 0.0)
		out->done = fmax(0.0, 1.0 - s->left_s[i] / (s->whole_s[i] * s->job[i].until));
	remove_job(s, i);
	s->events++;
}

bool sharing_end(struct sharing *s, struct sharing_end *out)
{
	size_t i;

	if (!s->n)
		return false;
	find_next(s);
	i = first_of_equals(s);
	pass_until(s, moment_of(s, s->left_s[i]));
	s->left_s[i] = 0.0;
	leave(s, i, out);
	return true;
}

/* Where a job is, and all of them as they are at that moment. */
static bool find_at(struct sharing *s, double now_s, uint64_t id, size_t *out)
{
	size_t i = 0;

	while (i < s->n && s->job[i].id != id)
		i++;
	if (i == s->n)
		return false;
	rate_all(s);
	pass_until(s, now_s);
	*out = i;
	return true;
}

bool sharing_stop(struct sharing *s, double now_s, uint64_t id, struct sharing_end *out)
{
	size_t i = 0;

	if (!find_at(s, now_s, id, &i))
		return false;
	leave(s, i, out);
	return true;
}

bool sharing_progress(struct sharing *s, double now_s, uint64_t id, double *out)
{
	size_t i = 0;

	if (!find_at(s, now_s, id, &i))
		return false;
	*out = fmin(fmax(s->job[i].until - s->left_s[i] / s->whole_s[i], 0.0), 1.0);
	return true;
}

double sharing_busy_s(const struct sharing *s)
{
	return s->busy_s;
}

uint64_t sharing_events(const struct sharing *s)
{
	return s->events;
}
