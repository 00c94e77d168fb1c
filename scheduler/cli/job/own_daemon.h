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
