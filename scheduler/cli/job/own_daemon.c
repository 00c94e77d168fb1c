/* Starts the daemon of a job's folder on demand. See own_daemon.h. */
#define _GNU_SOURCE
#include "scheduler/cli/job/own_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "scheduler/cli/cli.h"
#include "scheduler/process/output.h"

#define PROGRAM "postriderd"

/* The program beside us, or the one on the path. */
static void find_program(char *out, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", out, size - sizeof PROGRAM);
	char *slash;

	out[n > 0 ? n : 0] = '\0';
	slash = strrchr(out, '/');
	if (slash)
		strcpy(slash + 1, PROGRAM);
	if (!slash || access(out, X_OK))
		snprintf(out, size, "%s", PROGRAM);
}

/* In the child: a session of its own, so that neither Ctrl-C nor the end of the terminal reaches it. */
static void become(const char *program, const struct job_folder *folder)
{
	int in = open("/dev/null", O_RDONLY), out = open(folder->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	sigset_t none;

	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (in >= 0 && out >= 0 && dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(out, 2) >= 0) {
		for (int fd = 3; fd < 256; fd++)
			close(fd);
		execlp(program, PROGRAM, "--config", folder->config, (char *)NULL);
	}
	_exit(127);
}

static int start(const struct cli *c, const struct job_folder *folder, const struct client_params *at,
		 struct client **out, struct client_fault *f)
{
	char program[PATH_MAX], words[300];
	double until_s = clock_monotonic_s() + OWN_DAEMON_START_S;
	pid_t pid;
	int status, rc;

	find_program(program, sizeof program);
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		become(program, folder);
	if (pid < 0)
		return client_fail(f, CLIENT_FAILED, "cannot start a daemon: %s", strerror(errno));
	do {
		usleep(20000);
		rc = client_open(at, out, f);
		if (rc && waitpid(pid, &status, WNOHANG) == pid)
			return client_fail(
				f, WIFEXITED(status) && WEXITSTATUS(status) == 127 ? CLIENT_FAILED : 6,
				"the daemon could not be started: %s",
				output_last_words(folder->log, words, sizeof words));
	} while (rc == CLIENT_UNREACHABLE && clock_monotonic_s() < until_s);
	if (!rc && c->verbose)
		cli_notice(c, "started a daemon for this job, process %ld; its log is %s", (long)pid,
			   folder->log);
	return rc;
}

/* It may have been started before there was a model. */
static int refresh(const struct job_folder *folder, struct client *client, struct client_fault *f)
{
	struct json *hello = NULL, *reply = NULL;
	int rc;

	client_begin(client, "hello");
	rc = client_call(client, &hello, f);
	if (!rc && json_type(json_get(hello, "model")) != JSON_OBJECT && job_folder_has(folder->model)) {
		client_begin(client, "reload");
		rc = client_call(client, &reply, f);
		json_free(reply);
	}
	json_free(hello);
	return rc;
}

int own_daemon_open(const struct cli *c, const struct job_folder *folder, const struct client_params *at,
		    struct client **out, struct client_fault *f)
{
	struct client_params here = { .socket = folder->socket, .timeout_s = at->timeout_s };
	int rc = client_open(&here, out, f);

	if (!rc)
		return refresh(folder, *out, f);
	return rc == CLIENT_UNREACHABLE ? start(c, folder, &here, out, f) : rc;
}
