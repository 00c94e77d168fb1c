/* How busy the machine and a job were. See profile_load.h; the fields are those of proc(5). */
#include "scheduler/process/usage.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BLOCKED_FIELD 42

/* The first bytes of a file of /proc; false: it can not be read. */
static bool read_start(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f)
		return false;
	n = fread(buf, 1, size - 1, f);
	fclose(f);
	buf[n] = '\0';
	return n > 0;
}

bool profile_load_parse(const char *stat_text, struct profile_load *out)
{
	uint64_t user, nice, system, idle, iowait, irq = 0, softirq = 0, steal = 0;
	int n = sscanf(stat_text,
		       "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		       " %" SCNu64,
		       &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal);

	if (n < 5)
		return false;
	*out = (struct profile_load){ .busy = user + nice + system + irq + softirq,
				      .iowait = iowait,
				      .known = true };
	out->total = out->busy + idle + iowait + steal;
	return true;
}

void profile_load_read(struct profile_load *out)
{
	char text[512];

	*out = (struct profile_load){ 0 };
	if (read_start("/proc/stat", text, sizeof text))
		profile_load_parse(text, out);
}

void profile_load_mean(const struct profile_load *from, const struct profile_load *to, double *out_cpu,
		       double *out_iowait)
{
	double ticks = (double)(int64_t)(to->total - from->total);

	*out_cpu = *out_iowait = NAN;
	if (!from->known || !to->known || !(ticks > 0.0))
		return;
	/* The kernel lets iowait run backwards at times (proc(5)); less than nothing is nothing. */
	*out_cpu = fmin(fmax(100.0 * (double)(int64_t)(to->busy - from->busy) / ticks, 0.0), 100.0);
	*out_iowait = fmin(fmax(100.0 * (double)(int64_t)(to->iowait - from->iowait) / ticks, 0.0), 100.0);
}

bool profile_load_blocked_ticks(const char *stat_text, uint64_t *out)
{
	const char *s = strrchr(stat_text, ')'); /* the name before it may hold anything, blanks too */

	for (int field = 2; s && field < BLOCKED_FIELD; field++) {
		s = strchr(s, ' ');
		s = s ? s + 1 : NULL;
	}
	return s && sscanf(s, "%" SCNu64, out) == 1;
}

double profile_load_blocked_s(pid_t pid)
{
	char path[64], text[1024];
	uint64_t ticks;

	if (!read_start("/proc/sys/kernel/task_delayacct", text, sizeof text) || text[0] != '1')
		return NAN;
	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	if (!read_start(path, text, sizeof text) || !profile_load_blocked_ticks(text, &ticks))
		return NAN;
	return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}
