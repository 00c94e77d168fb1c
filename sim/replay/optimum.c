/* The exact search: depth first over the events. At each event every waiting job is started with one of its
 * options, waits on, or is turned away for good; the world itself says what happens until the next event. A
 * branch is cut when a job that was started would be late (running it in vain only slows the others down)
 * and when all that is not turned away, each with the best option it can still have, adds up to no more
 * than the best schedule known. */
#include "sim/replay/optimum.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define AWAY (-1)
#define WAITS (-2)
#define AHEAD (-3) /* has not arrived */
#define SAME 1e-12 /* values nearer than this are equal: sums in another order */

struct search {
	const struct optimum_jobs *j;
	struct world_run **run; /* by depth */
	struct world_run *look;
	size_t depths;
	uint32_t slots;
	struct optimum_start *now; /* .option also AWAY, WAITS, AHEAD */
	struct optimum_plan *best;
	uint64_t max_steps;
};

struct event {
	size_t depth;
	int64_t at_ns;
	size_t arrived; /* jobs of the trace */
	uint32_t used; /* slots */
};

static int64_t ns_of(double s)
{
	return s < 9e9 ? (int64_t)(1e9 * s) : INT64_MAX / 2;
}

static bool can_be_in_time(const struct optimum_job *j, const struct optimum_option *o, int64_t at_ns)
{
	return ns_of(o->least_s) <= j->deadline_ns - at_ns;
}

/* What job i adds at the most. */
static double hope_of(const struct search *s, size_t i, int64_t at_ns)
{
	const struct optimum_job *j = &s->j->job[i];
	int option = s->now[i].option;

	if (option >= 0 || option == AHEAD)
		return j->option[option >= 0 ? option : 0].accuracy;
	for (size_t o = 0; option == WAITS && o < j->n_options; o++)
		if (can_be_in_time(j, &j->option[o], at_ns))
			return j->option[o].accuracy;
	return 0.0;
}

static bool is_hopeless(const struct search *s, int64_t at_ns)
{
	double sum = 0.0;

	for (size_t i = 0; i < s->j->n; i++)
		sum += hope_of(s, i, at_ns);
	return sum <= s->best->value + SAME;
}

/* The index among our jobs of one of the trace; n: it has no limit, or none that can be met. */
static size_t index_of(const struct search *s, size_t trace_job)
{
	size_t i = 0;

	while (i < s->j->n && s->j->job[i].job != trace_job)
		i++;
	return i;
}

/* Where more load makes no job faster: a job that is late beside those that run stays late. */
static int is_late(struct search *s, const struct world_run *run, bool *out, struct err *err)
{
	struct world_end e;
	int status = world_run_copy(s->look, run, err);

	*out = false;
	while (!status && !*out && world_run_end(s->look, &e))
		*out = e.at_ns > s->j->job[index_of(s, e.id - 1)].deadline_ns;
	return status;
}

static void keep_if_best(struct search *s)
{
	double sum = 0.0;

	for (size_t i = 0; i < s->j->n; i++)
		if (s->now[i].option >= 0)
			sum += s->j->job[i].option[s->now[i].option].accuracy;
	if (sum <= s->best->value)
		return;
	s->best->value = sum;
	memcpy(s->best->start, s->now, s->j->n * sizeof *s->now);
	for (size_t i = 0; i < s->j->n; i++)
		if (s->now[i].option < 0)
			s->best->start[i].option = AWAY;
}

static int decide(struct search *s, struct event e, size_t i, struct err *err);

/* The next moment at which something happens in s->run[e.depth]. */
static int move_on(struct search *s, struct event e, struct err *err)
{
	const struct trace *t = s->j->p->trace;
	struct world_run *run = s->run[e.depth];
	int64_t next_ns = world_run_next(run);
	struct world_end end;

	if (e.arrived < t->n_jobs && t->job[e.arrived].arrival_ns < next_ns)
		next_ns = t->job[e.arrived].arrival_ns;
	if (next_ns == WORLD_NEVER) {
		keep_if_best(s);
		return 0;
	}
	while (world_run_next(run) == next_ns && world_run_end(run, &end)) {
		const struct optimum_job *j = &s->j->job[index_of(s, end.id - 1)];

		if (end.at_ns > j->deadline_ns)
			return 0;
		e.used -= j->cpus;
	}
	for (; e.arrived < t->n_jobs && t->job[e.arrived].arrival_ns == next_ns; e.arrived++) {
		size_t i = index_of(s, e.arrived);

		if (i < s->j->n)
			s->now[i].option = WAITS;
	}
	e.at_ns = next_ns;
	return decide(s, e, 0, err);
}

