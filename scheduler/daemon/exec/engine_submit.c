/* Handing jobs over to an engine: the calls of its programs, the record that is written before the engine is
 * asked, and what its answer means for the job. See engine_job.h. */
#define _GNU_SOURCE
#include "scheduler/daemon/exec/engine_job.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/io.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/text/template.h"
#include "scheduler/daemon/exec/handover.h"

#define SUBMIT_OUTPUT 4096
#define POLL_OUTPUT (16 << 20)
#define AT_ONCE 8 /* submits that wait for the thread; one while the engine is in doubt */

struct errand *engine_errand(const struct engine *g, int kind, void *owner, struct engine_call *c)
{
	struct errand *e = mem_calloc(1, sizeof *e);

	if (!e) {
		engine_call_release(c);
		return NULL;
	}
	e->kind = kind;
	e->owner = owner;
	e->argv = c->argv;
	e->input = c->input;
	e->timeout_s = g->config->timeout_s;
	e->max_output = kind == ERRAND_POLL ? POLL_OUTPUT : SUBMIT_OUTPUT;
	*c = (struct engine_call){ 0 };
	return e;
}

/* ---- handing over ---- */

/* NaN: the engine's own default counts. */
static double limit_of(const struct config_engine *c, const struct exec_job *j)
{
	double by_bound_s = j->bound_s * c->time_factor + c->time_margin_s;
	double by_type_s = j->max_time_s > 0.0 ? j->max_time_s + j->kill_grace_s + c->time_margin_s : NAN;

	return fmin(by_bound_s, by_type_s); /* of a NaN and a number, the number */
}

int engine_make_call(const struct engines *a, const struct engine *g, const struct exec_job *from,
		     const struct local_job *run, struct engine_call *out, struct err *err)
{
	const struct config_engine *c = g->config;
	char gpus[32];
	struct engine_task t = { .job = from->id,
				 .identity = run->identity,
				 .type = from->type->name,
				 .tenant = from->tenant,
				 .account = from->account ? from->account : c->account,
				 .partition = from->partition ? from->partition : c->partition,
				 .gres = from->type->gres ? from->type->gres
					 : from->gpus     ? gpus
							  : NULL,
				 .cpus = from->cpus,
				 .memory_mb = from->memory_mb,
				 .limit_s = limit_of(c, from) };
	struct exec_job plain = *from;
	struct spawn_words words = { 0 };
	struct strbuf report = { 0 };
	int rc = 0;

	snprintf(gpus, sizeof gpus, "gpu:%" PRIu32, from->gpus);
	plain.cgroup = NULL; /* a folder of this machine; the engine has its own */
	plain.keep_env = g->ops->keep_env;
	plain.pass_code = true; /* for the engine's accounting */
	strbuf_printf(&report, "%s" RECORD_REPORT, run->record);
	t.report = report.text;
	if (report.failed ||
	    !spawn_words_supervisor(&words, c->supervisor ? c->supervisor : a->program.path, &plain, NULL))
		rc = err_nomem(err, "job %" PRIu64, from->id);
	t.command = words.word;
	if (!rc)
		rc = g->ops->submit(c, &t, out, err);
	if (rc)
		engine_call_release(out);
	spawn_words_release(&words);
	strbuf_release(&report);
	return rc;
}

struct submission { /* the errand's result: what `after` found out, in the thread */
	const struct engine_ops *ops;
	enum engine_answer answer;
	char identity[RECORD_MAX_IDENTITY + 1], engine[JOB_TYPE_MAX_NAME + 1];
	char said[ERRAND_SAID + 64]; /* the id, or why not */
};

/* In the thread: the disk is to know of the job before the engine does. */
static int write_intent(struct errand *e)
{
	return io_write_file(e->path, e->text, strlen(e->text), &e->err);
}

/* Not synced: where a power cut takes the id, the identity finds the job. */
static void note_id(const char *path, const struct strbuf *text)
{
	char fresh[PATH_MAX];
	int n = snprintf(fresh, sizeof fresh, "%s.new", path);
	int fd = n > 0 && (size_t)n < sizeof fresh
			 ? open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)
			 : -1;
	bool written = fd >= 0 && write(fd, text->text, text->len) == (ssize_t)text->len;

	if (fd >= 0)
		close(fd);
	if (fd >= 0 && (!written || rename(fresh, path)))
		unlink(fresh);
}

