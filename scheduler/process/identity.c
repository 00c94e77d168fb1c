/* Processes and their start times. See exec_local_proc.h. */
#define _GNU_SOURCE
#include "scheduler/process/identity.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

struct proc_stat {
	char state; /* 'Z', 'X': dead, and not reaped yet */
	int session;
	uint64_t start_ticks;
};

static ssize_t read_small(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, text, size - 1);
	close(fd);
	if (n >= 0)
		text[n] = '\0';
	return n;
}

static bool read_stat(pid_t pid, struct proc_stat *out)
{
	char path[64], text[1024];
	const char *after;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (read_small(path, text, sizeof text) <= 0)
		return false;
	after = strrchr(text, ')'); /* the name of the program may hold anything, also blanks and brackets */
	return after && sscanf(after,
			       ") %c %*d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
			       "%*d %" SCNu64,
			       &out->state, &out->session, &out->start_ticks) == 3;
}

bool proc_boot_id(char out[RECORD_BOOT_BYTES + 1])
{
	return read_small("/proc/sys/kernel/random/boot_id", out, RECORD_BOOT_BYTES + 1) == RECORD_BOOT_BYTES;
}

bool proc_lives(pid_t pid, uint64_t start_ticks)
{
	struct proc_stat st;

	return pid > 0 && read_stat(pid, &st) && st.start_ticks == start_ticks && st.state != 'Z' &&
	       st.state != 'X';
}

/* The environment a process was started with, as far as its first pages tell. */
static bool has_mark(pid_t pid, const char *mark)
{
	char path[64], text[16384];
	size_t len = strlen(mark) + 1;
	ssize_t n;

	snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
	n = read_small(path, text, sizeof text);
	for (const char *word = text; n > 0 && word < text + n; word += strlen(word) + 1) {
		if ((size_t)(text + n - word) >= len - 1 && memcmp(word, mark, len) == 0)
			return true;
	}
	return false;
}

/* A descriptor holds the process fast while we look at it a second time. */
static void kill_member(pid_t pid, pid_t leader, uint64_t since_ticks, const char *mark)
{
	int fd = pidfd_open(pid, 0);
	struct proc_stat st;

	if (fd < 0)
		return;
	if (read_stat(pid, &st) && st.session == leader && st.start_ticks >= since_ticks &&
	    (!mark || has_mark(pid, mark)))
		pidfd_send_signal(fd, SIGKILL, NULL, 0);
	close(fd);
}

void proc_kill_session(pid_t leader, uint64_t start_ticks, const char *mark)
{
	struct proc_stat st;
	struct dirent *e;
	DIR *d;

	if (leader <= 1)
		return;
	/* While a session has members its number is not given again; a leader of another time means that ours had
	 * none left. */
	if (read_stat(leader, &st) && st.start_ticks != start_ticks)
		return;
	d = opendir("/proc");
	while (d && (e = readdir(d))) {
		long pid = strtol(e->d_name, NULL, 10);

		if (pid > 1 && read_stat((pid_t)pid, &st) && st.session == leader)
			kill_member((pid_t)pid, leader, start_ticks, mark);
	}
	if (d)
		closedir(d);
}
