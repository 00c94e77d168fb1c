/* Requests: a whole conversation is sent to a real daemon in this process, with its socket, its loop and its
 * database in a temporary folder. Every line is answered, once, by JSON that says ok or why not; never by
 * "internal". Run from the root of the repository: the model is one of the corpus. No job type has a command,
 * so nothing is ever run. */
#define _GNU_SOURCE
#include <cblas.h>
#include <gsl/gsl_errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/strbuf.h"
#include "scheduler/daemon/daemon.h"

#define RUNS_PER_DAEMON 20000 /* then a fresh one: what one input left behind must not add up */
#define RUNS_PER_ANSWER 64
#define PATIENCE_S 20
#define LONG_REPLY 1024

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char configuration[] =
	"{\"socket\":\"%s/socket\",\"state_dir\":\"%s/state\",\"policy\":\"postrider\","
	"\"model\":\"tests/fuzz/corpus/model/"
	"hybrid.model\",\"cores\":2,\"slots\":4,\"memory_mb\":4000,\"max_queued\":6,"
	"\"max_finished\":3,\"durability\":\"none\",\"idle_timeout_s\":0,\"outside_load\":false,\"log\":{"
	"\"level\":\"error\"},"
	"\"types\":{"
	"\"a\":{\"params\":{\"network\":{\"kind\":\"word\",\"default\":\"lenet5\"},"
	"\"n\":{\"kind\":\"integer\",\"min\":-5,\"max\":9000},\"x\":{\"kind\":\"number\",\"required\":true}},"
	"\"cpus\":{\"min\":1,\"max\":8},\"memory_mb\":100,\"memory_mb_per_record\":1,"
	"\"lr\":{\"rule\":\"sqrt\",\"base\":0.1,\"base_batch\":64}},"
	"\"b\":{\"batches\":[64,128],\"params\":{\"w\":{\"kind\":\"word\",\"values\":[\"one\",\"two\"],"
	"\"default\":\"one\"}}}}}";

static char dir[64];
static struct daemon *d;
static int runs, fd = -1;
static unsigned long_replies;
static bool shown; /* the configuration is where the daemon looks for it */
static struct strbuf in; /* what was heard of a line */

static void remove_folder(void)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	if (dir[0] && system(command))
		fprintf(stderr, "%s stays\n", dir);
	dir[0] = '\0';
}

static void give_up(const char *why)
{
	remove_folder();
	fprintf(stderr, "fuzz_request: %s\n", why);
	abort();
}

