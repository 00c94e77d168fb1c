/* One reading of each clock: the rest of the tree does not call clock_gettime(). */
#include "common/clock.h"

#include <time.h>

static int64_t read_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t clock_monotonic_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

int64_t clock_boot_ns(void)
{
	return read_ns(CLOCK_BOOTTIME);
}

int64_t clock_wall_ns(void)
{
	return read_ns(CLOCK_REALTIME);
}

int64_t clock_thread_ns(void)
{
	return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

double clock_monotonic_us(void)
{
	return (double)clock_monotonic_ns() / 1e3;
}

double clock_monotonic_s(void)
{
	return (double)clock_monotonic_ns() / 1e9;
}
