/* A daemon that is played again: the daemon's own code on the time, the configuration, the models, the starts
 * and the ends that are in the records of another one. It has a state folder of its own, which is removed,
 * and no socket, no processes, no training. */
#ifndef SCHEDULER_DAEMON_VERIFY_REPLAYED_H
#define SCHEDULER_DAEMON_VERIFY_REPLAYED_H

#include "scheduler/daemon/daemon.h"
#include "scheduler/daemon/verify/past.h"

struct replayed {
	const struct past *past;
	const char *recorded;        /* the state folder that is verified; models may have moved with it */
	char dir[256];               /* its own; "": none yet */
	int64_t now_ns;
	struct played played;
	struct daemon_params params;
	char config[300], state[300];
	struct daemon *d;            /* NULL: it does not run */
	struct slot_file { char *type, *link; } *slot; size_t n_slots; /* models of the setup in use */
	unsigned n_links;
	uint64_t *unstarted; size_t n_unstarted, unstarted_cap;
};

int replayed_open(struct replayed *r, const struct past *p, const char *recorded, struct err *err);
void replayed_close(struct replayed *r); /* also a half-open one */
/* Where no daemon runs before: its folder anew, with the rows of the jobs that were there, as they were
 * then. */
int replayed_fill(struct replayed *r, int64_t until_ns, struct err *err);
/* ERR_NOTFOUND: a model that was in use is gone. `text`: of the input. */
int replayed_begin(struct replayed *r, const char *text, struct err *err); /* ends the one that runs */
int replayed_reload(struct replayed *r, const char *text, struct err *err);

extern const struct executor_ops *const executor_played[];

#endif
