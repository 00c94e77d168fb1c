/* The daemon of a user: its configuration, and its start on demand. See own_daemon.h. */
#define _GNU_SOURCE
#include "scheduler/cli/job/own_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/places.h"
#include "common/text/text.h"
#include "scheduler/cli/cli.h"
#include "scheduler/process/output.h"

#define PROGRAM "postriderd"

/* ---- places ---- */

int own_daemon_find(struct own_daemon *o, struct err *err)
{
	char *dir, *socket;
	int rc = place_run(&dir, &socket, err);

	if (rc)
		return rc;
	if (strlen(dir) >= 3000)
		rc = err_fail(err, ERR_ARG, "%s is too long for a folder", text_tail(dir, 100));
	else if (strlen(socket) > PLACE_MAX_SOCKET)
		rc = err_fail(err, ERR_ARG, "%s is too long for a socket; set XDG_RUNTIME_DIR",
			      text_tail(socket, 100));
	if (!rc) {
		snprintf(o->dir, sizeof o->dir, "%.3000s", dir);
		snprintf(o->socket, sizeof o->socket, "%.3000s", socket);
		snprintf(o->config, sizeof o->config, "%.3000s/postrider.json", dir);
		snprintf(o->lock, sizeof o->lock, "%.3000s/lock", dir);
		snprintf(o->state, sizeof o->state, "%.3000s/state", dir);
		snprintf(o->log, sizeof o->log, "%.3000s/daemon.log", dir);
	}
	free(dir);
	free(socket);
	return rc;
}

int own_daemon_make_folder(const char *path, struct err *err)
{
	char part[PATH_MAX];

	for (const char *s = path + 1;; s++) {
		if (*s && *s != '/')
			continue;
		snprintf(part, sizeof part, "%.*s", (int)(s - path), path);
		if (mkdir(part, 0700) && errno != EEXIST)
			return err_fail(err, errno == EACCES ? ERR_PERM : ERR_IO,
					"cannot make the folder %s: %s", text_tail(part, 200),
					strerror(errno));
		if (!*s)
			return 0;
	}
}

/* ---- starting it ---- */

/* In the child: a new session, so that neither Ctrl-C nor the end of the terminal reaches it. */
static void become(const char *program, const struct own_daemon *o)
{
	int in = open("/dev/null", O_RDONLY), out = open(o->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	sigset_t none;

	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (in >= 0 && out >= 0 && dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(out, 2) >= 0) {
		for (int fd = 3; fd < 256; fd++)
			close(fd);
		execlp(program, PROGRAM, "--config", o->config, (char *)NULL);
	}
	_exit(127);
}

static int start(const struct cli *c, const struct own_daemon *o, const struct client_params *at,
		 struct client **out, struct client_fault *f)
{
	char program[PATH_MAX], words[300];
	double until_s = clock_monotonic_s() + OWN_DAEMON_START_S;
	pid_t pid;
	int status, rc;

	if (!place_program(PROGRAM, program, sizeof program))
		snprintf(program, sizeof program, PROGRAM); /* the one on the path */
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		become(program, o);
	if (pid < 0)
		return client_fail(f, CLIENT_FAILED, "cannot start a daemon: %s", strerror(errno));
	do {
		usleep(20000);
		rc = client_open(at, out, f);
		if (rc && waitpid(pid, &status, WNOHANG) == pid)
			return client_fail(
				f, WIFEXITED(status) && WEXITSTATUS(status) == 127 ? CLIENT_FAILED : 6,
				"the daemon could not be started: %s",
				output_last_words(o->log, words, sizeof words));
	} while (rc == CLIENT_UNREACHABLE && clock_monotonic_s() < until_s);
	if (!rc && c->verbose)
		cli_notice(c, "started your daemon, process %ld; its log is %s", (long)pid, o->log);
	return rc;
}

/* A first word with one that runs: it may be about to leave, or to put a model to use. */
static int greet(struct client *client, bool reload, struct client_fault *f)
{
	double until_s = clock_monotonic_s() + OWN_DAEMON_START_S;
	int rc;

	for (;;) {
		struct json *reply = NULL;

		client_begin(client, reload ? "reload" : "hello");
		rc = client_call(client, &reply, f);
		json_free(reply);
		if (!rc || !strstr(f->text, "a reload is under way") || clock_monotonic_s() > until_s)
			return rc;
		usleep(20000);
	}
}

/* The process that listens at the socket; 0: nobody does. */
static pid_t listener(const struct own_daemon *o)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct ucred peer = { 0 };
	socklen_t size = sizeof peer;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "%.*s", PLACE_MAX_SOCKET, o->socket);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		peer.pid = 0;
	if (fd >= 0)
		close(fd);
	return peer.pid;
}

