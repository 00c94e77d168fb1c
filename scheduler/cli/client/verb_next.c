/* `postrider next`: how a job is to run its next epoch, for scripts in a shell and programs in any language.
 * It reads what the daemon has left in the job's folder (process/record_format.h), or what the job was given
 * at its start, so it works without the daemon and does not wait for it longer than 10 ms. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/text/text.h"
#include "scheduler/cli/cli.h"
#include "scheduler/cli/client/client.h"
#include "scheduler/process/next.h"

#define ANSWER_S 0.01 /* the longest wait for an answer to a report */
#define LOOK_US 500
#define TAKEN ".taken" /* behind the name of the file: what was read from it last */

struct options {
	const char *start, *accuracy;
	uint64_t report;
	double batch;
	struct client_params at;
};

/* ---- the files ---- */

static bool read_file(const char *path, struct next *out)
{
	char text[JOB_NEXT_MAX + 64];
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return next_read(text, out);
}

static bool taken_path(char *out)
{
	const char *path = getenv(ENV_NEXT);

	return path && (size_t)snprintf(out, PATH_MAX, "%s" TAKEN, path) < PATH_MAX;
}

/* Which batch the script trains with from now on. Without it a report names that of the start. */
static void note_taken(const struct next *n)
{
	char path[PATH_MAX], line[JOB_NEXT_MAX + 1];
	FILE *f = taken_path(path) ? fopen(path, "we") : NULL;

	if (!f)
		return;
	fprintf(f, "%s\n", next_line(n, line));
	fclose(f);
}

static bool given_at_start(const struct options *o, struct next *out)
{
	const char *start = getenv(ENV_START);

	return (start && next_read(start, out)) || (o->start && next_read(o->start, out));
}

static bool find(const struct options *o, struct next *out)
{
	const char *path = getenv(ENV_NEXT);

	return (path && read_file(path, out)) || given_at_start(o, out);
}

/* ---- the verb ---- */

static void put(const struct cli *c, const struct next *n, struct strbuf *out)
{
	char line[JOB_NEXT_MAX + 1];
	struct json_writer w;

	if (!c->json) {
		strbuf_printf(out, "%s\n", next_line(n, line));
		return;
	}
	json_begin(&w, out, true);
	json_open(&w, '{');
	json_kv_number(&w, "batch", n->batch);
	json_kv_number(&w, "lr", n->lr);
	json_kv_number(&w, "last", n->last);
	json_kv_number(&w, "after", n->after);
	json_close(&w, '}');
	strbuf_puts(out, "\n");
}

static int not_known(void)
{
	struct err err = { 0 };

	err_fail(&err, ERR_NOTFOUND,
		 "this is not a job of postrider, so no batch is known; --start 'batch=64 lr=0.01 last=12' "
		 "says "
		 "what to answer then");
	return cli_fail(&err);
}

static int answer(const struct cli *c, const struct options *o)
{
	struct strbuf out = { 0 };
	struct next n;
	int code;

	if (!find(o, &n))
		return not_known();
	note_taken(&n);
	put(c, &n, &out);
	code = cli_finish(c, &out);
	strbuf_release(&out);
	return code;
}

static void put_report(const struct options *o, double accuracy, double batch, struct strbuf *out)
{
	struct json_writer w;

	json_begin(&w, out, false);
	json_open(&w, '{');
	json_kv_int(&w, "epoch", (long long)o->report);
	if (!isnan(accuracy))
		json_kv_number(&w, "accuracy", accuracy);
	json_kv_number(&w, "batch", batch);
	json_kv_bool(&w, "asks", true);
	json_close(&w, '}');
	strbuf_puts(out, "\n");
}

static void await_answer(uint64_t epoch)
{
	double until_s = clock_monotonic_s() + ANSWER_S;
	const char *path = getenv(ENV_NEXT);
	struct next n;

	while (path && !(read_file(path, &n) && n.after >= (double)epoch) && clock_monotonic_s() < until_s)
		usleep(LOOK_US);
}

