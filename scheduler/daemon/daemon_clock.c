/* The daemon's time: nanoseconds since 1970 that count as CLOCK_BOOTTIME does, and never jump. Durations,
 * deadlines and outcomes come from it, so setting the wall clock does not change them, whether the daemon
 * runs at that moment or not: `clock` in the state folder says which boot the time line belongs to, and a
 * daemon that finds jobs of the same boot continues it. Without such jobs, and after a boot, the time line
 * starts again from the wall clock. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/io.h"
#include "common/log.h"
#include "scheduler/daemon/daemon.h"
#include "scheduler/process/identity.h"

#define FILE_BYTES 256

int64_t daemon_now_ns(const struct daemon *d)
{
	return d->params.now_ns ? *d->params.now_ns : clock_boot_ns() + d->clock_offset_ns;
}

static bool path_of(const struct daemon *d, char *out, size_t size)
{
	int n = snprintf(out, size, "%s/clock", d->setup->config->state_dir);

	return n > 0 && (size_t)n < size;
}

static void take(struct daemon *d, int64_t offset_ns)
{
	d->clock_offset_ns = offset_ns;
	d->started_ns = d->life.load_since_ns = daemon_now_ns(d);
}

static void keep(const struct daemon *d)
{
	char path[4096], boot[RECORD_BOOT_BYTES + 1], text[FILE_BYTES];
	struct err err = { 0 };
	int n;

	if (!path_of(d, path, sizeof path) || !proc_boot_id(boot))
		return;
	n = snprintf(text, sizeof text, "%s %" PRId64 "\n", boot, d->clock_offset_ns);
	if (io_write_file(path, text, (size_t)n, &err))
		log_warn("%s; if the clock is set while the daemon does not run, deadlines will move",
			 err.text);
}

void daemon_clock_begin(struct daemon *d)
{
	char path[4096], boot[RECORD_BOOT_BYTES + 1], *text = NULL, *end;
	size_t len;
	int64_t offset_ns;

	if (!path_of(d, path, sizeof path) || !proc_boot_id(boot) ||
	    io_read_file(path, FILE_BYTES, &text, &len, NULL))
		return;
	if (len > RECORD_BOOT_BYTES && !strncmp(text, boot, RECORD_BOOT_BYTES)) {
		offset_ns = strtoll(text + RECORD_BOOT_BYTES, &end, 10);
		if (*end == '\n' && offset_ns > 0)
			take(d, offset_ns);
	}
	free(text);
}

void daemon_clock_settle(struct daemon *d)
{
	if (d->jobs.live.n == 0)
		take(d, clock_wall_ns() - clock_boot_ns());
	keep(d);
}