/* Ends the daemon, whose jobs go on, for one with the new configuration. */
static int end_old(const struct own_daemon *o, struct client_fault *f)
{
	double until_s = clock_monotonic_s() + OWN_DAEMON_START_S;
	pid_t pid = listener(o);

	if (pid > 0)
		kill(pid, SIGTERM);
	while (listener(o) == pid && pid > 0) {
		if (clock_monotonic_s() > until_s)
			return client_fail(f, CLIENT_FAILED, "your daemon, process %ld, does not end",
					   (long)pid);
		usleep(20000);
	}
	return CLIENT_UNREACHABLE;
}

/* A daemon whose configuration may have changed. */
static int reach(const struct cli *c, const struct own_daemon *o, const struct client_params *here,
		 bool changed, struct client **out, struct client_fault *f)
{
	int rc = *out ? 0 : client_open(here, out, f);

	if (!rc && (rc = greet(*out, changed, f))) {
		client_close(*out);
		*out = NULL;
	}
	if (rc && rc != CLIENT_UNREACHABLE && strstr(f->text, "needs a restart"))
		rc = end_old(o, f);
	if (rc == CLIENT_UNREACHABLE)
		rc = start(c, o, here, out, f);
	return rc;
}

struct asker {
	const struct cli *c;
	const struct own_daemon *o;
	const struct client_params *here;
	struct client *client;
	bool tried;
};

/* A type that has jobs cannot go. Who knows is the daemon, with the configuration as it still is. */
static bool has_jobs(void *owner, const char *type)
{
	struct asker *a = owner;
	struct client_fault ignored;
	struct json *reply = NULL;
	struct json_writer *w;
	bool some;

	if (!a->client && !a->tried && reach(a->c, a->o, a->here, false, &a->client, &ignored))
		a->client = NULL;
	a->tried = true;
	if (!a->client)
		return false;
	w = client_begin(a->client, "list");
	json_kv_string(w, "type", type);
	json_kv_open(w, "state", '[');
	json_put_string(w, "queued");
	json_put_string(w, "running");
	json_close(w, ']');
	json_kv_int(w, "limit", 1);
	some = client_call(a->client, &reply, &ignored) || json_size(json_get(reply, "jobs")) > 0;
	json_free(reply);
	return some;
}

/* folder NULL: as own_daemon_page(). */
static int open_own(const struct cli *c, const struct job_folder *folder, double idle_s,
		    const struct client_params *at, char *type, struct client **out, struct client_fault *f)
{
	struct own_daemon o;
	struct client_params here = { .socket = o.socket, .timeout_s = at->timeout_s };
	struct asker asker = { .c = c, .o = &o, .here = &here };
	struct own_types types = { .c = c,
				   .o = &o,
				   .folder = folder,
				   .idle_s = idle_s,
				   .type = type,
				   .has_jobs = has_jobs,
				   .owner = &asker };
	struct err err = { 0 };
	int lock = -1, rc = own_daemon_find(&o, &err);

	if (!rc && !folder && !job_folder_has(o.config))
		rc = err_fail(&err, ERR_NOTFOUND,
			      "you have no daemon yet; the first 'postrider run -- COMMAND' makes one");
	if (!rc)
		rc = own_daemon_make_folder(o.dir, &err);
	/* Two at a time would start two daemons, or forget each other's folder. */
	if (!rc && ((lock = open(o.lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0 || flock(lock, LOCK_EX)))
		rc = err_fail(&err, ERR_IO, "%s: %s", text_tail(o.lock, 200), strerror(errno));
	do {
		if (!rc)
			rc = own_types_enlist(&types, &err);
		if (rc) {
			rc = client_fail(f, err_exit_code(err.code), "%s", err.text);
			break;
		}
		rc = reach(c, &o, &here, types.changed, &asker.client, f);
	} while (rc && rc != CLIENT_UNREACHABLE && own_types_leave_out(&types, f->text) && !(rc = 0));
	if (rc) {
		own_types_take_back(&types);
		client_close(asker.client);
		asker.client = NULL;
	}
	*out = asker.client;
	own_types_release(&types);
	if (lock >= 0)
		close(lock);
	return rc;
}

int own_daemon_open(const struct cli *c, const struct job_folder *folder, double idle_s,
		    const struct client_params *at, char *type, struct client **out, struct client_fault *f)
{
	return open_own(c, folder, idle_s, at, type, out, f);
}

int own_daemon_page(const struct cli *c, const struct client_params *at, struct client **out,
		    struct client_fault *f)
{
	return open_own(c, NULL, NAN, at, NULL, out, f);
}
