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
#include "common/io.h"
#include "common/places.h"
#include "common/text/text.h"
#include "common/text/hash.h"
#include "scheduler/cli/cli.h"
#include "scheduler/config/config.h"
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

/* ---- its configuration: the folders it knows ---- */

/* The folder of a type: its description says which. False: it does not exist any more, or is not ours. */
static bool folder_of(const struct json *type, struct job_folder *out)
{
	const char *job = json_string(json_get(type, "job"), NULL);
	char dir[PATH_MAX];
	const char *slash = job ? strrchr(job, '/') : NULL;

	if (!slash || (size_t)(slash - job) >= sizeof dir || !job_folder_has(job))
		return false;
	snprintf(dir, sizeof dir, "%.*s", (int)(slash - job), job);
	return !job_folder_open(out, dir, "", NULL);
}

/* What the folder is called: the name it has there, its own, or with a number behind it if that is taken. */
static void name_it(const struct json *types, const struct job_folder *folder, char *out)
{
	for (const struct json *t = json_first(types); t; t = json_next(t)) {
		if (!strcmp(json_string(json_get(t, "job"), ""), folder->job)) {
			snprintf(out, JOB_FOLDER_NAME + 1, "%s", json_key(t));
			return;
		}
	}
	if (json_get(types, folder->name))
		snprintf(out, JOB_FOLDER_NAME + 1, "%.50s-%08x", folder->name,
			 (unsigned)hash_text(HASH_START, folder->dir));
	else
		snprintf(out, JOB_FOLDER_NAME + 1, "%s", folder->name);
}

static void put_text(struct strbuf *out, const char *key, const char *text)
{
	struct json_writer w;

	strbuf_printf(out, "  \"%s\": ", key);
	json_begin(&w, out, false);
	json_put_string(&w, text);
	strbuf_puts(out, ",\n");
}

/* A description that changed changes this file, so that a daemon that runs reads both again. */
static void put_described(const struct job_folder *f, struct strbuf *out)
{
	struct stat st;

	if (!stat(f->job, &st))
		strbuf_printf(out, "    // described at %lld.%09ld\n", (long long)st.st_mtim.tv_sec,
			      st.st_mtim.tv_nsec);
}

/* What the user has added to an object of the file: all but the keys that are written here. */
static void put_kept(const struct json *from, const char *const *ours, const char *before, const char *after,
		     struct strbuf *out)
{
	struct json_writer w;

	for (const struct json *m = json_first(from); m; m = json_next(m)) {
		bool mine = false;

		for (size_t i = 0; ours[i]; i++)
			mine |= !strcmp(ours[i], json_key(m));
		if (mine)
			continue;
		strbuf_puts(out, before);
		json_begin(&w, out, false);
		json_put_string(&w, json_key(m));
		strbuf_puts(out, ": ");
		json_begin(&w, out, false);
		cli_json_copy(&w, m);
		strbuf_puts(out, after);
	}
}

/* gpus: how many the machine has, which a job may ask for unless its type says otherwise. */
static void put_type(const struct job_folder *f, const char *name, const struct json *was, double gpus,
		     struct strbuf *out)
{
	static const char *const ours[] = {
		"job", "model", "first_after", "table", "curves", "batches", NULL
	};

	put_described(f, out);
	job_folder_type(f, name, out);
	if (out->len) /* reopen the object that the folder has closed */
		out->text[--out->len] = '\0';
	put_kept(was, ours, ",\n      ", "", out);
	if (gpus > 0.0 && !json_get(was, "resources"))
		strbuf_printf(out, ",\n      \"resources\": {\"max_gpus\": %.0f}", gpus);
	strbuf_puts(out, "}");
}

/* folder NULL: no other than those that are there; then the daemon is to have a page. */
static void put_configuration(const struct own_daemon *o, const struct json *was,
			      const struct job_folder *folder, const char *name, double idle_s,
			      struct strbuf *out)
{
	static const char *const ours[] = { "socket", "state_dir", "idle_exit_s", "types", NULL };
	const char *comma = "";
	const struct json *types = json_get(was, "types");
	double gpus = json_number(json_path(was, "resources.gpus"), 0.0);
	struct job_folder other;

