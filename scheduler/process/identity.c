/* Processes and their start times: does one still live, and how to end the rest of its session. See
 * identity.h. */
#define _GNU_SOURCE
#include "scheduler/process/identity.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "scheduler/process/proc.h"

bool proc_boot_id(char out[RECORD_BOOT_BYTES + 1])
{
	return proc_read("/proc/sys/kernel/random/boot_id", out, RECORD_BOOT_BYTES + 1) == RECORD_BOOT_BYTES;
}

bool proc_lives(pid_t pid, uint64_t start_ticks)
{
	struct proc_process p;

	return pid > 0 && proc_process_read(pid, &p) && p.start_ticks == start_ticks && p.state != 'Z' &&
	       p.state != 'X';
}

/* Looks for the word in the environment that the process was started with; the first 16 KB are enough. */
static bool has_mark(pid_t pid, const char *mark)
{
	char path[64], text[16384];
	size_t len = strlen(mark) + 1;
	ssize_t n;

	snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
	n = proc_read(path, text, sizeof text);
	for (const char *word = text; n > 0 && word < text + n; word += strlen(word) + 1) {
		if ((size_t)(text + n - word) >= len - 1 && memcmp(word, mark, len) == 0)
			return true;
	}
	return false;
}

/* The descriptor makes sure that the process we look at is the one we kill: its pid cannot be given again
 * meanwhile. */
static void kill_member(pid_t pid, pid_t leader, uint64_t since_ticks, const char *mark)
{
	int fd = pidfd_open(pid, 0);
	struct proc_process p;

	if (fd < 0)
		return;
	if (proc_process_read(pid, &p) && p.session == leader && p.start_ticks >= since_ticks &&
	    (!mark || has_mark(pid, mark)))
		pidfd_send_signal(fd, SIGKILL, NULL, 0);
	close(fd);
}

void proc_kill_session(pid_t leader, uint64_t start_ticks, const char *mark)
{
	struct proc_process p;
	struct dirent *e;
	DIR *d;

	if (leader <= 1)
		return;
	/* While a session has members, its number is not given again. If the leader is a process of another
	 * time, our session has no members left. */
	if (proc_process_read(leader, &p) && p.start_ticks != start_ticks)
		return;
	d = opendir("/proc");
	while (d && (e = readdir(d))) {
		long pid = strtol(e->d_name, NULL, 10);

		if (pid > 1 && proc_process_read((pid_t)pid, &p) && p.session == leader)
			kill_member((pid_t)pid, leader, start_ticks, mark);
	}
	if (d)
		closedir(d);
}
