/* The thread that starts supervisors. posix_spawn() returns when the child is another program, and for that
 * the child must have got a cpu: on a busy machine this takes milliseconds, in which the loop has other
 * things to do. Used by local.c, from the loop's thread. */
#ifndef SCHEDULER_DAEMON_EXEC_SPAWNER_H
#define SCHEDULER_DAEMON_EXEC_SPAWNER_H

#include "scheduler/daemon/exec/spawn.h"

struct spawner;

int spawner_new(struct spawner **out, struct err *err);
void spawner_free(struct spawner *s); /* as orders_stop() */

/* Where to add a struct spawn_order, and where it comes back. Meanwhile only its `job` may be touched. */
struct orders *spawner_orders(struct spawner *s);
/* True: the spawner has not begun with it, and will not. It still comes back, but may be emptied now. */
bool spawner_withdraw(struct spawn_order *o);

#endif
