/* The work of other programs on the machine: looked at once a second, and before the socket opens, so that
 * the first promise already allows for it. The estimate goes to the scheduler, and its mean over a run to
 * what the run teaches. */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "common/clock.h"
#include "common/mem.h"
#include "scheduler/daemon/daemon.h"

#define SETTLE_S 0.3 /* that the first estimate rests on at least: 30 ticks of each cpu */
#define SETTLE_LOOKS 6

/* Those of our jobs that run. An advised one is run by its owner, and may not have told its process. */
static size_t programs_of(const struct daemon *d, struct demand_program *out, size_t max)
{
	size_t n = 0;

	for (const struct job *j = d->jobs.live.first; j && n < max; j = j->after) {
		if (j->row.state == JOB_RUNNING)
			out[n++] = (struct demand_program){ j->pid, j->row.cpus };
	}
	return n;
}

static void tell(struct daemon *d, int64_t now_ns, double processes)
{
	inputs_load(d, now_ns, processes);
	sched_set_other_load(d->sched, now_ns, processes, NULL);
}

void other_work_look(struct daemon *d)
{
	size_t max = d->jobs.count[JOB_RUNNING], n;
	struct demand_program *program;

	if (d->params.played)
		return;
	if (!d->setup->config->other_load || cluster_known(d)) {
		d->life.other_load = NAN;
		if (d->sched)
			tell(d, daemon_now_ns(d), 0.0);
		return;
	}
	program = mem_array(max ? max : 1, sizeof *program);
	if (!program)
		return; /* the next look finds more memory, or others will say so */
	n = programs_of(d, program, max);
	d->life.other_load = demand_look(&d->demand, program, n, clock_monotonic_s());
	d->life.other_sum_s = d->demand.other.estimate_s;
	d->life.other_span_s = d->demand.other.span_s;
	free(program);
	if (d->sched)
		tell(d, daemon_now_ns(d), d->life.other_load);
}

void other_work_settle(struct daemon *d)
{
	if (d->params.played)
		return;
	/* How many processes wait is known only at the moment of a look, so a few of them are worth more. */
	for (int i = 0; i < SETTLE_LOOKS && d->setup->config->other_load && !cluster_known(d); i++) {
		nanosleep(&(struct timespec){ .tv_nsec = (long)(SETTLE_S / SETTLE_LOOKS * 1e9) }, NULL);
		other_work_look(d);
	}
}
