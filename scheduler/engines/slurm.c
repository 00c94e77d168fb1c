/* The engine `slurm`: sbatch, scancel and squeue; slurm_cluster.c looks at the cluster, slurm_books.c into
 * its accounting. docs/SLURM.md is for the operator. It calls the programs and not Slurm's library: the calls
 * of the library block, its name changes with every release, and it ends the process if a file is missing. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/text/text.h"
#include "scheduler/engines/slurm.h"

bool slurm_program(const struct config_engine *c, const char *name, struct engine_call *out)
{
	return c->bin ? engine_word_add(&out->argv, "%s/%s", c->bin, name)
		      : engine_word_add(&out->argv, "%s", name);
}

/* sbatch replaces %j and the like in the names of files. */
static void put_file_name(struct strbuf *out, const char *path)
{
	for (; *path; path++)
		strbuf_printf(out, *path == '%' ? "%%%%" : "%c", *path);
}

static int slurm_submit(const struct config_engine *c, const struct engine_task *t, struct engine_call *out,
			struct err *err)
{
	struct strbuf report = { 0 };
	bool fine;

	put_file_name(&report, t->report);
	/* --no-requeue: the supervisor would find the job claimed, and leave. --chdir: our folder may not be
	 * there on the node. ALL: with less, Slurm asks a login shell of the user for the rest, which takes
	 * seconds; the supervisor clears it anyway. */
	fine = !report.failed && slurm_program(c, "sbatch", out) &&
	       engine_word_add(&out->argv, "--parsable") && engine_word_add(&out->argv, "--no-requeue") &&
	       engine_word_add(&out->argv, "--export=ALL") && engine_word_add(&out->argv, "--chdir=/") &&
	       engine_word_add(&out->argv, "--job-name=" SLURM_NAME, t->job, t->identity) &&
	       engine_word_add(&out->argv, "--comment=" SLURM_COMMENT "%s", t->identity) &&
	       engine_word_add(&out->argv, "--output=%s", report.text) &&
	       engine_word_add(&out->argv, "--nodes=1") && engine_word_add(&out->argv, "--ntasks=1") &&
	       engine_word_add(&out->argv, "--cpus-per-task=%" PRIu32, t->cpus);
	if (fine && t->memory_mb >= 1.0)
		fine = engine_word_add(&out->argv, "--mem=%.0fM", ceil(t->memory_mb));
	if (fine && !isnan(t->limit_s)) /* in minutes, as Slurm counts them */
		fine = engine_word_add(&out->argv, "--time=%.0f", fmax(1.0, ceil(t->limit_s / 60.0)));
	if (fine && t->gres)
		fine = engine_word_add(&out->argv, "--gres=%s", t->gres);
	if (fine && t->account)
		fine = engine_word_add(&out->argv, "--account=%s", t->account);
	if (fine && t->partition)
		fine = engine_word_add(&out->argv, "--partition=%s", t->partition);
	for (size_t i = 0; i < c->options.n && fine; i++)
		fine = engine_word_add(&out->argv, "%s", c->options.word[i]);
	strbuf_puts(&out->input, "#!/bin/sh\nexec");
	for (size_t i = 0; t->command[i]; i++) {
		strbuf_puts(&out->input, " ");
		engine_quote(&out->input, t->command[i]);
	}
	strbuf_puts(&out->input, "\n");
	strbuf_release(&report);
	return fine && !out->input.failed ? 0 : err_nomem(err, "job %" PRIu64, t->job);
}

/* What sbatch would say again about the same job. All other failures may pass: a controller that is away or
 * restarting, a limit of jobs in the queue. */
static bool is_refusal(const char *complaint)
{
	static const char *const said[] = { "nvalid partition",
					    "nvalid account",
					    "nvalid generic resource",
					    "nvalid qos",
					    "nvalid feature",
					    "nvalid wckey",
					    "nvalid --",
					    "nvalid numeric value",
					    "nrecognized option",
					    "nvalid option",
					    "nable to parse",
					    "Requested node configuration is not available",
					    "Requested time limit is invalid",
					    "More processors requested than permitted",
					    "Memory specification can not be satisfied",
					    "Access/permission denied",
					    "User's group not permitted",
					    "not permitted to use this partition",
					    NULL };

	for (size_t i = 0; said[i]; i++) {
		if (strstr(complaint, said[i]))
			return true;
	}
	return false;
}

