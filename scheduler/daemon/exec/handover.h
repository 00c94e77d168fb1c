/* The hand-over record DIR.IDENTITY.engine: to which engine a job was given, written before the engine is
 * asked and again with the engine's id when it has answered. After a crash it says that the job may be there.
 *
 *   postrider-engine 1
 *   identity HEX
 *   engine NAME
 *   id TEXT | -
 *   end
 */
#ifndef SCHEDULER_DAEMON_EXEC_HANDOVER_H
#define SCHEDULER_DAEMON_EXEC_HANDOVER_H

#include "common/strbuf.h"
#include "scheduler/config/job_type.h"
#include "scheduler/daemon/exec/engine.h"

struct handover {
	char engine[JOB_TYPE_MAX_NAME + 1], id[ENGINE_MAX_ID + 1]; /* id "": not known */
};

void handover_put(struct strbuf *out, const char *identity, const char *engine, const char *id);
/* record: the path without its suffix. ERR_NOTFOUND: there is none. ERR_FORMAT: damaged, or of another job.
 * */
int handover_read(const char *record, const char *identity, struct handover *out, struct err *err);

#endif
