/* The cores and the memory of this machine. See machine.h. */
#define _GNU_SOURCE
#include "scheduler/process/machine.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/io.h"

#define MEMORY_SHARE 0.9 /* the rest is for the system and the daemon */
#define MEMINFO_MAX 65536

double machine_cores(void)
{
	cpu_set_t set;
	long n;

	if (!sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) > 0)
		return CPU_COUNT(&set);
	n = sysconf(_SC_NPROCESSORS_ONLN); /* a machine with more cpus than cpu_set_t has bits */
	return n > 0 ? (double)n : 1.0;
}

double machine_memory_mb(void)
{
	char *text = NULL;
	const char *line;
	size_t len;
	double mb = HUGE_VAL;

	if (io_read_file("/proc/meminfo", MEMINFO_MAX, &text, &len, NULL))
		return mb;
	line = strstr(text, "MemTotal:");
	if (line) {
		double kb = strtod(line + strlen("MemTotal:"), NULL);

		if (kb >= 2048.0)
			mb = floor(MEMORY_SHARE * kb / 1024.0);
	}
	free(text);
	return mb;
}

uint64_t machine_oom_kills(void)
{
	char *text = NULL;
	const char *line;
	size_t len;
	uint64_t n = 0;

	if (io_read_file("/proc/vmstat", MEMINFO_MAX, &text, &len, NULL) == 0 &&
	    (line = strstr(text, "\noom_kill ")) != NULL)
		n = strtoull(line + strlen("\noom_kill "), NULL, 10);
	free(text);
	return n;
}

double machine_resident_mb(void)
{
	char *text = NULL;
	size_t len;
	unsigned long pages = 0;

	/* The second number of /proc/self/statm; the kernel writes it, so it is read like a file. */
	if (io_read_file("/proc/self/statm", 4096, &text, &len, NULL) == 0)
		sscanf(text, "%*u %lu", &pages);
	free(text);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576.0;
}
