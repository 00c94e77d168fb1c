/* Shared by the verbs of `postrider`: options from one table per verb, text tables, reading a table of runs
 * under a schema, writing a result, and messages on stderr. Read one verb_*.c next.
 *
 * A verb is `int verb_x(int argc, char **argv)`: argv[0] is its name, the result an exit code. */
#ifndef SCHEDULER_CLI_CLI_H
#define SCHEDULER_CLI_CLI_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/json/json.h"
#include "common/progress.h"
#include "common/strbuf.h"
#include "predictors/model.h"
#include "predictors/data/table.h"

#define CLI_LIST_MAX 64
#define CLI_SEED_MAX ((uint64_t)1 << 53) /* a seed must survive JSON, whose numbers are doubles */

void cli_set_up(void); /* first of all: locale and signals */

int verb_init(int argc, char **argv);
int verb_page(int argc, char **argv);
int verb_run(int argc, char **argv);
int verb_train(int argc, char **argv);
int verb_evaluate(int argc, char **argv);
int verb_predict(int argc, char **argv);
int verb_anova(int argc, char **argv);
int verb_model(int argc, char **argv);
int verb_profile(int argc, char **argv);
int verb_check_config(int argc, char **argv);
int verb_doctor(int argc, char **argv);
int verb_submit(int argc, char **argv);
int verb_status(int argc, char **argv);
int verb_list(int argc, char **argv);
int verb_logs(int argc, char **argv);
int verb_types(int argc, char **argv);
int verb_reload(int argc, char **argv);
int verb_drain(int argc, char **argv);
int verb_cancel(int argc, char **argv);
int verb_wait(int argc, char **argv);
int verb_watch(int argc, char **argv);
int verb_explain(int argc, char **argv);
int verb_stats(int argc, char **argv);
int verb_next(int argc, char **argv);
int verb_token(int argc, char **argv);
int verb_fill(int argc, char **argv);
int verb_replay(int argc, char **argv);
int verb_compare(int argc, char **argv);
int verb_report(int argc, char **argv);
int verb_trace(int argc, char **argv);

/* ---- options ---- */
enum cli_kind {
	CLI_FLAG,       /* bool */
	CLI_TEXT,       /* const char * */
	CLI_LIST,       /* struct cli_list: may be given several times */
	CLI_COUNT,      /* uint64_t */
	CLI_CONFIDENCE, /* double: "0.9" or "90%" */
	CLI_DURATION,   /* double, seconds, > 0 */
	CLI_POSITIVE,   /* double, > 0 */
	CLI_RETIRED,    /* was removed: a usage error, in which `help` says why; the verb's help is silent */
};

struct cli_list {
	const char *item[CLI_LIST_MAX];
	size_t n;
};

struct cli_option {      /* a NULL name ends the list */
	char letter;     /* 0: none */
	const char *name;
	enum cli_kind kind;
	const char *arg; /* what the help calls the value; NULL for a flag */
	const char *help;
	void *out;       /* of the type that `kind` says; or CLI_AT(), of cli_parse_into() */
};
/* Where in a verb's struct of options the value goes, so that its table is constant. */
#define CLI_AT(type, member) ((void *)offsetof(type, member))

struct cli_usage {
	const char *verb;
	const char *synopsis; /* lines "DATA.csv -o MODEL [options]", separated by \n */
	const char *what;     /* a paragraph for --help */
	const struct cli_option *option; /* the verb's own, beside -h -q -v --no-color */
	bool json, threads;   /* does it take --json, --threads? */
	const char *output;   /* help of -o/--output; NULL: the verb has none */
	size_t min_args, max_args;
	const char *examples; /* whole lines; may be NULL */
};

struct cli {
	const struct cli_usage *usage;
	bool quiet, verbose, json, no_color;
	uint64_t threads;
	const char *output;
	char **arg; size_t n_args; /* the arguments that are not options, in order */
};

/* The words behind "--", a command of the user's; returns argc without them. None: *out_n is 0. */
int cli_words(int argc, char **argv, char ***out_word, size_t *out_n);
/* True: continue. False: exit with *out_exit (0 after the help, 2 after a message about a mistake). */
bool cli_parse(struct cli *c, const struct cli_usage *u, int argc, char **argv, int *out_exit);
/* The same for a table with CLI_AT(): `into` is the verb's struct of options. */
bool cli_parse_into(struct cli *c, const struct cli_usage *u, void *into, int argc, char **argv,
                    int *out_exit);

/* ---- messages ---- */
int cli_fail(const struct err *err); /* "postrider: ..." on stderr; returns the exit code */
int cli_usage_error(const struct cli *c, const char *fmt, ...) /* and where help is; returns 2 */
	__attribute__((format(printf, 2, 3)));
void cli_notice(const struct cli *c, const char *fmt, ...) /* "postrider: note: ..."; not under -q */
	__attribute__((format(printf, 2, 3)));

/* ---- results ---- */
/* Writes to a file, or to standard output for NULL and "-". A file appears complete or not at all, even with
 * Ctrl-C. */
int cli_write(const char *path, const struct strbuf *text, struct err *err);
/* cli_write() of the result to -o; returns the exit code. */
int cli_finish(const struct cli *c, const struct strbuf *text);
/* Checks before the work starts that a file can be written; NULL and "-" always can. */
int cli_check_output(const char *path, struct err *err);

