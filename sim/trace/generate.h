/* Traces that are made: "gen:KIND,key=value,...". All of it is drawn from the seed.
 *
 *   paper      the Courier paper's jobs: cpus from the levels, 1 to 6 equal jobs that arrive together, the
 *              next ones when these have long ended; limits ~ Normal(300, 100) s
 *   poisson    independent arrivals
 *   bursty     a two-state Markov-modulated Poisson process: calm, and bursts `peak` times as dense
 *   daily      a Poisson process whose rate follows a day (a sine of the given depth)
 *   recurring  jobs that come again at their period, with jitter
 *
 * Keys common to all, with defaults in generate_spec.c and docs/TRACE_FORMAT.md: jobs; rate (arrivals per s),
 * gap (mean s between them) or load=0.8,work=SECONDS,cores=N (rate = load x cores / work; work: core-seconds
 * of a mean job); cpus=1|2|4; network=lenet5|simplenet (any other name is a column, too: its values are drawn
 * evenly; "samples=": no such column); epochs, samples; slo=normal:MEAN:SD | lognormal:MEDIAN:SIGMA |
 * uniform:LOW:HIGH | NUMBER | none; slo_min; confidence; tenants=NAME:WEIGHT|...; best_effort=SHARE;
 * steer=SHARE; batches=64|128; type=NAME|...; priority. Further keys of paper: njobs; of bursty: peak,
 * share, burst; of daily: depth, day, peak_at; of recurring: series, period, jitter. */
#ifndef SIM_TRACE_GENERATE_H
#define SIM_TRACE_GENERATE_H

#include "sim/trace/trace.h"

/* `spec` without its "gen:". ERR_ARG names the key, the value and what would be right. */
int generate_trace(const char *spec, uint64_t seed, struct trace **out, struct err *err);

#endif
