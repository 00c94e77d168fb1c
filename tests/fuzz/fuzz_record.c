/* Records of a supervisor: a daemon believes them after a restart, so what is taken must make sense. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/process/run_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int claim, const char *what)
{
	if (claim)
		return;
	fprintf(stderr, "fuzz_record: %s\n", what);
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct job_started started;
	struct job_exit ended;
	struct err err = { 0 };

	if (job_started_parse("fuzz", (const char *)data, size, &started, &err))
		must(err.text[0] != 0, "a refusal without a reason");
	else
		must(started.supervisor > 0 && started.job > 0 && strlen(started.boot) <= RECORD_BOOT_BYTES &&
			     strlen(started.cpus) <= RECORD_MAX_CPUS,
		     "a start of nobody");
	err = (struct err){ 0 };
	if (job_exit_parse("fuzz", (const char *)data, size, &ended, &err)) {
		must(err.text[0] != 0, "a refusal without a reason");
		return 0;
	}
	must(isfinite(ended.run_s) && ended.run_s >= 0.0, "a run time that is none");
	must(!(ended.exit_code >= 0 && ended.exit_signal > 0), "ended by itself and by a signal");
	must(strlen(ended.reason) <= RECORD_MAX_TEXT && strlen(ended.note) <= RECORD_MAX_TEXT, "a long text");
	return 0;
}