	strbuf_puts(
		out,
		"// The daemon of `postrider run`, which writes this file: one job type for each command or "
		"folder.\n// Keys that you add or change are kept, here and in a type, but not your "
		"comments.\n{\n");
	put_text(out, "socket", o->socket);
	put_text(out, "state_dir", o->state);
	if (!json_get(was, "socket_mode"))
		put_text(out, "socket_mode", "0600");
	strbuf_printf(out, "  \"idle_exit_s\": %.9g,\n", idle_s);
	if (!json_get(was, "learning"))
		strbuf_puts(out, "  \"learning\": {\"retrain_after\": 24},\n");
	if (!folder && !json_get(was, "http")) /* this machine only, at any free port */
		strbuf_puts(out, "  \"http\": {\"listen\": \"127.0.0.1:0\"},\n");
	put_kept(was, ours, "  ", ",\n", out);
	strbuf_puts(out, "  \"types\": {\n");
	for (const struct json *t = json_first(types); t; t = json_next(t)) {
		if ((folder && !strcmp(json_key(t), name)) || !folder_of(t, &other))
			continue; /* a folder that was removed is forgotten */
		strbuf_puts(out, comma);
		put_type(&other, json_key(t), t, gpus, out);
		comma = ",\n";
	}
	if (folder) {
		strbuf_puts(out, comma);
		put_type(folder, name, json_get(types, name), gpus, out);
	}
	strbuf_puts(out, "\n  }\n}\n");
}

/* Under the lock. *out_changed: a daemon that runs has to read it again. */
static int enlist(const struct own_daemon *o, const struct job_folder *folder, double idle_s, char *type,
		  bool *out_changed, struct err *err)
{
	struct strbuf fresh = { 0 };
	struct json *v = NULL;
	char *text = NULL;
	size_t len = 0;
	int rc = job_folder_has(o->config) ? io_read_file(o->config, CONFIG_MAX_BYTES, &text, &len, err) : 0;

	/* What the user has written into it is not thrown away for a missing comma. */
	if (!rc && text)
		rc = json_parse_settings(o->config, text, len, &v, err);
	if (!rc) {
		if (isnan(idle_s))
			idle_s = json_number(json_get(v, "idle_exit_s"), OWN_DAEMON_IDLE_S);
		if (folder)
			name_it(json_get(v, "types"), folder, type);
		put_configuration(o, v, folder, type, idle_s, &fresh);
		*out_changed = !text || fresh.len != len || memcmp(strbuf_text(&fresh), text, len) != 0;
		if (fresh.failed)
			rc = err_nomem(err, "the configuration");
		else if (*out_changed)
			rc = io_write_file(o->config, strbuf_text(&fresh), fresh.len, err);
	}
	json_free(v);
	free(text);
	strbuf_release(&fresh);
	return rc;
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

/* folder NULL: as own_daemon_page(). */
static int open_own(const struct cli *c, const struct job_folder *folder, double idle_s,
		    const struct client_params *at, char *type, struct client **out, struct client_fault *f)
{
	struct own_daemon o;
	struct client_params here = { .socket = o.socket, .timeout_s = at->timeout_s, .own = true };
	struct err err = { 0 };
	bool changed = false;
	int lock = -1, rc = own_daemon_find(&o, &err);

	if (!rc && !folder && !job_folder_has(o.config))
		rc = err_fail(&err, ERR_NOTFOUND,
			      "you have no daemon yet; the first 'postrider run -- COMMAND' makes one");
	if (!rc)
		rc = own_daemon_make_folder(o.dir, &err);
	/* Two at a time would start two daemons, or forget each other's folder. */
	if (!rc && ((lock = open(o.lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0 || flock(lock, LOCK_EX)))
		rc = err_fail(&err, ERR_IO, "%s: %s", text_tail(o.lock, 200), strerror(errno));
	if (!rc)
		rc = enlist(&o, folder, idle_s, type, &changed, &err);
	if (rc) {
		rc = client_fail(f, err_exit_code(err.code), "%s", err.text);
	} else {
		rc = client_open(&here, out, f);
		if (!rc && (rc = greet(*out, changed, f))) {
			client_close(*out);
			*out = NULL;
		}
		if (rc && rc != CLIENT_UNREACHABLE && strstr(f->text, "needs a restart"))
			rc = end_old(&o, f);
		if (rc == CLIENT_UNREACHABLE)
			rc = start(c, &o, &here, out, f);
	}
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
