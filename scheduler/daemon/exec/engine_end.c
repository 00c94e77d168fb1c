/* How a job of an engine ended: by its records, or by the engine's word. See engine_job.h. */
#include "scheduler/daemon/exec/engine_job.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/log.h"
#include "common/text/text.h"

#define MISSING 2 /* polls in a row that do not know a job, before it counts as gone */
#define SUBMITS 5 /* of a job that the engine takes and forgets */

void engine_read_records(struct engine_job *j)
{
	struct local_job *run = j->run;
	struct err err = { 0 };
	int rc;

	if (run->state == LOCAL_ENDED)
		return;
	if (run->state != LOCAL_RUNNING && !local_job_learn_start(run, NULL))
		run->state = LOCAL_RUNNING;
	if (run->state == LOCAL_RUNNING && !run->told_started)
		local_job_tell_started(run);
	if (run->state != LOCAL_RUNNING)
		return; /* the record of the end comes after that of the start */
	rc = local_job_learn_end(run, &err);
	if (rc == -ERR_FORMAT)
		local_job_lost(run, "%.250s", err.text);
}

/* The first line of what was reported by the supervisor, or by the program that should have started it. */
static const char *report_of(const struct engine_job *j, char *out, size_t size)
{
	struct strbuf path = { 0 };
	char *text = NULL, *from;
	size_t len;

	out[0] = '\0';
	strbuf_printf(&path, "%s" RECORD_REPORT, j->run->record);
	if (!path.failed && !io_read_file(path.text, 65536, &text, &len, NULL)) {
		from = strstr(text, REPORT_FAILED);
		from = from ? from + strlen(REPORT_FAILED) : text;
		from[strcspn(from, "\n")] = '\0';
		text_printable(from, out, size);
	}
	free(text);
	strbuf_release(&path);
	return out;
}

/* The engine's word about an end, in `o`; false: it has none to add to a record. */
static bool by_word(const struct engine_job *j, struct exec_outcome *o)
{
	const char *g = j->engine->name;
	char *r = o->reason;

	if (j->run->stop_asked) {
		o->stopped = true;
		snprintf(r, sizeof o->reason, "stopped on request");
		return true;
	}
	switch (j->word) {
	case ENGINE_TIME_LIMIT:
		o->timed_out = true;
		snprintf(r, sizeof o->reason, "stopped by %s at its time limit (%s)", g, j->said);
		return true;
	case ENGINE_MEMORY:
		snprintf(r, sizeof o->reason, "out of memory, says %s (%s)", g, j->said);
		return true;
	case ENGINE_NODE:
		snprintf(r, sizeof o->reason, "its node failed, says %s (%s)", g, j->said);
		return true;
	case ENGINE_PREEMPTED:
		snprintf(r, sizeof o->reason, "%s gave its place to another (%s)", g, j->said);
		return true;
	case ENGINE_CANCELLED:
		o->stopped = true;
		snprintf(r, sizeof o->reason, "cancelled at %s, not by postrider (%s)", g, j->said);
		return true;
	default: return false;
	}
}

/* The engine's accounting knows how it ended. Its times are whole seconds. */
static void ended_by_books(struct engine_job *j)
{
	struct local_job *run = j->run;
	const struct engine_past *p = &j->past;
	struct exec_outcome *o = &run->outcome;
	char seconds[32];

	local_job_lost(run, "%s", ""); /* all the rest as of a job of which nothing is known */
	o->lost = false;
	o->exit_code = p->exit_code;
	o->exit_signal = p->exit_signal;
	o->rounded = true;
	if (p->ended_s > 0)
		o->ended_ns = local_job_moment(run, "", p->ended_s * INT64_C(1000000000), 0);
	if (o->ended_ns < o->started_ns)
		o->ended_ns = o->started_ns;
	o->run_s = (double)(o->ended_ns - o->started_ns) / 1e9;
	j->word = p->word;
	snprintf(j->said, sizeof j->said, "%s", p->said);
	if (by_word(j, o)) {
		o->lost = j->word == ENGINE_NODE && !run->stop_asked;
		return;
	}
	snprintf(o->reason, sizeof o->reason,
		 "there is no record of its end; by the accounting of %s it is %.60s after %s",
		 j->engine->name, p->said, text_seconds(o->run_s, seconds));
}

