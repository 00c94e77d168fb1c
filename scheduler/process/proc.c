/* Parses the files of /proc that tell how busy the machine is and what a process does. See proc.h. */
#include "scheduler/process/proc.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STAT_BYTES 65536 /* the line of processes comes after those of all cpus and of the interrupts */

ssize_t proc_read(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, out, size - 1);
	close(fd);
	if (n >= 0)
		out[n] = '\0';
	return n;
}

/* ---- the machine ---- */

/* "cpu  1 2 3 4 ...": the columns up to idle are in every kernel. */
static bool ticks(const char *line, struct proc_cpu *out)
{
	double *column[] = { &out->user,   &out->nice, &out->system,  &out->idle,
			     &out->iowait, &out->irq,  &out->softirq, &out->steal };
	size_t n = 0;

	out->total = 0.0;
	for (; n < sizeof column / sizeof column[0]; n++) {
		char *end;

		line += strspn(line, " ");
		if (!isdigit((unsigned char)*line))
			break;
		*column[n] = strtod(line, &end);
		out->total += *column[n];
		line = end;
	}
	return n >= 4 && isfinite(out->total);
}

bool proc_cpu_parse(const char *stat_text, struct proc_cpu *out)
{
	struct proc_cpu c = { .running = NAN };
	bool found = false;

	for (const char *line = stat_text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, "cpu ", 4))
			found = ticks(line + 4, &c);
		else if (!strncmp(line, "cpu", 3) && isdigit((unsigned char)line[3]))
			c.cpus++;
		else if (!strncmp(line, "procs_running ", 14) && isdigit((unsigned char)line[14]))
			c.running = strtod(line + 14, NULL);
	}
	if (found)
		*out = c;
	return found;
}

bool proc_cpu_read(struct proc_cpu *out)
{
	char text[STAT_BYTES];

	return proc_read("/proc/stat", text, sizeof text) > 0 && proc_cpu_parse(text, out);
}

/* The kernel lets iowait run backwards at times: less than nothing is nothing. */
static double percent(double part, double whole)
{
	return fmin(fmax(100.0 * part / whole, 0.0), 100.0);
}

static double at_work(const struct proc_cpu *c)
{
	return c->user + c->nice + c->system + c->irq + c->softirq;
}

void proc_cpu_mean(const struct proc_cpu *from, const struct proc_cpu *to, double *out_busy,
		   double *out_iowait)
{
	double passed = to->total - from->total;

	*out_busy = passed > 0.0 ? percent(at_work(to) - at_work(from), passed) : NAN;
	*out_iowait = passed > 0.0 ? percent(to->iowait - from->iowait, passed) : NAN;
}

/* ---- one process ---- */

bool proc_process_parse(const char *stat_text, struct proc_process *out)
{
	const char *after = strrchr(stat_text, ')'); /* the program's name may hold anything, brackets too */
	struct proc_process p = { 0 };
	uint64_t user = 0, system = 0, of_children[2] = { 0 };
	int n = after ? sscanf(after,
			       ") %c %*d %*d %d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64 " %" SCNu64
			       " %" SCNu64 " %*d %*d %*d %*d "
			       "%" SCNu64 " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			       "%*s %*s %*s %*s %*s %" SCNu64,
			       &p.state, &p.session, &user, &system, &of_children[0], &of_children[1],
			       &p.start_ticks, &p.blocked_ticks)
		      : 0;

	p.cpu_ticks = user + system + of_children[0] + of_children[1];
	if (n >= 7)
		*out = p;
	return n >= 7;
}

bool proc_process_read(pid_t pid, struct proc_process *out)
{
	char path[64], text[1024];

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	return proc_read(path, text, sizeof text) > 0 && proc_process_parse(text, out);
}

double proc_blocked_s(pid_t pid)
{
	struct proc_process p;
	char text[16];

	if (proc_read("/proc/sys/kernel/task_delayacct", text, sizeof text) <= 0 || text[0] != '1' ||
	    !proc_process_read(pid, &p))
		return NAN;
	return (double)p.blocked_ticks / (double)sysconf(_SC_CLK_TCK);
}
