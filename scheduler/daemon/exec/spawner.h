/* The thread that starts supervisors. posix_spawn() returns when the child is another program, and for that
 * the child must have got a cpu: on a busy machine this takes milliseconds, in which the loop has other
 * things to do.
 *
 * Orders go to the thread and come back, carried out or not. Nothing is locked: a thread that is put to sleep
 * by the kernel while it holds a lock would hold up the loop as well. Used by exec_local.c, from the loop's
 * thread. */
#ifndef SCHEDULER_DAEMON_EXEC_SPAWNER_H
#define SCHEDULER_DAEMON_EXEC_SPAWNER_H

#include "scheduler/daemon/exec/spawn.h"

struct spawner;

int spawner_new(struct spawner **out, struct err *err);
/* The start that is under way is waited for; of the orders that wait, none is carried out. All are freed. */
void spawner_free(struct spawner *s);

int spawner_fd(const struct spawner *s); /* readable: orders came back */
/* Takes the order until it comes back. Meanwhile only its `job` may be touched. */
void spawner_add(struct spawner *s, struct spawn_order *o);
/* True: the spawner has not begun with it, and will not. It still comes back, but may be emptied now. */
bool spawner_withdraw(struct spawn_order *o);
/* Those that came back, in the order they were carried out, linked by `next`; to be freed. NULL: none. */
struct spawn_order *spawner_returned(struct spawner *s);

#endif
