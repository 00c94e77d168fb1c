/* The hand-over record. See handover.h. */
#include "scheduler/daemon/exec/handover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/text/text.h"
#include "scheduler/process/record_format.h"

void handover_put(struct strbuf *out, const char *identity, const char *engine, const char *id)
{
	strbuf_printf(out, RECORD_ENGINE_MAGIC "\nidentity %s\nengine %s\nid %s\nend\n", identity, engine,
		      *id ? id : "-");
}

int handover_read(const char *record, const char *identity, struct handover *out, struct err *err)
{
	char known[RECORD_MAX_IDENTITY + 1], *text = NULL;
	struct strbuf path = { 0 };
	int rc, end = 0;
	size_t len;

	strbuf_printf(&path, "%s" RECORD_ENGINE, record);
	rc = path.failed ? err_nomem(err, "a path")
			 : io_read_file(path.text, RECORD_MAX_BYTES, &text, &len, err);
	_Static_assert(RECORD_MAX_IDENTITY == 32 && JOB_TYPE_MAX_NAME == 64 && ENGINE_MAX_ID == 63, "below");
	if (!rc && (sscanf(text, RECORD_ENGINE_MAGIC " identity %32s engine %64s id %63s end%n", known,
			   out->engine, out->id, &end) != 3 ||
		    !end || strcmp(known, identity)))
		rc = err_fail(err, ERR_FORMAT, "%s is damaged, or of another job", text_tail(path.text, 120));
	if (!rc && !strcmp(out->id, "-"))
		out->id[0] = '\0';
	strbuf_release(&path);
	free(text);
	return rc;
}
