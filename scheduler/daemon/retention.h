/* Forgets jobs that ended long ago, as `keep` of the configuration says: asks the store for them, removes
 * their folders in a thread, then has their rows deleted. Looks once a minute, and whenever many jobs have
 * ended, so that the database does not grow by more than that. See daemon.h. */
#ifndef SCHEDULER_DAEMON_RETENTION_H
#define SCHEDULER_DAEMON_RETENTION_H

#include "common/err.h"

struct daemon;
struct retention;

int retention_new(struct daemon *d, struct retention **out, struct err *err);
void retention_free(struct retention *r); /* waits for a folder that is being removed */
void retention_ended(struct retention *r); /* one more job ended or was rejected; NULL is allowed */
void retention_durable(struct retention *r); /* the store has committed something */

#endif
