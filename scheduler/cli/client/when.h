/* Moments as people write them on the command line. */
#ifndef SCHEDULER_CLI_CLIENT_WHEN_H
#define SCHEDULER_CLI_CLIENT_WHEN_H

#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds since 1970 of "2026-11-16T10:00:00Z" or with an offset, and of "2026-11-16 10:30" and "10:30"
 * by the clock on the wall. A past moment may also be a day, its first second, or a duration back from now
 * ("2h"); "10:30" is today's. A moment to come has to be exact, and "10:30" is the next one. */
bool when_past(const char *text, int64_t *out_ns);
bool when_to_come(const char *text, int64_t *out_ns);

#endif