static void start(void)
{
	static char path[96];
	struct daemon_params p = { .config_path = path };
	struct err err = { 0 };
	FILE *f;

	snprintf(dir, sizeof dir, "%s/postrider-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(dir))
		give_up("no temporary folder");
	snprintf(path, sizeof path, "%s/config.json", dir);
	f = fopen(path, "w");
	if (!f || fprintf(f, configuration, dir, dir) < 0 || fclose(f))
		give_up("the configuration cannot be written");
	shown = true;
	if (daemon_new(&p, &d, &err))
		give_up(err.text);
	for (size_t i = 0; i < sizeof d->event.signal / sizeof d->event.signal[0]; i++)
		event_del(d->event.signal[i]); /* signals are the fuzzer's */
}

/* To reload takes longer than a hundred other requests, so the file is there for one run in many. */
static void show_configuration(bool on)
{
	char here[96], away[96];

	snprintf(here, sizeof here, "%s/config.json", dir);
	snprintf(away, sizeof away, "%s/away.json", dir);
	if (on != shown && rename(on ? away : here, on ? here : away))
		give_up("the configuration cannot be moved");
	shown = on;
}

static void restart(void)
{
	static bool once;

	if (!once) {
		once = true;
		signal(SIGPIPE, SIG_IGN);
		gsl_set_error_handler_off();
		openblas_set_num_threads(1);
		setenv("POSTRIDER_SUPERVISOR", "/bin/false", 1); /* asked for at the start, and never used */
		atexit(remove_folder);
	}
	if (fd >= 0)
		close(fd);
	fd = -1;
	daemon_free(d);
	d = NULL;
	remove_folder();
	start();
}

/* How many answers are owed: one for each line that is not empty. */
static size_t count_lines(const uint8_t *data, size_t size)
{
	size_t n = 0;

	for (size_t at = 0; at < size;) {
		const uint8_t *end = memchr(data + at, '\n', size - at);
		size_t len = end ? (size_t)(end - (data + at)) : size - at;

		n += len > 0 && !(len == 1 && data[at] == '\r');
		at += len + 1;
	}
	return n;
}

static int connect_client(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(at.sun_path, sizeof at.sun_path, "%s/socket", dir);
	if (made < 0 || connect(made, (struct sockaddr *)&at, sizeof at))
		give_up("the daemon cannot be reached");
	return made;
}

/* 1: an answer, 0: an event or the greeting. */
static size_t check_line(const char *line, size_t len)
{
	struct json *v = NULL;
	struct err err = { 0 };
	const struct json *error;
	size_t is_answer;

	/* A long one is whole JSON whatever the input, and to read it takes longer than all the rest. */
	if (len > LONG_REPLY && long_replies++ % 64) {
		if (line[0] != '{' || line[len - 1] != '}' || strncmp(line, "{\"v\":1,", 7))
			give_up("a long line that is no object");
		return !memmem(line, 64, "\"event\":", 8);
	}
	if (json_parse("reply", line, len, &v, &err))
		give_up(err.text);
	is_answer = !json_get(v, "event") && !json_get(v, "greeting");
	error = json_get(v, "error");
	if (json_number(json_get(v, "v"), 0) != 1.0)
		give_up("a line without a version");
	if (is_answer && json_bool(json_get(v, "ok"), true) == (error != NULL))
		give_up("an answer that is neither ok nor an error");
	if (error &&
	    (!*json_string(json_get(error, "code"), "") || !*json_string(json_get(error, "message"), "")))
		give_up("an error without a reason");
	if (error && !strcmp(json_string(json_get(error, "code"), ""), "internal"))
		give_up(json_string(json_get(error, "message"), ""));
	json_free(v);
	return is_answer;
}

/* Reads what is there; false: the daemon has closed the connection. */
static bool hear(size_t *answers)
{
	static char chunk[65536];
	ssize_t n;

	while ((n = read(fd, chunk, sizeof chunk)) > 0) {
		const char *line, *end;

		strbuf_add(&in, chunk, (size_t)n);
		for (line = in.text; (end = memchr(line, '\n', in.len - (size_t)(line - in.text)));
		     line = end + 1)
			*answers += check_line(line, (size_t)(end - line));
		in.len -= (size_t)(line - in.text);
		memmove(in.text, line, in.len);
	}
	return n != 0;
}

/* Both sides in turn: until all is sent, and, with `whole`, answered. Answers that wait for the store's
 * threads are awaited only now and then, because a thread that is woken costs more than a request. */
static void converse(const uint8_t *data, size_t size, bool whole)
{
	/* A last line without its end gets one, and what was watched is not watched any more: the same
	 * connection serves the next input. */
	static const char last[] = "\n{\"op\":\"unwatch\"}\n";
	static size_t answers, owed;
	size_t sent = 0, heard = 0;
	time_t until = time(NULL) + PATIENCE_S;
	struct strbuf all = { 0 };

	if (fd < 0) {
		fd = connect_client();
		answers = owed = 0;
	}
	owed += count_lines(data, size) + 1;
	strbuf_add(&all, data, size);
	strbuf_add(&all, last, sizeof last - 1);
	while (hear(&answers) && (sent < all.len || (whole && answers < owed))) {
		ssize_t n = sent < all.len ? send(fd, all.text + sent, all.len - sent, MSG_NOSIGNAL) : 0;
		bool nothing = sent == all.len && answers == heard;

		if (n > 0)
			sent += (size_t)n;
		event_base_loop(d->base, nothing ? EVLOOP_ONCE : EVLOOP_NONBLOCK);
		heard = answers;
		if (time(NULL) > until)
			give_up("an answer does not come");
	}
	if (answers > owed || (whole && answers != owed))
		give_up("more or fewer answers than lines");
	if (whole && in.len)
		give_up("half a line");
	strbuf_release(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (runs % RUNS_PER_DAEMON == 0)
		restart();
	runs++;
	show_configuration(runs % RUNS_PER_ANSWER == 0);
	converse(data, size, runs % RUNS_PER_ANSWER == 0 || runs % RUNS_PER_DAEMON == 0);
	/* As if nobody had asked it to leave. */
	daemon_drain(d, false, false);
	d->stopping = false;
	return 0;
}
