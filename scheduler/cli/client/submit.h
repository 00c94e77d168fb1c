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

/* The answer for people. */
void submit_answer_put(const struct submit_answer *a, bool dry_run, const struct cli *c, struct strbuf *out);

/* "1-20" or "1-20:5"; false: it is neither. */
bool submit_array_parse(const char *text, double *out_from, double *out_to, double *out_step);
#define SUBMIT_MAX_ARRAY 100000 /* jobs */
/* Submits every line of o->jsonl, or the jobs of o->array; returns the exit code. */
int submit_many(const struct cli *c, const struct submit_options *o, struct client *client,
                const struct json *object);

#endif
