/* The clocks of the machine. Points in time are nanoseconds; differences are often wanted in seconds or
 * microseconds, so there is a reading for each. Code that decides gets its time as an argument instead. */
#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H

#include <stdint.h>

int64_t clock_monotonic_ns(void); /* never jumps; stands still while the machine sleeps */
int64_t clock_boot_ns(void);      /* since the machine started, sleep included */
int64_t clock_wall_ns(void);      /* since 1970; jumps when the clock is set */
int64_t clock_thread_ns(void);    /* processor time of the calling thread */
double clock_monotonic_us(void);
double clock_monotonic_s(void);

#endif
