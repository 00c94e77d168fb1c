/* What a replay or a comparison leaves behind, and what --json prints. Files in the folder of -o:
 *
 *   compare.json   everything except single jobs: the same bytes as --json. It has no wall-clock time and no
 *                  name of a machine, so that the same input and seed give the same bytes.
 *   jobs.csv       one row a job, policy and replication
 *   training.csv   what the models of the first replication learnt from
 *   sweep.json     of a sweep: the numbers of every value; the other files are of the value in the middle
 *   timing.json    what is not reproducible: decision times, the machine it ran on, when
 *
 * report/ reads them back. docs/REPLAY_OUTPUT.md has every member and column. */
#ifndef SIM_COMPARE_RECORD_H
#define SIM_COMPARE_RECORD_H

#include "common/strbuf.h"
#include "sim/compare/compare.h"

struct record_about {                /* borrowed */
	const char *kind;            /* "compare" or "replay" */
	const char *program;         /* "postrider 0.1.0" */
	const char *command;         /* the command line, without -o, --threads, -q, --json */
	const struct compare_params *params;
	const struct strbuf *sweep;  /* the text of sweep.json; NULL: no sweep */
};
/* {"kind","program","command","seed","confidence","level","replications","adapt","baseline","model",
 *  "trace":{"name","about","jobs","left_out","fingerprint"},
 *  "world":{"name",...world_describe,"splits":[text per fold]},
 *  "cluster":{...},"disturbances":{...},
 *  "tests","verdict":{policy:{"worse","unclear","better","same"}} or null,"note",
 *  "policies":[{"name","title",METRIC:mean,METRIC_ci:[low,high] for every metric,
 *               "versus":{METRIC:{"difference","low","high","p","p_holm"}},  (not of the baseline)
 *               "calibration":[{"confidence","runs","within"}],"importances":{feature:share}}]} */
void record_json(const struct compare_result *r, const struct record_about *a, struct json_writer *w);
/* The bytes of compare.json and of --json: record_json() with indentation and a line end. */
void record_text(const struct compare_result *r, const struct record_about *a, struct strbuf *out);
/* Only the "policies" array, for sweeps. */
void record_policies(const struct compare_result *r, struct json_writer *w);
/* {"machine":{"system","processor","cores"},"created","decision_s":{policy:{"mean","p99"}}} */
void record_timing(const struct compare_result *r, const char *created, struct json_writer *w);
/* Whether record_write() may write there, for those who want to know before hours of work. ERR_ARG: it holds
 * something else (no compare.json, and files that are not of these); ERR_NOTFOUND, ERR_PERM: it can not be
 * made or written to. */
int record_check(const char *dir, struct err *err);
/* All files into `dir`, which is made if it is not there. compare.json comes last: with it the folder is
 * whole. jobs.csv only where the outcomes were kept, training.csv where models were trained; those of an
 * earlier comparison are removed otherwise. */
int record_write(const char *dir, const struct compare_result *r, const struct record_about *a,
                 struct err *err);

/* Members of the open object: "KEY":[low,high] and "KEY":{"difference","low","high","p","p_holm"}. */
void record_interval(struct json_writer *w, const char *key, const struct interval *v);
void record_paired(struct json_writer *w, const char *key, const struct paired_result *v);
/* "world":{"name",...world_describe(),"splits":[text of the first n folds]} */
void record_world(struct json_writer *w, const struct world *world, size_t n_splits);

/* ---- jobs.csv, for record.c: record_jobs.c ---- */
bool record_jobs_kept(const struct compare_result *r); /* are all outcomes there? */
#define JOBS_PART "jobs.csv.part"
/* Its header: policy,replication,job,arrival_s,tenant,type,cpus,<columns of the trace>,slo_s,confidence,
 * promised,outcome,start_s,end_s,wait_s,response_s,run_s,batch,epochs,promised_s,promised_upper_s,
 * predicted_s,upper_s,predicted_accuracy,accuracy,processes,njobs. run_s was measured; predicted_s and
 * upper_s are of the run at its start. Replications count from 1. The trace's own `epochs` are in the column
 * epochs; any other column of the trace that has a name of ours is called trace_NAME. It is written to
 * JOBS_PART, which replaces the file when it is complete. ERR_ARG: the outcomes were not kept. */
int record_jobs_write(const char *dir, const char *name, const struct compare_result *r, struct err *err);

#endif