/* Now in RFC 3339, or SOURCE_DATE_EPOCH, so that a result can be repeated to the byte. */
int cli_created(char *out, size_t size, struct err *err);

bool cli_colour(const struct cli *c);        /* is the result, which goes to -o, coloured? */
bool cli_colour_stdout(const struct cli *c); /* is text on standard output coloured? */
void cli_bar(struct strbuf *out, double share, int width); /* share of 1, as a bar of text */

/* What people read has three significant digits, and an accuracy four decimals: its noise is that small.
 * "-" for NaN; buf of 32 bytes. */
char *cli_short(double v, char *buf);
/* Four digits, for tables of errors and scores that are compared with each other. */
char *cli_number(double v, char *buf);
#define CLI_SPREAD_SIZE 80
char *cli_spread(double mean, double sd, char *buf); /* mean and spread; buf of CLI_SPREAD_SIZE */
char *cli_percent(double share, char *buf); /* "94.4 %", "-" for NaN; buf of 32 bytes */
/* Whole percents, rounded down so that a chance never reads as a confidence that it does not reach: "60 %",
 * "< 1 %", "-" for NaN; buf of 32 bytes. */
char *cli_chance(double chance, char *buf);
/* As an option takes it, rounded up: "9.4s", "95s", "13m"; buf of 32 bytes. */
char *cli_slo_up(double s, char *buf);
/* The text without control characters, which a terminal would obey; in a ring of 8 buffers. */
const char *cli_clean(const char *text);

struct cli_table {           /* cells are added row by row, the header first */
	const char *align;   /* 'l' or 'r' for each column */
	char **cell; size_t n_cells, cap;
	size_t *mark; size_t n_marks, mark_cap;
	bool failed;
};
void cli_table_init(struct cli_table *t, const char *align);
/* The same with the cells of the header: as many strings as there are columns. */
void cli_table_head(struct cli_table *t, const char *align, ...);
void cli_table_add(struct cli_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A cell with a number; an empty one for NaN. */
void cli_table_number(struct cli_table *t, double v);
void cli_table_accuracy(struct cli_table *t, double v);
void cli_table_seconds(struct cli_table *t, double s);
void cli_table_percent(struct cli_table *t, double share);
void cli_table_mark(struct cli_table *t); /* highlights the row of the last cell */
/* Columns that are empty below their header are left out. */
void cli_table_print(const struct cli_table *t, struct strbuf *out, bool colour);
void cli_table_release(struct cli_table *t);

const struct score *cli_score(const struct score_summary *s); /* its mean; all NaN without folds */
void cli_json_score(struct json_writer *w, const char *key, const struct score *s); /* an object */
/* Writes "scores" and "spread" into the open object; nulls if there were no test rows. */
void cli_json_summary(struct json_writer *w, const struct score_summary *s);
/* Writes a model of a bundle as "name", "settings" and "scores"; null if there is none. */
void cli_json_target(struct json_writer *w, const char *key, const struct model_target *t);
/* Its beginning, name and settings; the caller closes the object. False: there is no model, which is null. */
bool cli_json_target_open(struct json_writer *w, const char *key, const struct model_target *t);

double cli_json_number(const struct json *object, const char *key); /* of a member; NaN: there is none */
/* Copies a value; copies the members of an object, except those of the NULL-terminated list. */
void cli_json_copy(struct json_writer *w, const struct json *v);
void cli_json_members(struct json_writer *w, const struct json *object, const char *const *without);

/* Sums per-feature importances under the name of the column a feature comes from. `out` has room
 * for schema->n_columns + schema->n_derived; NaN where no feature comes from that column. */
void cli_importances(const struct model *m, const double *importance, double *out);

/* ---- input ---- */
struct policy;
struct cli_input {
	struct schema *schema; /* owned unless `borrowed` */
	bool borrowed;
	struct csv *csv;
	struct table *table;
};
struct cli_input_params {
	const char *path;              /* "-": standard input */
	const char *schema_path;       /* NULL: that of a table without one (schema_for_table()) */
	struct schema *schema;         /* instead of a path: borrowed, and the excludes go into it */
	const struct cli_list *exclude;/* COL=VALUE; NULL: none */
	const struct policy *policy;   /* the schema is changed as its model needs it; NULL: none */
	bool need_targets;
	bool keeps_columns;            /* the result keeps all columns, so no note says that one is ignored */
};
/* Prints notes about ignored columns and rows that are left out. Release after failure too. */
int cli_input_open(struct cli_input *in, const struct cli *c, const struct cli_input_params *p,
                   struct err *err);
void cli_input_release(struct cli_input *in);

int cli_model_open(const char *path, struct model **out, struct err *err);

/* ---- progress: give cli_on_progress and a zeroed struct to train_params ---- */
struct cli_progress {
	bool off;
	struct progress *bar;
	char stage[64];
	size_t done, total;
};
void cli_on_progress(void *owner, const char *stage, size_t done, size_t total);
void cli_progress_end(struct cli_progress *p); /* wipes the bar */

/* ---- --time-limit: a flag that is set after `s` seconds, for struct fit_context; NaN: NULL ---- */
const atomic_bool *cli_time_limit(double s);
/* What ended for that reason: says so, and returns the exit code. */
int cli_out_of_time(double s, const char *without);

#endif