/* The line that the daemon reads in the output of the job; then its answer is there, or late. */
static int report(const struct cli *c, const struct options *o)
{
	double accuracy = NAN, batch = o->batch;
	struct strbuf out = { 0 };
	char path[PATH_MAX];
	struct next n;
	int code;

	if (o->accuracy && !text_number(o->accuracy, &accuracy))
		return cli_usage_error(c, "--accuracy %s: not a number", cli_clean(o->accuracy));
	if (isnan(batch) && ((taken_path(path) && read_file(path, &n)) || given_at_start(o, &n)))
		batch = n.batch;
	if (isnan(batch))
		return not_known();
	put_report(o, accuracy, batch, &out);
	code = cli_finish(c, &out);
	strbuf_release(&out);
	if (!code)
		await_answer(o->report);
	return code;
}

/* Of a job that its owner runs: the daemon is asked. */
static int ask(const struct cli *c, const struct options *o)
{
	double accuracy = NAN;
	struct client *client = NULL;
	struct json *reply = NULL;
	struct strbuf out = { 0 };
	struct client_fault f;
	struct json_writer *w;
	int code;

	if (o->accuracy && !text_number(o->accuracy, &accuracy))
		return cli_usage_error(c, "--accuracy %s: not a number", cli_clean(o->accuracy));
	code = client_open(&o->at, &client, &f);
	if (code)
		return client_say(&f);
	w = client_begin(client, "next");
	json_kv_string(w, "job", c->arg[0]);
	if (o->report)
		json_kv_int(w, "epoch", (long long)o->report);
	if (!isnan(accuracy))
		json_kv_number(w, "accuracy", accuracy);
	if (!isnan(o->batch))
		json_kv_number(w, "batch", o->batch);
	code = client_call(client, &reply, &f);
	if (code) {
		client_say(&f);
	} else {
		put(c,
		    &(struct next){ .batch = cli_json_number(reply, "batch"),
				    .lr = cli_json_number(reply, "lr"),
				    .last = cli_json_number(reply, "last"),
				    .after = cli_json_number(reply, "after") },
		    &out);
		code = cli_finish(c, &out);
	}
	strbuf_release(&out);
	json_free(reply);
	client_close(client);
	return code;
}

int verb_next(int argc, char **argv)
{
	struct options o = { .batch = NAN, .at = { .timeout_s = NAN } };
	const struct cli_option option[] = {
		{ 0, "report", CLI_COUNT, "EPOCH",
		  "print the report of this epoch, counted from 1, and wait up to 10 ms\nfor its answer",
		  &o.report },
		{ 0, "accuracy", CLI_TEXT, "A", "of the report", &o.accuracy },
		{ 0, "batch", CLI_POSITIVE, "B",
		  "the batch that the epoch was trained with (default: what\n'postrider next' printed last)",
		  &o.batch },
		{ 0, "start", CLI_TEXT, "LINE", "what to answer outside a job: 'batch=64 lr=0.01 last=12'",
		  &o.start },
		CLIENT_OPTIONS(o.at),
		{ 0 },
	};
	const struct cli_usage usage = {
		.verb = "next",
		.synopsis = "[--start LINE] [--json]\n--report EPOCH [--accuracy A] [--batch B]\nJOB "
			    "[--report EPOCH] "
			    "[--accuracy A] [--batch B] [--json]",
		.what = "Prints how a job is to run its next epoch: batch, learning rate, and the epoch to "
			"end "
			"after. A\n"
			"training script in a shell asks so before each epoch. Without the daemon it prints "
			"what "
			"the\n"
			"job was started with. With JOB it asks the daemon, about a job of mode 'advise'.",
		.option = option,
		.json = true,
		.max_args = 1,
		.examples = "  eval \"$(postrider next)\"        # sets batch, lr and last\n"
			    "  postrider next --report $epoch --accuracy $accuracy\n",
	};
	struct next n;
	struct cli c;
	int code;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	if (o.start && !next_read(o.start, &n))
		return cli_usage_error(&c,
				       "--start %s: need batch=B, and if they are known lr=R and last=EPOCH",
				       cli_clean(o.start));
	if (!o.report && (o.accuracy || !isnan(o.batch)))
		return cli_usage_error(&c, "--accuracy and --batch belong to --report EPOCH");
	if (c.n_args)
		return ask(&c, &o);
	return o.report ? report(&c, &o) : answer(&c, &o);
}
