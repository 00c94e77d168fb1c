/* The spec of a generated trace, read and checked, and the processes by which its jobs arrive. */
#ifndef SIM_TRACE_GENERATE_INTERNAL_H
#define SIM_TRACE_GENERATE_INTERNAL_H

#include "common/rng.h"
#include "sim/trace/generate.h"
#include "sim/trace/build.h"

#define GENERATE_MAX_VALUES 256   /* of a list */
#define GENERATE_MAX_SPEC 65536   /* bytes */
#define GENERATE_MAX_SERIES 1000000

enum generate_kind {
	GENERATE_PAPER, GENERATE_POISSON, GENERATE_BURSTY, GENERATE_DAILY, GENERATE_RECURRING, GENERATE_KINDS
};
enum generate_slo { SLO_NONE, SLO_FIXED, SLO_NORMAL, SLO_LOGNORMAL, SLO_UNIFORM };

struct generate_values {          /* texts inside the spec's copy; drawn evenly */
	const char *name;
	const char *value[GENERATE_MAX_VALUES]; size_t n; /* none: open epochs */
	bool given;               /* by the spec, not by default */
};

struct generate_tenants {
	const char *name[GENERATE_MAX_VALUES]; /* NULL: the default one */
	double weight[GENERATE_MAX_VALUES]; size_t n;
	double total;
};

struct generate_spec {
	char *text;               /* the copy that everything points into */
	enum generate_kind kind;
	const char *kind_name;
	size_t jobs;
	/* mean time between arrivals (paper: between groups); NaN until it is known */
	double gap_s;
	double rate, load, work, cores; /* NaN: not given */
	uint32_t cpus[GENERATE_MAX_VALUES]; size_t n_cpus;
	uint32_t njobs[GENERATE_MAX_VALUES]; size_t n_njobs;
	struct generate_values column[TRACE_MAX_COLUMNS]; size_t n_columns;
	struct generate_values types;
	double epochs_from, epochs_to;
	double batch[TRACE_MAX_BATCHES]; size_t n_batches;
	enum generate_slo slo;
	double slo_a, slo_b;      /* mean and sd, median and sigma, low and high */
	double slo_min;           /* NaN: a hundredth of the mean */
	double confidence;        /* NaN: not said */
	int32_t priority;
	double worth[GENERATE_MAX_VALUES]; size_t n_worths; /* values of jobs; none: all are worth 1 */
	double best_effort, steer; /* shares of the jobs */
	struct generate_tenants tenants;
	double peak, share, burst_s;      /* bursty */
	double depth, day_s, peak_at_s;   /* daily */
	size_t series;                    /* recurring */
	double period_s[GENERATE_MAX_VALUES]; size_t n_periods;
	double jitter;
};
int generate_spec_parse(const char *text, struct generate_spec **out, struct err *err);
void generate_spec_free(struct generate_spec *s);

/* ---- values of its keys (generate_value.c); false: it is none ---- */
char *generate_next_part(char **at, char separator); /* cuts the next part off; NULL: there is none */
bool generate_whole(const char *text, double low, double high, double *out);
bool generate_seconds(const char *text, double *out); /* a duration above 0 */
/* "1|2|4", "1..6", mixed as well */
bool generate_whole_list(const char *text, double high, uint32_t *out, size_t *out_n);
bool generate_word_list(char *text, struct generate_values *out);
bool generate_batch_list(const char *text, struct generate_spec *s);
bool generate_period_list(char *text, struct generate_spec *s);
bool generate_tenant_list(char *text, struct generate_tenants *t);
bool generate_slo_law(char *text, struct generate_spec *s);

/* ---- arrivals (generate_arrivals.c) ---- */
struct arrivals {
	const struct generate_spec *s;
	struct rng rng;
	double now_s;
	bool bursting;
	double turn_s;            /* when calm or burst ends */
};
void arrivals_init(struct arrivals *a, const struct generate_spec *s, struct rng rng);
double arrivals_next(struct arrivals *a); /* seconds; ascending */

struct series;
struct series *series_new(const struct generate_spec *s, uint64_t seed); /* NULL: no memory */
void series_free(struct series *s);
double series_next(struct series *s, size_t *out_which); /* ascending */

#endif
