/* Estimates the load by other programs from the kernel's counters. See other_load.h. */
#include "scheduler/process/other_load.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_GAP_S                                                                                        \
	60.0 /* after a longer pause the machine or the daemon slept: the old marks say nothing */
#define MOST_BELOW 0.5 /* processes; a job of ours that sleeps for long must not hide what starts meanwhile */
#define MEAN_WAITING_S 3.0 /* of the number that waits */
#define MEAN_FELT_S 60.0 /* of what part of others' demand ours felt */
#define LEAST_RAN 0.1 /* processes of ours that ran, to tell how long those wait that want a cpu */

/* ---- reading ---- */

int other_load_parse_stat(const char *text, struct proc_cpu *out, struct err *err)
{
	struct proc_cpu c = { 0 };
	bool has_ticks = proc_cpu_parse(text, &c);

	if (!has_ticks || !c.cpus || !isfinite(c.running))
		return err_fail(err, ERR_FORMAT, "/proc/stat: there is no line of %s",
				!has_ticks ? "all cpus"
				: !c.cpus  ? "a single cpu"
					   : "procs_running");
	*out = c;
	return 0;
}

int other_load_parse_pressure(const char *text, double *out_waited_s, struct err *err)
{
	const char *line = text && !strncmp(text, "some ", 5) ? text : NULL;
	const char *at = line ? strstr(line, " total=") : NULL, *end = line ? strchr(line, '\n') : NULL;
	double us;

	if (!at || (end && at > end))
		return err_fail(err, ERR_FORMAT,
				"/proc/pressure/cpu: it does not begin with a line 'some ... total='");
	at += strlen(" total=");
	us = isdigit((unsigned char)*at) ? strtod(at, NULL) : NAN;
	if (!isfinite(us))
		return err_fail(err, ERR_FORMAT, "/proc/pressure/cpu: total is not a number");
	*out_waited_s = us / 1e6;
	return 0;
}

/* ---- estimating ---- */

double other_load_processes(const struct other_load *o)
{
	return o->second >= OTHER_LOAD_LEAST ? o->second : 0.0;
}

/* What others can want at most, by what they ran and how long ours waited; INFINITY: ours do not tell. */
static double fair_share(double busy, struct other_load_ours ours)
{
	if (!(ours.ran >= LEAST_RAN)) /* nor where it is not known */
		return INFINITY;
	return fmax(0.0, busy - ours.ran) * fmax(1.0, ours.wanted / ours.ran);
}

/* What others want, as ours feel it: known while ours run, else by the part of the demand that they felt
 * before. Where others hardly ran, what they seem to want is an error of the readings and tells nothing. */
static double felt(struct other_load *o, double others, double busy, struct other_load_ours ours, double dt_s)
{
	double fair = fmin(others, fair_share(busy, ours)), fade = exp(-dt_s / MEAN_FELT_S);

	if (!(others > 0.0))
		return others;
	if (!(ours.ran >= LEAST_RAN))
		return o->wanted_others_s > 0.0 ? others * (o->felt_s / o->wanted_others_s) : others;
	if (busy - ours.ran >= LEAST_RAN) {
		o->wanted_others_s = fade * o->wanted_others_s + dt_s * others;
		o->felt_s = fade * o->felt_s + dt_s * fair;
	}
	return fair;
}

double other_load_mean(const struct other_load *o)
{
	struct other_load_ours ours = { o->wanted_s / o->span_s, o->ran_s / o->span_s };
	double mean = o->span_s > 0.0 ? o->sum_s / o->span_s : NAN;

	if (mean > 0.0)
		mean = fmin(mean, fair_share(o->busy_s / o->span_s, ours));
	return mean < OTHER_LOAD_LEAST ? 0.0 : mean;
}

/* Interrupts keep no process waiting that counts, and a cpu that waits for a disk is free for others. Time
 * that a hypervisor took from us is busy. */
static double busy_ticks(const struct proc_cpu *c)
{
	return c->user + c->nice + c->system + c->steal;
}

/* Cpus that were in use since the last reading. */
static double busy_cpus(const struct other_load *o, const struct proc_cpu *r)
{
	double total = r->total - o->last.total;

	return fmin(1.0, fmax(0.0, busy_ticks(r) - busy_ticks(&o->last)) / total) * (double)r->cpus;
}

/* The processes that wanted a cpu since the last reading. */
static double demand(struct other_load *o, const struct proc_cpu *r, double busy, double waited_share,
		     double dt_s)
{
	double cpus = (double)r->cpus;
	double waiting = fmax(0.0, r->running - 1.0 - cpus); /* the reader itself runs */

	if (isnan(waited_share))
		return busy + waiting;
	/* A reading that finds no process waiting does not tell how many wait when some do. */
	if (waiting > 0.0 && !(o->waiting > 0.0))
		o->waiting = waiting;
	else if (waiting > 0.0)
		o->waiting += (1.0 - exp(-dt_s / MEAN_WAITING_S)) * (waiting - o->waiting);
	return busy + waited_share * fmax(fmax(1.0, busy), o->waiting);
}

static void begin(struct other_load *o, const struct proc_cpu *r, double waited_s)
{
	o->begun = true;
	o->last = *r;
	o->has_waited = isfinite(waited_s);
	o->last_waited_s = waited_s;
}

double other_load_sample(struct other_load *o, const char *stat_text, const char *pressure_text,
			 struct other_load_ours ours, double dt_s)
{
	struct proc_cpu r;
	double waited_s = NAN, share = NAN, busy, moment, part;

	if (other_load_parse_stat(stat_text, &r, NULL) || !(ours.wanted >= 0.0) || !isfinite(ours.wanted)) {
		o->n_bad++;
		return other_load_processes(o);
	}
	if (pressure_text)
		other_load_parse_pressure(pressure_text, &waited_s, NULL);
	if (!o->begun || !(dt_s < LONGEST_GAP_S) || r.total < o->last.total || r.cpus != o->last.cpus) {
		begin(o, &r, waited_s);
		return other_load_processes(o);
	}
	if (!(dt_s > 0.0) || r.total == o->last.total)
		return other_load_processes(o);
	if (o->has_waited && isfinite(waited_s))
		share = fmin(1.0, fmax(0.0, (waited_s - o->last_waited_s) / dt_s));
	busy = busy_cpus(o, &r);
	moment = demand(o, &r, busy, share, dt_s) - ours.wanted;
	o->sum_s += dt_s * moment;
	o->span_s += dt_s;
	o->busy_s += dt_s * busy;
	o->ran_s += dt_s * ours.ran;
	o->wanted_s += dt_s * ours.wanted;
	moment = fmax(felt(o, moment, busy, ours, dt_s), -MOST_BELOW);
	o->estimate_s += dt_s * moment;
	/* At first the plain mean of all that was seen: there is no older estimate to hold on to. */
	part = fmax(1.0 - exp(-dt_s / OTHER_LOAD_MEAN_S), dt_s / o->span_s);
	o->first += part * (moment - o->first);
	o->second += part * (o->first - o->second);
	begin(o, &r, waited_s);
	return other_load_processes(o);
}