static void take_answer(struct errand *e)
{
	struct submission *s = e->result;
	struct strbuf text = { 0 };

	s->answer = ENGINE_UNSURE;
	snprintf(s->said, sizeof s->said, "%.200s", e->err.text);
	if (!e->ran || e->err.code)
		return;
	s->answer = s->ops->answer(e->exit_code, strbuf_text(&e->output), e->said, s->said, sizeof s->said);
	if (s->answer != ENGINE_YES)
		return;
	handover_put(&text, s->identity, s->engine, s->said);
	if (!text.failed)
		note_id(e->path, &text);
	strbuf_release(&text);
}

/* The thread that has the least to hand over. */
static struct engine_thread *idle_hand(struct engine *g)
{
	struct engine_thread *least = &g->thread[1];

	for (size_t i = 2; i < g->n_threads; i++) {
		if (g->thread[i].n_submitting < least->n_submitting)
			least = &g->thread[i];
	}
	return least;
}

static void submit(struct engine_job *j)
{
	struct engine *g = j->engine;
	struct engine_thread *t = idle_hand(g);
	struct submission *s = mem_calloc(1, sizeof *s);
	struct strbuf path = { 0 }, text = { 0 };
	struct errand *e = s ? engine_errand(g, ERRAND_SUBMIT, j, &j->call) : NULL;

	if (!e) { /* the call is gone only where the errand could not be made */
		free(s);
		return;
	}
	strbuf_printf(&path, "%s" RECORD_ENGINE, j->run->record);
	handover_put(&text, j->run->identity, g->name, "");
	e->path = path.text;
	e->text = text.text;
	e->result = s;
	s->ops = g->ops;
	snprintf(s->identity, sizeof s->identity, "%s", j->run->identity);
	snprintf(s->engine, sizeof s->engine, "%s", g->name);
	if (path.failed || text.failed) {
		j->call = (struct engine_call){ .argv = e->argv, .input = e->input };
		e->argv = NULL;
		e->input = (struct strbuf){ 0 };
		errand_free(e);
		return;
	}
	e->before = write_intent;
	e->after = take_answer;
	j->errand = e;
	j->hand = SUBMITTING;
	j->submits++;
	g->n_submitting++;
	t->n_submitting++;
	orders_add(errands_orders(t->errands), &e->order);
}

/* The call comes back with the errand, for the next time. */
void engine_submitted(struct engine *g, struct errand *e)
{
	const struct submission *s = e->result;
	struct engine_job *j = e->owner;

	g->n_submitting--;
	if (s->answer == ENGINE_UNSURE)
		engine_is_away(g, s->said);
	else
		engine_is_back(g);
	if (!j)
		return;
	j->errand = NULL;
	j->call = (struct engine_call){ .argv = e->argv, .input = e->input };
	e->argv = NULL;
	e->input = (struct strbuf){ 0 };
	j->counts_from = g->n_polls + 1; /* a poll under way began before it was there */
	j->missing = 0;
	j->word = ENGINE_UNKNOWN;
	j->over_ns = 0;
	if (s->answer == ENGINE_YES) {
		snprintf(j->id, sizeof j->id, "%.*s", ENGINE_MAX_ID, s->said);
		j->hand = THERE;
		log_info("job %" PRIu64 " is job %s of engine %s", j->run->id, j->id, g->name);
		engine_tell_waits(j, "waiting for %s to start it", g->name);
	} else if (s->answer == ENGINE_NO) {
		local_job_never_ran(j->run, j->run->stop_asked, "%s refused it: %.200s", g->name, s->said);
	} else {
		j->hand = e->ran ? UNSURE : TO_SUBMIT;
	}
	if (s->answer == ENGINE_YES)
		engines_hand_over(g->all);
	else
		engines_tick(g->all, 0);
}

void engine_hand_over(struct engine_job *j, int64_t now_ns)
{
	if (j->hand == TO_SUBMIT && !j->submits && !j->run->stop_asked && j->call.argv)
		engine_look_to_submit(j, now_ns);
}

void engine_look_to_submit(struct engine_job *j, int64_t now_ns)
{
	struct engine *g = j->engine;

	if (j->run->stop_asked) {
		local_job_never_ran(j->run, true, "stopped on request, before it was started");
		return;
	}
	if (!j->call.argv) { /* adopted: what it takes to submit it is not known here */
		j->run->state = LOCAL_DELAYED;
		snprintf(j->run->failed, sizeof j->run->failed, "%s does not have it yet", g->name);
		return;
	}
	if (!g->config)
		engine_tell_waits(j, "waiting for %s, which is no longer configured", g->name);
	else if (g->away[0])
		engine_tell_waits(j, "waiting for %s: %.200s", g->name, g->away);
	if (g->config && now_ns >= g->hold_until_ns && g->n_submitting < (g->back_off_s > 0.0 ? 1u : AT_ONCE))
		submit(j);
}
