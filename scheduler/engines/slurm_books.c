/* What Slurm's accounting says of a job that has ended: sacct, where slurmdbd is configured. slurm.c has the
 * rest. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"
#include "scheduler/engines/slurm.h"

/* By the name as well: a controller that lost its state gives numbers again. */
int slurm_past(const struct config_engine *c, uint64_t job, const char *identity, const char *id,
	       struct engine_call *out, struct err *err)
{
	/* times since 1970 have no time zone */
	if (engine_word_add(&out->argv, "env") && engine_word_add(&out->argv, "SLURM_TIME_FORMAT=%%s") &&
	    slurm_program(c, "sacct", out) && engine_word_add(&out->argv, "--noheader") &&
	    engine_word_add(&out->argv, "--parsable2") && engine_word_add(&out->argv, "--allocations") &&
	    engine_word_add(&out->argv, "--name=" SLURM_NAME, job, identity) &&
	    engine_word_add(&out->argv, "--jobs=%s", id) &&
	    engine_word_add(&out->argv, "--format=JobIDRaw,State,ExitCode,Start,End"))
		return 0;
	return err_nomem(err, "sacct");
}

/* "12|CANCELLED by 0|0:15|1700000000|1700000009"; a time that there is not is a word. */
bool slurm_past_line(const char *line, struct engine_past *out)
{
	char state[64];
	int code, signal, at = 0;

	*out = (struct engine_past){ 0 };
	if (sscanf(line, "%*[0-9]|%63[^|]|%d:%d|%n", state, &code, &signal, &at) != 3 || !at || code < 0 ||
	    code > 255 || signal < 0 || signal > 127)
		return false;
	text_printable(state, out->said, sizeof out->said);
	state[strcspn(state, " +")] = '\0';
	out->word = slurm_word(state);
	out->exit_code = signal ? -1 : code;
	out->exit_signal = signal;
	if (sscanf(line + at, "%" SCNd64 "|%" SCNd64, &out->started_s, &out->ended_s) != 2)
		out->started_s = out->ended_s = 0;
	return out->word >= ENGINE_ENDED;
}