/* Starts what was decided for this event, and goes on from there. */
static int start_and_move_on(struct search *s, struct event e, struct err *err)
{
	struct world_run *run = s->run[e.depth + 1];
	struct optimum_start kept[OPTIMUM_EXACT_JOBS];
	bool starts = false, late = false;
	int status = world_run_copy(run, s->run[e.depth], err);

	for (size_t i = 0; !status && i < s->j->n; i++) {
		const struct optimum_job *j = &s->j->job[i];
		struct world_job w;

		if (s->now[i].option < 0 || s->now[i].at_ns != e.at_ns)
			continue;
		w = optimum_world_job(s->j->p, j->job, j->option[s->now[i].option].batch,
				      j->option[s->now[i].option].epochs);
		status = world_run_start(run, e.at_ns, &w, err);
		starts = true;
	}
	if (!status && starts && s->j->monotone)
		status = is_late(s, run, &late, err);
	if (status || late)
		return status;
	memcpy(kept, s->now, s->j->n * sizeof *kept);
	e.depth++;
	status = move_on(s, e, err);
	memcpy(s->now, kept, s->j->n * sizeof *kept);
	return status;
}

/* Job i and those behind it, at one event. */
static int decide(struct search *s, struct event e, size_t i, struct err *err)
{
	const struct optimum_job *j;
	int status = 0;

	while (i < s->j->n && s->now[i].option != WAITS)
		i++;
	if (s->best->steps >= s->max_steps) {
		s->best->exact = false;
		return 0;
	}
	s->best->steps++;
	if (is_hopeless(s, e.at_ns))
		return 0;
	if (i == s->j->n)
		return start_and_move_on(s, e, err);
	j = &s->j->job[i];
	for (size_t o = 0; !status && o < j->n_options && e.used + j->cpus <= s->slots; o++) {
		struct event with = e;

		if (!can_be_in_time(j, &j->option[o], e.at_ns))
			continue;
		s->now[i] = (struct optimum_start){ e.at_ns, (int)o };
		with.used += j->cpus;
		status = decide(s, with, i + 1, err);
	}
	for (int option = WAITS; !status && option <= AWAY; option++) {
		s->now[i] = (struct optimum_start){ 0, option };
		status = decide(s, e, i + 1, err);
	}
	s->now[i] = (struct optimum_start){ 0, WAITS };
	return status;
}

static int search_make(struct search *s, const struct optimum_jobs *j, struct err *err)
{
	s->depths = j->p->trace->n_jobs + j->n + 2; /* every arrival, every end */
	s->slots = world_cluster(j->p->world)->slots;
	s->run = mem_calloc(s->depths, sizeof *s->run);
	s->now = mem_calloc(j->n ? j->n : 1, sizeof *s->now);
	s->best->start = mem_calloc(j->n ? j->n : 1, sizeof *s->now);
	if (!s->run || !s->now || !s->best->start)
		return err_nomem(err, "a search");
	for (size_t i = 0; i < j->n; i++) {
		s->now[i].option = AHEAD;
		s->best->start[i].option = AWAY;
	}
	for (size_t i = 0; i < s->depths; i++) {
		int status = world_run_new(j->p->world, j->p->fold, &s->run[i], err);

		if (status)
			return status;
	}
	return world_run_new(j->p->world, j->p->fold, &s->look, err);
}

int optimum_exact(const struct optimum_jobs *j, uint64_t max_steps, struct optimum_plan *out, struct err *err)
{
	struct optimum_plan best = { .exact = true };
	struct search s = { .j = j, .best = &best, .max_steps = max_steps };
	int status = 0;

	if (j->n > OPTIMUM_EXACT_JOBS || j->p->trace->n_jobs > OPTIMUM_EXACT_JOBS)
		return err_fail(err, ERR_ARG, "%zu jobs: an exact search takes up to %d", j->p->trace->n_jobs,
				OPTIMUM_EXACT_JOBS);
	status = search_make(&s, j, err);
	if (!status)
		status = move_on(&s, (struct event){ 0 }, err);
	for (size_t i = 0; s.run && i < s.depths; i++)
		world_run_free(s.run[i]);
	world_run_free(s.look);
	free(s.run);
	free(s.now);
	if (status)
		free(best.start);
	else
		*out = best;
	return status;
}
