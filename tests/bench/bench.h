/* What the benches share. bench_main.c has the table of benches, the printed table and the JSON;
 * bench_forest.c, bench_decision.c and their like are the benches; bench_data.c makes what they work on;
 * bench_run.c runs the peers' scripts (tests/bench/peers/) and reads what they answer.
 *
 * Ours and the peer's are measured in one run, in turns, so that a slow moment of the machine
 * strikes both; of several turns the fastest counts, on both sides. */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "common/json/json.h"
#include "predictors/data/dataset.h"
#include "predictors/predictor.h"

enum bench_bar {
	BAR_RATIO,   /* peer / ours is at least the bar */
	BAR_AT_MOST, /* ours is at most the bar; such a bench has no peer in its JSON */
};

enum bench_holds { HOLDS_NO, HOLDS_YES, HOLDS_UNKNOWN /* a peer is not installed */ };

struct bench_result {
	char what[768];
	double ours, peer, ratio; /* NaN: none */
	const char *unit;
	enum bench_bar kind;
	double bar;
	enum bench_holds holds;
};

/* See bench_model(). */
enum bench_table { BENCH_PROFILE, BENCH_NODES, BENCH_DEMO, BENCH_WORLD, BENCH_TABLES };

struct bench_model {
	char path[300]; /* "": not trained yet */
	char name[96];  /* of its predictors: "hybrid for time, forest for accuracy" */
};

struct bench_env {
	char dir[256];          /* temporary, removed at the end */
	char small_csv[300];    /* the small table, for the peers */
	const char *peers;      /* folder of the peers' scripts */
	const char *self;       /* this program, to run parts of it in a process of their own */
	size_t large_rows;      /* 1,000,000 unless a quick trial was asked for */
	bool full;              /* peers run their long tasks whole */
	double submit_s;        /* length of daemon.submit */
	struct bench_model model[BENCH_TABLES]; /* what bench_model() has trained */
	double sklearn_decision_s; /* p99 of the peer's decision, measured once a run; 0: not yet */
	bool sklearn_missing;
};

typedef int bench_fn(struct bench_env *env, struct bench_result *out, struct err *err);
bench_fn bench_fit_absolute, bench_fit_squared, bench_grid, bench_large, bench_scaling;
bench_fn bench_decision_default, bench_decision_table, bench_decision_trees, bench_hybrid_decision;
bench_fn bench_lookahead, bench_events;
bench_fn bench_training_simplenet, bench_training_lenet5;
bench_fn bench_replay_million, bench_replay_cluster, bench_train_policy, bench_automl_campaign;
bench_fn bench_metrics_scrape, bench_python_predict, bench_page_update;
bench_fn bench_decision_busy, bench_daemon_submit, bench_daemon_predict, bench_daemon_pipelined;
bench_fn bench_daemon_held, bench_daemon_list, bench_daemon_crowd;

/* The part of bench_large that runs in its own process: `--child FILE ROWS TREES FEW`. */
int bench_large_child(int argc, char **argv);

/* ---- bench_run.c ---- */
double bench_now_s(void);
void bench_say(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* progress, on stderr */
void bench_what(struct bench_result *r, const char *fmt, ...) /* appends to r->what */
	__attribute__((format(printf, 2, 3)));

extern volatile sig_atomic_t bench_child; /* the process bench_run_json() waits for; 0: none */

#define BENCH_MAX_SERVERS 4
extern volatile sig_atomic_t bench_servers[BENCH_MAX_SERVERS]; /* processes of bench_daemon.c; 0: none */

/* Runs a program (argv ends with NULL) and parses the one JSON object it prints. ERR_NOTFOUND: there
 * is no such program, or it says that what it needs is not installed. */
int bench_run_json(const char *const *argv, struct json **out, struct err *err);

enum bench_peer { PEER_SKLEARN, PEER_XGBOOST, PEER_RANGER, PEER_SIMPY, PEER_TORCH };
const char *bench_peer_name(enum bench_peer p);
/* Runs a peer's script with the arguments given (the list ends with NULL) and takes the "seconds" of
 * its answer; the whole answer too unless out_answer is NULL, to be freed. */
int bench_peer_run(const struct bench_env *env, enum bench_peer p, double *out_s, struct json **out_answer,
                   struct err *err, ...) __attribute__((sentinel));

/* Several peers, the fastest of which counts. */
struct bench_rival {
	double seconds;          /* INFINITY until measured */
	enum bench_peer fastest;
	bool missing;            /* some peer is not installed */
};
/* Takes the result of one run: ERR_NOTFOUND means that the peer is missing, which is no failure. */
int bench_rival_add(struct bench_rival *v, enum bench_peer p, int status, double seconds);

/* Fills peer, ratio and holds in: `also` is what must hold besides the ratio. */
void bench_judge(struct bench_result *r, const struct bench_rival *v, bool also);

/* A program that is built beside this one. */
void bench_beside(const struct bench_env *env, const char *name, char *out, size_t size);

/* ---- bench_model.c ---- */
/* What `postrider train --policy postrider` writes, once a run, for configs/profiles/two-cores or
 * four-nodes, for a table like that of `make run`, or for what the world `fluid` lets models learn from.
 * *out is borrowed from env. */
int bench_model(struct bench_env *env, enum bench_table from, const struct bench_model **out,
                struct err *err);

/* ---- bench_data.c ---- */
#define SMALL_ROWS 230 /* 80 % of the 288 runs of the paper's full factorial */
#define SMALL_FEATURES 5
#define LARGE_FEATURES 10

int bench_small(struct dataset **out, struct err *err); /* batch cpus njobs network processes -> time */
int bench_small_write(const char *path, struct err *err); /* as CSV, the target last */
int bench_small_runs(struct strbuf *out); /* as a table of runs under the default schema; 0 or -1 */

/* n rows of the large problem, the first ones of an endless table. */
int bench_large_new(size_t n, struct dataset **out, struct err *err);
int bench_large_write(const char *path, size_t n, struct err *err); /* raw float64, the target last */
int bench_large_read(const char *path, size_t from, size_t n, struct dataset **out, struct err *err);

#endif
