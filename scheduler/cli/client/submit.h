/* The parts of `postrider submit`. submit_request.c makes a request of the options and of an object from a
 * file; submit_many.c submits many jobs from a file of lines. */
#ifndef SCHEDULER_CLI_CLIENT_SUBMIT_H
#define SCHEDULER_CLI_CLIENT_SUBMIT_H

#include "scheduler/cli/client/client.h"
#include "scheduler/cli/client/decision_view.h"
#include "scheduler/cli/client/job_talk.h"

struct submit_options {
	struct client_params at;
	const char *type, *deadline, *batches, *mode, *key, *tag; /* NULL: not given */
	const char *epochs, *priority; /* "3..20" or "10"; a whole number */
	const char *file, *jsonl;
	const char *array, *after;      /* "1-20"; "12" or "12:ok" */
	const double *index;            /* of the job of an array that is asked for now; NULL: none */
	uint64_t retry;                 /* 0: not given */
	struct cli_list set;
	double slo_s, confidence, chance, value; /* NaN: not given */
	uint64_t cpus, gpus, max_memory_mb; /* 0: not given */
	bool best_effort, may_stop, wait, dry_run;
};

/* Nothing is given. */
#define SUBMIT_OPTIONS_NONE \
	{ .at = { .timeout_s = NAN }, .slo_s = NAN, .confidence = NAN, .chance = NAN, .value = NAN }

/* What `submit` and `run` have in common. */
#define SUBMIT_OPTIONS(o)                                                                                    \
	{ 0, "slo", CLI_DURATION, "TIME", "time limit from now to its end: 300s, 15m, 2h", &(o).slo_s },     \
	{ 0, "deadline", CLI_TEXT, "MOMENT", "or a point in time: 18:00, 2026-11-16T10:05:00Z",              \
	  &(o).deadline },                                                                                   \
	{ 0, "confidence", CLI_CONFIDENCE, "C",                                                              \
	  "confidence of the promise, 0.9 or 90% (default: the\ndaemon's)", &(o).confidence },               \
	{ 0, "set", CLI_LIST, "K=V,...", "parameters of the job; may be repeated", &(o).set },               \
	{ 0, "batches", CLI_TEXT, "N,...", "batch sizes to choose from (default: the job type's)",           \
	  &(o).batches },                                                                                    \
	{ 0, "epochs", CLI_TEXT, "A..B | N",                                                                 \
	  "number of epochs, or a range to choose from together\nwith the batch size", &(o).epochs },        \
	{ 0, "cpus", CLI_COUNT, "N", "cpus it runs on (default: the job type's)", &(o).cpus },               \
	{ 0, "gpus", CLI_COUNT, "N", "gpus it wants, with any batch (default: the job type's)", &(o).gpus }, \
	{ 0, "max-memory", CLI_COUNT, "MB", "use no batch size that is known to need more memory",           \
	  &(o).max_memory_mb },                                                                              \
	{ 0, "chance", CLI_CONFIDENCE, "C",                                                                  \
	  "if it cannot be promised, accept it without a promise if\nits chance to be in time is at least "  \
	  "this: 0.5 or 50%",                                                                                \
	  &(o).chance },                                                                                     \
	{ 0, "value", CLI_POSITIVE, "V",                                                                     \
	  "how much it is worth in time (a usual job: 1); above 1 only\nwithin the budget of your tenant",   \
	  &(o).value },                                                                                      \
	{ 0, "best-effort", CLI_FLAG, NULL, "accept it without a promise rather than reject it",             \
	  &(o).best_effort },                                                                                \
	{ 0, "may-stop", CLI_FLAG, NULL,                                                                     \
	  "may end after an earlier epoch: to be in time, or,\nwith a range of epochs, for other jobs",      \
	  &(o).may_stop },                                                                                   \
	{ 0, "priority", CLI_TEXT, "N", "-100 to 100 (default: 0); more than 0 is for admins",               \
	  &(o).priority },                                                                                   \
	{ 0, "key", CLI_TEXT, "KEY", "a second submit with the same key creates no new job", &(o).key },     \
	{ 0, "tag", CLI_TEXT, "TAG", "your own name for it", &(o).tag },                                     \
	{ 0, "after", CLI_TEXT, "JOB,...[:ok]",                                                              \
	  "wait until these jobs have ended; with :ok it is cancelled if\none of them did not end well",     \
	  &(o).after },                                                                                      \
	{ 0, "retry", CLI_COUNT, "N", "repeat a run that fails, at most so often", &(o).retry },             \
	{ 'n', "dry-run", CLI_FLAG, NULL, "show the decision and all candidates, but submit nothing",        \
	  &(o).dry_run }

/* False: an option is wrong, and a message was printed. */
bool submit_options_check(const struct cli *c, const struct submit_options *o);

/* Checks that an object from a file has only members of the protocol. `where` names it in messages. */
int submit_object_check(const char *where, const struct json *object, struct err *err);
/* Begins the request and fills it in. `object` may be NULL; options override it. */
void submit_request(struct client *client, const struct submit_options *o, const struct json *object);

enum submit_verdict { SUBMIT_PROMISED, SUBMIT_BEST_EFFORT, SUBMIT_REJECTED, SUBMIT_CHANCE, SUBMIT_WAITING };
enum { N_SUBMIT_VERDICTS = SUBMIT_WAITING + 1 };
struct submit_answer {                 /* borrows from the reply */
	enum submit_verdict verdict;
	bool duplicate, has_job, has_decision;
	struct job_view job;
	struct decision_view decision;
	const struct json *after_more; /* further jobs that it waits for; NULL: none */
	const char *reason;            /* of a dry run: why nothing can be promised yet; NULL: it can */
	const char *probe;             /* the job that finds out about its context; NULL: none does */
};
int submit_answer_read(const struct json *reply, bool dry_run, struct submit_answer *out,
                       struct client_fault *f);

/* A job that was waited for, as JSON: the reply, with the job as it ended. */
int submit_print_ended(const struct cli *c, const struct json *reply, const struct json *job);

/* The answer for people. */
void submit_answer_put(const struct submit_answer *a, bool dry_run, const struct cli *c, struct strbuf *out);

/* "1-20" or "1-20:5"; false: it is neither. */
bool submit_array_parse(const char *text, double *out_from, double *out_to, double *out_step);
#define SUBMIT_MAX_ARRAY 100000 /* jobs */
/* Submits every line of o->jsonl, or the jobs of o->array; returns the exit code. */
int submit_many(const struct cli *c, const struct submit_options *o, struct client *client,
                const struct json *object);

#endif
