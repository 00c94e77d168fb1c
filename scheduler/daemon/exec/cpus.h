/* Which cpus have been handed out to jobs. Lists are as the kernel writes them: "0-3,8". Used by
 * local.c. */
#ifndef SCHEDULER_DAEMON_EXEC_CPUS_H
#define SCHEDULER_DAEMON_EXEC_CPUS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpus {
	cpu_set_t all, taken; /* all: those this process may use; none, if that is not known */
};

void cpus_init(struct cpus *c);
/* The lowest ones that are free; false, and nothing taken, if there are fewer. */
bool cpus_take(struct cpus *c, uint32_t n, cpu_set_t *out);
void cpus_mark(struct cpus *c, const cpu_set_t *set); /* taken by a job that was adopted */
void cpus_give_back(struct cpus *c, const cpu_set_t *set);

/* `buf` is filled if the list fits with its NUL; an empty set gives "". */
bool cpus_format(const cpu_set_t *set, char *buf, size_t size);
bool cpus_parse(const char *list, cpu_set_t *out); /* false: not a list, or empty */

#endif