/* The engine says it is over, or does not know it any more, and no record came. */
static void ended_without_record(struct engine_job *j)
{
	struct local_job *run = j->run;
	const char *g = j->engine->name;
	char words[160];

	if (run->state == LOCAL_RUNNING && j->past.word >= ENGINE_ENDED) {
		ended_by_books(j);
		return;
	}
	if (j->word < ENGINE_ENDED) /* that it runs was said before it was gone */
		j->said[0] = '\0';
	if (!j->said[0] && j->past.word)
		snprintf(j->said, sizeof j->said, "%s", j->past.said);
	if (!j->said[0])
		snprintf(j->said, sizeof j->said, "it is gone from the queue");
	if (run->state == LOCAL_RUNNING)
		local_job_lost(run, "%s says that it is over (%.100s), and there is no record of its end", g,
			       j->said);
	else
		local_job_never_ran(run, false, "%s could not run it (%.80s)%s%s", g, j->said,
				    *report_of(j, words, sizeof words) ? ": " : "", words);
	if (by_word(j, &run->outcome))
		run->outcome.lost = j->word == ENGINE_NODE && run->outcome.started_ns && !run->stop_asked;
}

/* A signal may be the engine's doing, also where the job took it well: its word says why. */
static bool may_be_by_engine(const struct local_job *run)
{
	const struct exec_outcome *o = &run->outcome;

	return !o->timed_out && !o->stopped && !o->lost && (run->terminated || o->exit_signal == SIGKILL);
}

bool engine_settle_end(struct engine_job *j, int64_t now_ns)
{
	struct engine *g = j->engine;
	struct exec_outcome *o = &j->run->outcome;
	double patience_s = g->config && !g->away[0] ? 2.0 * g->config->poll_s + 1.0 : 0.0;

	if (!may_be_by_engine(j->run))
		return true;
	if (!j->end_ns)
		j->end_ns = now_ns;
	if (j->word < ENGINE_ENDED && !j->run->stop_asked && (double)(now_ns - j->end_ns) < 1e9 * patience_s)
		return false;
	if (by_word(j, o) && o->exit_code == 0) { /* half of a run is not a run: nothing is learnt from it */
		o->exit_code = -1;
		o->exit_signal = SIGTERM;
	}
	return true;
}

/* It was given a node and cancelled before anything of it ran. Slurm does so when a controller that lost its
 * state uses a number again, and a node still has a job of that number. No user asked for it. */
static bool failed_to_launch(const struct engine_job *j)
{
	return j->word == ENGINE_CANCELLED && j->placed && j->run->state != LOCAL_RUNNING;
}

void engine_look_at_word(struct engine_job *j, int64_t now_ns)
{
	const struct config_engine *c = j->engine->config;
	double grace_s = c ? c->record_grace_s : 0.0;

	if (j->missing >= MISSING && !j->over_ns)
		j->over_ns = now_ns;
	if (!j->over_ns || (double)(now_ns - j->over_ns) < 1e9 * grace_s) {
		if (j->missing < MISSING || j->hand == THERE || j->run->state == LOCAL_RUNNING)
			return;
	}
	if ((j->missing >= MISSING || failed_to_launch(j)) && j->run->state != LOCAL_RUNNING &&
	    j->submits < SUBMITS) {
		if (j->run->stop_asked) {
			local_job_never_ran(j->run, true, "stopped on request, before it was started");
			return;
		}
		log_warn("job %" PRIu64 ": %s %s, and it has not run: it is submitted again", j->run->id,
			 j->engine->name, j->missing >= MISSING ? "does not have it" : "could not launch it");
		j->hand = TO_SUBMIT;
		j->over_ns = 0;
		return;
	}
	if (!engine_ask_books(j))
		ended_without_record(j);
}
