/* The daemon of a user, which `postrider run` starts when it is needed: one for all commands and folders of
 * the user, each of them a job type with its own model. It exits when there has been nothing to do for a
 * while. */
#ifndef SCHEDULER_CLI_JOB_OWN_DAEMON_H
#define SCHEDULER_CLI_JOB_OWN_DAEMON_H

#include "scheduler/cli/client/client.h"
#include "scheduler/cli/cli.h"
#include "scheduler/cli/job/job_folder.h"

#define OWN_DAEMON_START_S 15.0 /* for it to listen */
#define OWN_DAEMON_IDLE_S 600.0 /* after which it leaves, unless the user says otherwise */

struct own_daemon {
	char dir[PATH_MAX];           /* XDG_STATE_HOME/postrider/run */
	char config[PATH_MAX], lock[PATH_MAX], state[PATH_MAX], log[PATH_MAX];
	char socket[PATH_MAX];        /* in XDG_RUNTIME_DIR, or in the folder */
};
/* ERR_NOTFOUND: the user has no place for it. */
int own_daemon_find(struct own_daemon *o, struct err *err);
int own_daemon_make_folder(const char *path, struct err *err); /* with those above it */

/* own_types.c: the types of its configuration, under the lock. */
struct own_types {
	const struct cli *c;
	const struct own_daemon *o;
	const struct job_folder *folder; /* NULL: no other than those that are there, and a page */
	double idle_s;                   /* NaN leaves it as it was */
	char *type;                      /* of JOB_FOLDER_NAME + 1 bytes: what the folder is called there */
	bool (*has_jobs)(void *owner, const char *type);
	void *owner;
	struct strbuf out;               /* names, a line each: left out from now on */
	char *now, *was;                 /* the text of the file, and before the first change; NULL: none */
	size_t now_len, was_len;
	bool changed;                    /* the file was written */
};
/* Makes the folder one of them. Those unused longest go for it, but not what they learnt. After an error
 * nothing has changed. */
int own_types_enlist(struct own_types *e, struct err *err);
/* Leaves out the type that this refusal names; false: it names none but e->type. */
bool own_types_leave_out(struct own_types *e, const char *why);
void own_types_take_back(struct own_types *e); /* the file is as it was */
void own_types_release(struct own_types *e);

/* Makes the folder a type of the user's daemon and connects to it; it is started first if it does not run,
 * and told to read its configuration again if that has changed: the folder is new, or was measured since, or
 * the user has edited it. A change that only a new daemon can make starts one; the jobs go on. `type` (of
 * JOB_FOLDER_NAME + 1 bytes): what the type is called there. idle_s: NaN leaves it as it was. */
int own_daemon_open(const struct cli *c, const struct job_folder *folder, double idle_s,
                    const struct client_params *at, char *type, struct client **out, struct client_fault *f);

/* Connects to the user's daemon and makes it serve its page, which may start it again; the jobs go on. If the
 * user has none, it fails with exit code 4. */
int own_daemon_page(const struct cli *c, const struct client_params *at, struct client **out,
                    struct client_fault *f);

#endif
