/* The folder of a comparison, read back and checked: what the parts of the report draw from. */
#ifndef SIM_REPORT_DATA_H
#define SIM_REPORT_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/csv.h"
#include "common/err.h"
#include "common/json/json.h"
#include "common/strbuf.h"
#include "sim/compare/metrics.h"

#define REPORT_MAX_JSON ((size_t)256 << 20) /* bytes of a JSON file */
#define REPORT_MAX_POLICIES 256
#define REPORT_MAX_SWEEP 1000               /* points of a sweep */

struct report_calibration {
	double confidence;           /* share asked */
	double runs, within;
};

struct report_policy {
	const char *name, *title;    /* borrowed from the JSON; title may be NULL */
	bool oracle;                 /* it knows the world: no rival of the others */
	double batch;                /* of fixed:best; NaN: of any other */
	struct interval metric[METRICS];       /* NaN: not known */
	struct paired_result versus[METRICS];  /* against the baseline; NaN: not known */
	struct report_calibration *calibration; size_t n_calibrations;
	const struct json *importances;        /* object of numbers; NULL: none */
};

struct report_policies {
	struct report_policy *policy; size_t n;
};

struct report_job {                  /* a row of jobs.csv; NaN where a cell is empty */
	uint32_t row;                /* in the table */
	uint32_t policy, replication;
	uint8_t state;               /* enum outcome_state */
	double cpus, arrival_s, slo_s, start_s, end_s, run_s, predicted_s, upper_s, processes;
};

struct report_data {
	struct json *compare, *timing, *sweep_json; /* the last two: NULL where the file is not there */
	bool replay;                 /* one policy, once */
	double level;                /* of the intervals */
	const char *note;            /* why there is no verdict; borrowed; NULL: there is one */
	size_t tests;                /* for whose number p is corrected */
	double replications;
	struct report_policies policies;
	size_t baseline;             /* index; SIZE_MAX: none */
	size_t focus;                /* the policy whose single jobs are shown */
	struct csv *jobs, *training; /* NULL where the file is not there */
	struct report_job *job; size_t n_jobs;
	uint32_t first_replication;
	const char *sweep_key;       /* borrowed; NULL: no sweep */
	double *sweep_value;
	struct report_policies *sweep; size_t n_sweep;
};

int report_data_read(const char *dir, struct report_data **out, struct err *err);
void report_data_free(struct report_data *d);

/* Fills job[] from jobs (jobs.c). */
int report_read_jobs(struct report_data *d, struct err *err);

/* The policy of the highest (sign 1) or lowest (-1) value of a metric, the oracle aside unless it is alone;
 * SIZE_MAX: none has one. */
size_t report_best(const struct report_policies *p, enum metric m, int sign);
size_t report_find(const struct report_policies *p, const char *name); /* SIZE_MAX: none */

/* ---- the comparison in numbers: table.c ---- */
void report_put_summary(const struct report_data *d, struct strbuf *out);
/* Every cell of a number has data-policy, data-metric and data-value (and data-low, data-high): the very
 * numbers of compare.json, for programs that read the page. */
void report_put_tables(const struct report_data *d, struct strbuf *out);
void report_put_decision_times(const struct report_data *d, struct strbuf *out);

/* ---- paper.c ---- */
/* The page of the paper's experiment, from the paper.json that `compare --paper -o DIR` writes. */
/* ERR_FORMAT names the member that is not as it should be. */
int report_paper(const struct json *root, struct strbuf *out, struct err *err);

#endif