static enum engine_answer slurm_answer(int exit_code, const char *output, const char *complaint, char *out,
				       size_t size)
{
	size_t digits = strspn(output, "0123456789"); /* "123" or "123;cluster" */

	if (exit_code == 0 && digits && digits <= ENGINE_MAX_ID && digits < size) {
		snprintf(out, size, "%.*s", (int)digits, output);
		return ENGINE_YES;
	}
	snprintf(out, size, "%s", *complaint ? complaint : "sbatch did not say the number of the job");
	return exit_code != 0 && is_refusal(complaint) ? ENGINE_NO : ENGINE_UNSURE;
}

/* Number and name: a controller that lost its state gives numbers again. */
static int slurm_cancel(const struct config_engine *c, uint64_t job, const char *identity, const char *id,
			struct engine_call *out, struct err *err)
{
	if (slurm_program(c, "scancel", out) &&
	    engine_word_add(&out->argv, "--name=" SLURM_NAME, job, identity) &&
	    engine_word_add(&out->argv, "%s", id))
		return 0;
	return err_nomem(err, "job %" PRIu64, job);
}

static int slurm_poll(const struct config_engine *c, struct engine_call *out, struct err *err)
{
	if (slurm_program(c, "squeue", out) && engine_word_add(&out->argv, "--noheader") &&
	    engine_word_add(&out->argv, "--states=all") &&
	    engine_word_add(&out->argv, "--user=%u", (unsigned)geteuid()) &&
	    engine_word_add(&out->argv, "--format=%%i|%%T|%%k|%%N|%%r"))
		return 0;
	return err_nomem(err, "squeue");
}

enum engine_word slurm_word(const char *state)
{
	static const struct {
		const char *name;
		enum engine_word word;
	} known[] = { { "PENDING", ENGINE_WAITS },       { "CONFIGURING", ENGINE_WAITS },
		      { "REQUEUED", ENGINE_WAITS },      { "REQUEUE_HOLD", ENGINE_WAITS },
		      { "REQUEUE_FED", ENGINE_WAITS },   { "RESV_DEL_HOLD", ENGINE_WAITS },
		      { "SPECIAL_EXIT", ENGINE_WAITS },  { "COMPLETED", ENGINE_ENDED },
		      { "FAILED", ENGINE_FAILED },       { "TIMEOUT", ENGINE_TIME_LIMIT },
		      { "DEADLINE", ENGINE_TIME_LIMIT }, { "OUT_OF_MEMORY", ENGINE_MEMORY },
		      { "NODE_FAIL", ENGINE_NODE },      { "BOOT_FAIL", ENGINE_NODE },
		      { "PREEMPTED", ENGINE_PREEMPTED }, { "REVOKED", ENGINE_PREEMPTED },
		      { "CANCELLED", ENGINE_CANCELLED } };

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (!strcmp(state, known[i].name))
			return known[i].word;
	}
	return ENGINE_RUNS; /* RUNNING, COMPLETING, SUSPENDED, ...: nothing follows from it */
}

/* "12|PENDING|postrider:IDENTITY|n1|Resources"; comments of others may be anything. */
static bool slurm_line(const char *line, struct engine_line *out)
{
	char state[32], said[ENGINE_MAX_SAID];
	const char *reason;
	int at = 0;

	*out = (struct engine_line){ 0 };
	if (sscanf(line, "%63[^|]|%31[A-Z_]|" SLURM_COMMENT "%32[0-9a-f]%n", out->id, state, out->identity,
		   &at) != 3 ||
	    strlen(out->identity) != 32 || line[at] != '|' || !(reason = strchr(line + at + 1, '|')))
		return false;
	out->placed = reason > line + at + 1;
	reason++;
	out->word = slurm_word(state);
	snprintf(said, sizeof said, "%s%s%.100s", state, strcmp(reason, "None") ? ", " : "",
		 strcmp(reason, "None") ? reason : "");
	text_printable(said, out->said, sizeof out->said);
	return true;
}

static const char *const keep_env[] = { "CUDA_VISIBLE_DEVICES",
					"ROCR_VISIBLE_DEVICES",
					"GPU_DEVICE_ORDINAL",
					"ZE_AFFINITY_MASK",
					"SLURM_JOB_ID",
					"SLURM_JOB_NODELIST",
					NULL };

const struct engine_ops engine_slurm = {
	.kind = ENGINE_SLURM,
	.hands = 4,
	.keep_env = keep_env,
	.submit = slurm_submit,
	.answer = slurm_answer,
	.cancel = slurm_cancel,
	.poll = slurm_poll,
	.line = slurm_line,
	.past = slurm_past,
	.past_line = slurm_past_line,
	.look = slurm_look,
	.look_line = slurm_look_line,
};
