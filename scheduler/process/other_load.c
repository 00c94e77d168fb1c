#include "scheduler/process/other_load.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_GAP_S 60.0 /* the machine slept, or the loop did: what was known before is worth nothing */
#define MOST_IN_DEBT                                                                                         \
	0.5 /* processes by which a moment may be below ours: a job of ours that sleeps for long must not
                              hide what starts meanwhile */
#define MEAN_WAITING_S 3.0 /* of the number that waits */

enum {
	TICK_USER,
	TICK_NICE,
	TICK_SYSTEM,
	TICK_IDLE,
	TICK_IOWAIT,
	TICK_IRQ,
	TICK_SOFTIRQ,
	TICK_STEAL,
	N_TICKS
};

/* ---- reading ---- */

/* The number at *s, which moves behind it; false: there is none. */
static bool number(const char **s, double *out)
{
	char *end;

	*s += strspn(*s, " ");
	if (!isdigit((unsigned char)**s))
		return false;
	*out = strtod(*s, &end);
	*s = end;
	return isfinite(*out);
}

/* "cpu  1 2 3 4 ...": at least up to idle. Old kernels have fewer columns. */
static bool ticks(const char *line, struct outside_reading *out)
{
	double v[N_TICKS] = { 0 };
	int n = 0;

	while (n < N_TICKS && number(&line, &v[n]))
		n++;
	if (n <= TICK_IDLE)
		return false;
	out->busy = out->total = 0.0;
	for (int i = 0; i < N_TICKS; i++) {
		out->total += v[i];
		/* interrupts belong to nobody who waits; a cpu that waits for a disk is free for others */
		if (i != TICK_IDLE && i != TICK_IOWAIT && i != TICK_IRQ && i != TICK_SOFTIRQ)
			out->busy += v[i];
	}
	return true;
}

int outside_parse_stat(const char *text, struct outside_reading *out, struct err *err)
{
	struct outside_reading r = { 0 };
	bool has_ticks = false, has_running = false;

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, "cpu ", 4)) {
			has_ticks = ticks(line + 4, &r);
		} else if (!strncmp(line, "cpu", 3) && isdigit((unsigned char)line[3])) {
			r.cpus++;
		} else if (!strncmp(line, "procs_running ", 14)) {
			line += 14;
			has_running = number(&line, &r.running);
		}
	}
	if (!has_ticks || !has_running || !r.cpus)
		return err_fail(err, ERR_FORMAT, "/proc/stat: no line of %s",
				!has_ticks ? "all cpus"
				: !r.cpus  ? "a single cpu"
					   : "procs_running");
	*out = r;
	return 0;
}

int outside_parse_pressure(const char *text, double *out_waited_s, struct err *err)
{
	const char *line = text && !strncmp(text, "some ", 5) ? text : NULL;
	const char *at = line ? strstr(line, " total=") : NULL, *end = line ? strchr(line, '\n') : NULL;
	double us;

	if (!at || (end && at > end))
		return err_fail(err, ERR_FORMAT,
				"/proc/pressure/cpu: does not begin with a line 'some ... total='");
	at += strlen(" total=");
	if (!number(&at, &us))
		return err_fail(err, ERR_FORMAT, "/proc/pressure/cpu: total is no number");
	*out_waited_s = us / 1e6;
	return 0;
}

/* ---- estimating ---- */

double outside_processes(const struct outside *o)
{
	return o->second >= OUTSIDE_LEAST ? o->second : 0.0;
}

/* What wanted a cpu since the last reading, in processes. */
static double demand(struct outside *o, const struct outside_reading *r, double waited_share, double dt_s)
{
	double total = r->total - o->last.total, cpus = (double)r->cpus;
	double busy = fmin(1.0, fmax(0.0, r->busy - o->last.busy) / total) * cpus;
	double waiting = fmax(0.0, r->running - 1.0 - cpus); /* the reader itself runs */

	if (isnan(waited_share))
		return busy + waiting;
	/* Nobody waiting right now says nothing about how many do when somebody does. */
	if (waiting > 0.0 && !(o->waiting > 0.0))
		o->waiting = waiting;
	else if (waiting > 0.0)
		o->waiting += (1.0 - exp(-dt_s / MEAN_WAITING_S)) * (waiting - o->waiting);
	return busy + waited_share * fmax(1.0, o->waiting);
}

static void begin(struct outside *o, const struct outside_reading *r, double waited_s)
{
	o->begun = true;
	o->last = *r;
	o->has_waited = isfinite(waited_s);
	o->last_waited_s = waited_s;
}

double outside_sample(struct outside *o, const char *stat_text, const char *pressure_text,
		      double our_processes, double dt_s)
{
	struct outside_reading r;
	double waited_s = NAN, share = NAN, moment, part;

	if (outside_parse_stat(stat_text, &r, NULL) || !(our_processes >= 0.0) || !isfinite(our_processes)) {
		o->n_bad++;
		return outside_processes(o);
	}
	if (pressure_text)
		outside_parse_pressure(pressure_text, &waited_s, NULL);
	if (!o->begun || !(dt_s < LONGEST_GAP_S) || r.total < o->last.total || r.cpus != o->last.cpus) {
		begin(o, &r, waited_s);
		return outside_processes(o);
	}
	if (!(dt_s > 0.0) || r.total == o->last.total)
		return outside_processes(o);
	if (o->has_waited && isfinite(waited_s))
		share = fmin(1.0, fmax(0.0, (waited_s - o->last_waited_s) / dt_s));
	moment = fmax(demand(o, &r, share, dt_s) - our_processes, -MOST_IN_DEBT);
	part = 1.0 - exp(-dt_s / OUTSIDE_MEAN_S);
	o->first += part * (moment - o->first);
	o->second += part * (o->first - o->second);
	begin(o, &r, waited_s);
	return outside_processes(o);
}
