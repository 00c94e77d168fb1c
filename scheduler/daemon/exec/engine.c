/* The executor of jobs that a workload manager runs: everything that engines have in common. See engine.h.
 *
 * A job goes through
 *
 *   TO_SUBMIT -> SUBMITTING -> THERE          the engine said yes, and its id
 *        ^           |           |
 *        |           v           | gone from the queue, and no supervisor has claimed it
 *        +-------- UNSURE        |
 *        +-----------------------+
 *
 * UNSURE is an answer that is neither yes nor no: a controller that was too slow may have taken the job all
 * the same. The job is then looked for by its identity, and submitted again only when it is not there. Should
 * it turn up later, the supervisor that comes second finds the job claimed and leaves.
 *
 * Programs run in a thread for each engine (errand.c). One call asks about all jobs. One timer reads records
 * and output, in pieces, so that the loop is never held up. */
#define _GNU_SOURCE
#include "scheduler/daemon/exec/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/io.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/text/template.h"
#include "common/text/text.h"
#include "scheduler/daemon/exec/errand.h"
#include "scheduler/daemon/exec/handover.h"
#include "scheduler/daemon/exec/local_job.h"
#include "scheduler/daemon/exec/spawn.h"
#include "scheduler/process/identity.h"

#define TICK_US 200000
#define TURN_US 1500.0 /* of looking at jobs in one turn of the loop */
#define TURN_BYTES (128 << 10) /* of output read in one turn */
#define PROGRESS_NS INT64_C(1000000000)
#define SUBMIT_OUTPUT 4096
#define POLL_OUTPUT (16 << 20)
#define AT_ONCE 8 /* submits that wait for the thread; one while the engine is in doubt */
#define BACK_OFF_S 2.0 /* after an answer that was no answer; doubled up to the most */
#define BACK_OFF_MOST_S 60.0
#define CANCEL_AGAIN_NS INT64_C(10000000000)
#define MISSING 2 /* polls in a row that do not know a job, before it counts as gone */
#define SUBMITS 5 /* of a job that the engine takes and forgets */

enum { ERRAND_SUBMIT, ERRAND_CANCEL, ERRAND_POLL };
enum hand { TO_SUBMIT, SUBMITTING, UNSURE, THERE };

struct engines {
	struct event_base *base;
	struct executor_sink sink;
	struct spawn_program program;
	char boot[RECORD_BOOT_BYTES + 1];
	struct engine **engine;
	size_t n_engines;
	struct engine_job **job;
	size_t n_jobs, cap;
	size_t next; /* where the next turn goes on */
	struct event *tick;
	char scratch[JOB_OUTPUT_MAX_LINE + 1];
};

struct engine {
	struct engines *all;
	char *name;
	const struct config_engine *config; /* borrowed; NULL: it is no longer configured */
	const struct engine_ops *ops;
	struct errands *errands;
	struct event *returned;
	size_t n_submitting;
	bool polling;
	uint64_t n_polls; /* begun */
	int64_t poll_at_ns, hold_until_ns; /* monotonic */
	double back_off_s; /* 0: it answers */
	char away[ENGINE_MAX_SAID + 64]; /* why it does not; "": it does */
	bool mute; /* the last poll failed */
};

struct engine_job {
	struct local_job *run; /* its records and its output */
	struct engine *engine;
	enum hand hand;
	struct engine_call call; /* to submit it; argv NULL: not known, after a restart, or it is under way */
	struct errand *errand;
	char id[ENGINE_MAX_ID + 1];
	enum engine_word word;
	char said[ENGINE_MAX_SAID];
	char told[ENGINE_MAX_SAID + 128]; /* why it waits */
	uint64_t counts_from; /* polls before this one say nothing about it */
	unsigned missing, submits;
	int64_t over_ns, end_ns,
		cancel_ns; /* monotonic; 0: not yet: engine says it is over; its record does; next
					      cancel */
};

static const struct engine_ops *const engine_all[] = { &engine_command, &engine_slurm, NULL };

/* ---- calls ---- */

bool engine_word_add(char ***argv, const char *fmt, ...)
{
	struct strbuf word = { 0 };
	size_t n = 0;
	char **more, text[JOB_TYPE_MAX_ARG + 1];
	va_list ap;

	if (!fmt)
		return true;
	while (*argv && (*argv)[n])
		n++;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	strbuf_puts(&word, text);
	more = word.failed ? NULL : mem_resize(*argv, n + 2, sizeof *more);
	if (!more) {
		strbuf_release(&word);
		return false;
	}
	more[n] = word.text;
	more[n + 1] = NULL;
	*argv = more;
	return true;
}

void engine_quote(struct strbuf *out, const char *word)
{
	strbuf_puts(out, "'");
	for (; *word; word++)
		strbuf_printf(out, *word == '\'' ? "'\\''" : "%c", *word);
	strbuf_puts(out, "'");
}

static void call_release(struct engine_call *c)
{
	argv_free(c->argv);
	strbuf_release(&c->input);
	*c = (struct engine_call){ 0 };
}

/* Takes the call, also on failure. */
static struct errand *errand_new(const struct engine *g, int kind, void *owner, struct engine_call *c)
{
	struct errand *e = mem_calloc(1, sizeof *e);

	if (!e) {
		call_release(c);
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

/* ---- telling ---- */

static struct engine_job *find(const struct engines *a, uint64_t id)
{
	for (size_t i = 0; i < a->n_jobs; i++) {
		if (a->job[i]->run->id == id)
			return a->job[i];
	}
	return NULL;
}

static void tick_in(struct engines *a, int us)
{
	const struct timeval t = { .tv_usec = us };

	if (event_add(a->tick, &t))
		log_error("out of memory for the timer of the engines");
}

__attribute__((format(printf, 2, 3))) static void tell_waits(struct engine_job *j, const char *fmt, ...)
{
	const struct executor_sink *sink = j->run->sink;
	char why[sizeof j->told];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	if (!strcmp(why, j->told))
		return;
	snprintf(j->told, sizeof j->told, "%s", why);
	sink->waits(sink->owner, j->run->id, why);
}

static void engine_job_free(struct engine_job *j)
{
	if (!j)
		return;
	if (j->errand)
		j->errand->owner = NULL; /* it comes back, and means nobody */
	call_release(&j->call);
	local_job_free(j->run);
	free(j);
}

static void take_out(struct engines *a, size_t at)
{
	a->job[at] = a->job[--a->n_jobs];
}

/* ---- is it there? ---- */

static void is_away(struct engine *g, const char *why)
{
	double wait_s = fmin(BACK_OFF_MOST_S, g->back_off_s > 0.0 ? 2.0 * g->back_off_s : BACK_OFF_S);

	if (!g->away[0])
		log_warn("engine %s takes no jobs, and those that it should get wait: %s", g->name, why);
	snprintf(g->away, sizeof g->away, "%s", why);
	g->back_off_s = wait_s;
	g->hold_until_ns = clock_monotonic_ns() + (int64_t)(1e9 * wait_s);
}

static void is_back(struct engine *g)
{
	if (g->away[0])
		log_info("engine %s takes jobs again", g->name);
	g->away[0] = '\0';
	g->back_off_s = 0.0;
	g->hold_until_ns = 0;
}

/* ---- submitting ---- */

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

static void submit(struct engine_job *j)
{
	struct engine *g = j->engine;
	struct submission *s = mem_calloc(1, sizeof *s);
	struct strbuf path = { 0 }, text = { 0 };
	struct errand *e = s ? errand_new(g, ERRAND_SUBMIT, j, &j->call) : NULL;

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
	errands_add(g->errands, e);
}

/* The call comes back with the errand, for the next time. */
static void submitted(struct engine *g, struct errand *e)
{
	const struct submission *s = e->result;
	struct engine_job *j = e->owner;

	g->n_submitting--;
	if (s->answer == ENGINE_UNSURE)
		is_away(g, s->said);
	else
		is_back(g);
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
		tell_waits(j, "waiting for %s to start it", g->name);
	} else if (s->answer == ENGINE_NO) {
		local_job_never_ran(j->run, j->run->stop_asked, "%s refused it: %.200s", g->name, s->said);
	} else {
		j->hand = e->ran ? UNSURE : TO_SUBMIT;
	}
	tick_in(g->all, 0);
}

/* ---- asking about all jobs ---- */

struct polled {
	const struct engine_ops *ops;
	uint64_t number;
	size_t n;
	struct engine_line line[];
};

static int by_identity(const void *a, const void *b)
{
	const struct engine_line *x = a, *y = b;
	int order = strcmp(x->identity, y->identity);

	/* Of two that are one job the one that lives counts. */
	return order ? order : (int)(x->word >= ENGINE_ENDED) - (int)(y->word >= ENGINE_ENDED);
}

static size_t count_lines(const char *s)
{
	size_t n = 1;

	for (; (s = strchr(s, '\n')); s++)
		n++;
	return n;
}

/* In the thread: a cluster has many jobs. */
static void read_lines(struct errand *e)
{
	struct polled *asked = e->result, *p;
	char *at = e->output.text;

	if (e->err.code || e->exit_code || !at)
		return;
	p = mem_resize(asked, 1, sizeof *p + count_lines(at) * sizeof p->line[0]);
	if (!p) {
		err_nomem(&e->err, "the jobs of an engine");
		return;
	}
	e->result = p;
	for (char *line; (line = strsep(&at, "\n"));)
		p->n += p->ops->line(line, &p->line[p->n]);
	qsort(p->line, p->n, sizeof p->line[0], by_identity);
	for (size_t i = p->n; i-- > 1;) { /* of several with one identity the first stays */
		if (!strcmp(p->line[i].identity, p->line[i - 1].identity))
			memmove(&p->line[i], &p->line[i + 1], (--p->n - i) * sizeof p->line[0]);
	}
}

static void ask(struct engine *g)
{
	struct polled *p = mem_calloc(1, sizeof *p);
	struct engine_call c = { 0 };
	struct errand *e = NULL;
	struct err err = { 0 };

	if (p && !g->ops->poll(g->config, &c, &err))
		e = errand_new(g, ERRAND_POLL, NULL, &c);
	if (!e) {
		call_release(&c);
		free(p);
		return; /* the next tick tries again */
	}
	p->ops = g->ops;
	p->number = ++g->n_polls;
	e->result = p;
	e->after = read_lines;
	g->polling = true;
	errands_add(g->errands, e);
}

static void judge(struct engine_job *j, const struct polled *p, int64_t now_ns)
{
	struct engine_line key = { .word = ENGINE_UNKNOWN };
	const struct engine_line *l = NULL;
	size_t low = 0, high = p->n;

	if (j->hand != THERE && j->hand != UNSURE)
		return;
	memcpy(key.identity, j->run->identity, sizeof key.identity);
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(key.identity, p->line[middle].identity);

		if (!order) {
			l = &p->line[middle];
			break;
		}
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	if (!l) { /* only a poll that began after it was submitted can miss it */
		if (p->number >= j->counts_from)
			j->missing++;
		return;
	}
	j->missing = 0;
	j->hand = THERE;
	snprintf(j->id, sizeof j->id, "%s", l->id);
	snprintf(j->said, sizeof j->said, "%s", l->said);
	j->word = l->word;
	if (l->word < ENGINE_ENDED)
		j->over_ns = 0; /* an engine may take a job up again */
	else if (!j->over_ns)
		j->over_ns = now_ns;
	if (j->word == ENGINE_WAITS && j->run->state != LOCAL_RUNNING)
		tell_waits(j, "waiting for %s: %s", j->engine->name, j->said);
}

static void polled(struct engine *g, struct errand *e)
{
	struct engines *a = g->all;
	int64_t now_ns = clock_monotonic_ns();
	char why[sizeof g->away];

	g->polling = false;
	g->poll_at_ns = now_ns + (int64_t)(1e9 * (g->config ? fmax(g->config->poll_s, g->back_off_s) : 1.0));
	if (e->err.code || e->exit_code) {
		snprintf(why, sizeof why, "%.200s",
			 e->err.code  ? e->err.text
			 : e->said[0] ? e->said
				      : "it does not say what jobs it has");
		is_away(g, why);
		g->mute = true;
		return;
	}
	if (g->mute) /* what a submit complained of is for the next submit to find out */
		is_back(g);
	g->mute = false;
	for (size_t i = 0; i < a->n_jobs; i++) {
		if (a->job[i]->engine == g)
			judge(a->job[i], e->result, now_ns);
	}
	tick_in(a, 0);
}

static void on_returned(evutil_socket_t fd, short what, void *engine)
{
	struct engine *g = engine;
	struct errand *e = errands_returned(g->errands);

	(void)fd;
	(void)what;
	while (e) {
		struct errand *next = e->next;

		if (e->kind == ERRAND_SUBMIT)
			submitted(g, e);
		else if (e->kind == ERRAND_POLL)
			polled(g, e);
		else if (e->err.code || e->exit_code)
			log_warn("engine %s, cancelling a job: %s", g->name,
				 e->err.code ? e->err.text : e->said); /* it is tried again */
		errand_free(e);
		e = next;
	}
}

/* ---- cancelling ---- */

static void cancel(struct engine_job *j, int64_t now_ns)
{
	struct engine *g = j->engine;
	struct engine_call c = { 0 };
	struct errand *e = NULL;
	struct err err = { 0 };

	j->cancel_ns = now_ns + CANCEL_AGAIN_NS;
	if (!g->ops->cancel(g->config, j->run->id, j->run->identity, j->id, &c, &err))
		e = errand_new(g, ERRAND_CANCEL, NULL, &c);
	call_release(&c);
	if (e)
		errands_add(g->errands, e);
}

/* ---- how it ended ---- */

/* The first line of what the supervisor, or whoever was to start it, said. */
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
		snprintf(r, sizeof o->reason, "cancelled at %s by somebody else (%s)", g, j->said);
		return true;
	default: return false;
	}
}

/* The engine says it is over, or does not know it any more, and no record came. */
static void ended_without_record(struct engine_job *j)
{
	struct local_job *run = j->run;
	const char *g = j->engine->name;
	char words[160];

	if (run->state == LOCAL_RUNNING)
		local_job_lost(run, "%s says that it is over (%.100s), and there is no record of its end", g,
			       j->said[0] ? j->said : "it is gone from the queue");
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

/* Its record says how it ended. False: the engine's word is waited for. */
static bool settle_end(struct engine_job *j, int64_t now_ns)
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

/* ---- one job ---- */

static void read_records(struct engine_job *j)
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

static void look_at_word(struct engine_job *j, int64_t now_ns)
{
	const struct config_engine *c = j->engine->config;
	double grace_s = c ? c->record_grace_s : 0.0;

	if (j->missing >= MISSING && !j->over_ns)
		j->over_ns = now_ns;
	if (!j->over_ns || (double)(now_ns - j->over_ns) < 1e9 * grace_s) {
		if (j->missing < MISSING || j->hand == THERE || j->run->state == LOCAL_RUNNING)
			return;
	}
	if (j->missing >= MISSING && j->run->state != LOCAL_RUNNING && j->submits < SUBMITS) {
		if (j->run->stop_asked) {
			local_job_never_ran(j->run, true, "stopped on request, before it was started");
			return;
		}
		log_warn("job %" PRIu64 ": %s does not have it, and it has not run: it is submitted again",
			 j->run->id, j->engine->name);
		j->hand = TO_SUBMIT;
		j->over_ns = 0;
		return;
	}
	ended_without_record(j);
}

static void look_to_submit(struct engine_job *j, int64_t now_ns)
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
		tell_waits(j, "waiting for %s, which is no longer configured", g->name);
	else if (g->away[0])
		tell_waits(j, "waiting for %s: %.200s", g->name, g->away);
	if (g->config && now_ns >= g->hold_until_ns && g->n_submitting < (g->back_off_s > 0.0 ? 1u : AT_ONCE))
		submit(j);
}

/* False: the job is gone. */
static bool visit(struct engines *a, size_t at, size_t *bytes)
{
	struct engine_job *j = a->job[at];
	struct local_job *run = j->run;
	int64_t now_ns = clock_monotonic_ns(), now_boot_ns = clock_boot_ns();
	bool more = false;

	if (j->hand != TO_SUBMIT || j->submits)
		read_records(j);
	if (run->state != LOCAL_ENDED && j->hand == TO_SUBMIT)
		look_to_submit(j, now_ns);
	else if (run->state != LOCAL_ENDED && j->hand != SUBMITTING)
		look_at_word(j, now_ns);
	if (run->state != LOCAL_ENDED && j->hand == UNSURE)
		tell_waits(j, "waiting for %s: %.200s", j->engine->name, j->engine->away);
	if (run->stop_asked && run->state != LOCAL_ENDED && j->hand == THERE && j->engine->config &&
	    j->word < ENGINE_ENDED && now_ns >= j->cancel_ns)
		cancel(j, now_ns);
	if (local_job_has_output(run))
		*bytes += job_output_read(&run->output, a->scratch, run->state == LOCAL_ENDED, &more);
	if (run->state == LOCAL_RUNNING && run->output.news &&
	    now_boot_ns - run->progress_boot_ns >= PROGRESS_NS)
		local_job_tell_progress(run, now_boot_ns);
	if (run->state == LOCAL_DELAYED) {
		take_out(a, at);
		a->sink.delayed(a->sink.owner, run->id, run->failed);
		engine_job_free(j);
		return false;
	}
	if (run->state == LOCAL_ENDED && !more && settle_end(j, now_ns)) {
		take_out(a, at);
		j->run = NULL;
		local_job_tell_finished(run, now_boot_ns);
		engine_job_free(j);
		return false;
	}
	return true;
}

static bool needs_poll(const struct engine *g)
{
	for (size_t i = 0; i < g->all->n_jobs; i++) {
		const struct engine_job *j = g->all->job[i];

		if (j->engine == g && (j->hand == THERE || j->hand == UNSURE) && j->word < ENGINE_ENDED)
			return true;
	}
	return false;
}

static void on_tick(evutil_socket_t fd, short what, void *self)
{
	struct engines *a = self;
	double until_us = clock_monotonic_us() + TURN_US;
	size_t bytes = 0, n = a->n_jobs, seen = 0;

	(void)fd;
	(void)what;
	if (a->next >= a->n_jobs)
		a->next = 0;
	for (; seen < n && a->n_jobs; seen++) {
		if (a->next >= a->n_jobs)
			a->next = 0;
		if (visit(a, a->next, &bytes))
			a->next++;
		if (clock_monotonic_us() > until_us || bytes > TURN_BYTES)
			break;
	}
	for (size_t i = 0; i < a->n_engines; i++) {
		struct engine *g = a->engine[i];

		if (g->config && !g->polling && clock_monotonic_ns() >= g->poll_at_ns && needs_poll(g))
			ask(g);
	}
	if (a->n_jobs)
		tick_in(a, seen < n ? 0 : TICK_US);
}

/* ---- the table's functions ---- */

static void engine_free(struct engine *g)
{
	if (!g)
		return;
	if (g->returned)
		event_free(g->returned); /* before the thread, whose descriptor it watches */
	errands_free(g->errands);
	free(g->name);
	free(g);
}

static void engines_destroy(void *self)
{
	struct engines *a = self;

	if (!a)
		return;
	for (size_t i = 0; i < a->n_jobs; i++)
		engine_job_free(a->job[i]);
	for (size_t i = 0; i < a->n_engines; i++)
		engine_free(a->engine[i]);
	if (a->tick)
		event_free(a->tick);
	free(a->engine);
	free(a->job);
	spawn_program_release(&a->program);
	free(a);
}

static int engines_create(struct event_base *base, const struct executor_sink *sink, void **out_self,
			  struct err *err)
{
	struct engines *a = mem_calloc(1, sizeof *a);
	int rc = 0;

	if (a) {
		a->base = base;
		a->sink = *sink;
		a->tick = event_new(base, -1, 0, on_tick, a);
	}
	if (!a || !a->tick)
		rc = err_nomem(err, "the engines");
	else if (!proc_boot_id(a->boot))
		rc = err_fail(err, ERR_IO, "cannot read /proc/sys/kernel/random/boot_id: is /proc mounted?");
	else
		rc = spawn_program_init(&a->program, err);
	if (rc) {
		engines_destroy(a);
		return rc;
	}
	*out_self = a;
	return 0;
}

static struct engine *engine_named(const struct engines *a, const char *name)
{
	for (size_t i = 0; i < a->n_engines; i++) {
		if (!strcmp(a->engine[i]->name, name))
			return a->engine[i];
	}
	return NULL;
}

/* Without a configuration as yet. */
static int engine_new(struct engines *a, const char *name, struct engine **out, struct err *err)
{
	struct engine *g = mem_calloc(1, sizeof *g), **more;
	int rc = 0;

	if (g) {
		g->all = a;
		g->name = mem_strdup(name);
		rc = errands_new(a->program.environment.word, &g->errands, err);
	}
	if (!rc && g && g->name)
		g->returned =
			event_new(a->base, errands_fd(g->errands), EV_READ | EV_PERSIST, on_returned, g);
	more = !rc && g && g->returned ? mem_resize(a->engine, a->n_engines + 1, sizeof *more) : NULL;
	if (more)
		a->engine = more;
	if (!more || event_add(g->returned, NULL)) {
		engine_free(g);
		return rc ? rc : err_nomem(err, "engine %s", name);
	}
	a->engine[a->n_engines++] = *out = g;
	return 0;
}

int exec_engine_configure(void *self, const struct config *c, struct err *err)
{
	struct engines *a = self;
	int rc = 0;

	for (size_t i = 0; i < a->n_engines; i++)
		a->engine[i]->config = NULL;
	for (size_t i = 0; i < c->n_engines && !rc; i++) {
		struct engine *g = engine_named(a, c->engine[i].name);

		if (!g)
			rc = engine_new(a, c->engine[i].name, &g, err);
		for (size_t k = 0; !rc && engine_all[k]; k++) {
			if (engine_all[k]->kind == c->engine[i].kind)
				g->ops = engine_all[k];
		}
		if (!rc)
			g->config = &c->engine[i];
	}
	return rc;
}

static int enlist(struct engines *a, const struct exec_job *from, struct engine *g, struct engine_job **out,
		  struct err *err)
{
	struct engine_job *j;
	void *list = a->job;
	int rc;

	if (find(a, from->id))
		return err_fail(err, ERR_ARG, "job %" PRIu64 " is already at an engine", from->id);
	if (!from->identity || !from->dir || from->dir[0] != '/')
		return err_fail(err, ERR_ARG, "job %" PRIu64 ": an engine needs its identity and its folder",
				from->id);
	if (mem_grow(&list, &a->cap, a->n_jobs + 1, sizeof *a->job))
		return err_nomem(err, "job %" PRIu64, from->id);
	a->job = list;
	j = mem_calloc(1, sizeof *j);
	if (!j)
		return err_nomem(err, "job %" PRIu64, from->id);
	j->engine = g;
	rc = local_job_new(from, &a->sink, a->boot, &j->run, err);
	if (rc) {
		free(j);
		return rc;
	}
	*out = j;
	return 0;
}

/* NaN: the engine's own default counts. */
static double limit_of(const struct config_engine *c, const struct exec_job *j)
{
	double by_bound_s = j->bound_s * c->time_factor + c->time_margin_s;
	double by_type_s = j->max_time_s > 0.0 ? j->max_time_s + j->kill_grace_s + c->time_margin_s : NAN;

	return fmin(by_bound_s, by_type_s); /* of a NaN and a number, the number */
}

static int make_call(const struct engines *a, const struct engine *g, const struct exec_job *from,
		     const struct local_job *run, struct engine_call *out, struct err *err)
{
	const struct config_engine *c = g->config;
	struct engine_task t = { .job = from->id,
				 .identity = run->identity,
				 .type = from->type->name,
				 .tenant = from->tenant,
				 .account = from->account ? from->account : c->account,
				 .partition = from->partition ? from->partition : c->partition,
				 .gres = from->type->gres,
				 .cpus = from->cpus,
				 .memory_mb = from->memory_mb,
				 .limit_s = limit_of(c, from) };
	struct exec_job plain = *from;
	struct spawn_words words = { 0 };
	struct strbuf report = { 0 };
	int rc = 0;

	plain.cgroup = NULL; /* a folder of this machine; the engine has its own */
	plain.keep_env = g->ops->keep_env;
	strbuf_printf(&report, "%s" RECORD_REPORT, run->record);
	t.report = report.text;
	if (report.failed ||
	    !spawn_words_supervisor(&words, c->supervisor ? c->supervisor : a->program.path, &plain, NULL))
		rc = err_nomem(err, "job %" PRIu64, from->id);
	t.command = words.word;
	if (!rc)
		rc = g->ops->submit(c, &t, out, err);
	if (rc)
		call_release(out);
	spawn_words_release(&words);
	strbuf_release(&report);
	return rc;
}

static int engines_start(void *self, const struct exec_job *from, struct err *err)
{
	struct engines *a = self;
	struct engine *g = from->engine ? engine_named(a, from->engine->name) : NULL;
	struct engine_job *j;
	int rc;

	if (!g || !g->config)
		return err_fail(err, ERR_NOTFOUND, "its engine is not configured");
	if (geteuid() != 0 && from->uid != geteuid())
		return err_fail(err, ERR_PERM, "jobs run as the daemon's own user only (%u, not %u)",
				(unsigned)geteuid(), (unsigned)from->uid);
	rc = enlist(a, from, g, &j, err);
	if (rc)
		return rc;
	rc = make_call(a, g, from, j->run, &j->call, err);
	if (rc) {
		engine_job_free(j);
		return rc;
	}
	a->job[a->n_jobs++] = j;
	tick_in(a, 0);
	return 0;
}

void exec_engine_withdraw(const char *dir, const char *identity)
{
	struct strbuf path = { 0 };

	strbuf_printf(&path, "%s.%s" RECORD_ENGINE, dir, identity);
	if (!path.failed)
		unlink(path.text);
	strbuf_release(&path);
}

bool exec_engine_knows(void *self, uint64_t id, const char *dir, const char *identity)
{
	struct strbuf path = { 0 };
	bool there = find(self, id) != NULL;

	if (!there && dir && identity) {
		strbuf_printf(&path, "%s.%s" RECORD_ENGINE, dir, identity);
		there = !path.failed && !access(path.text, F_OK);
		strbuf_release(&path);
	}
	return there;
}

static int engines_adopt(void *self, const struct exec_job *from, bool *out_unstarted, struct err *err)
{
	struct engines *a = self;
	struct engine_job *j;
	struct handover h;
	struct engine *g;
	int rc = enlist(a, from, NULL, &j, err);

	*out_unstarted = false;
	if (rc)
		return rc;
	rc = handover_read(j->run->record, j->run->identity, &h, err);
	g = rc ? NULL : engine_named(a, h.engine);
	if (!rc && !g)
		rc = engine_new(a, h.engine, &g, err);
	if (rc) {
		engine_job_free(j);
		return rc;
	}
	j->engine = g;
	j->run->adopted = true;
	j->hand = h.id[0] ? THERE : UNSURE;
	j->submits = 1;
	snprintf(j->id, sizeof j->id, "%s", h.id);
	a->job[a->n_jobs++] = j;
	tick_in(a, 0);
	return 0;
}

static int engines_stop(void *self, uint64_t id, double grace_s, struct err *err)
{
	struct engines *a = self;
	struct engine_job *j = find(a, id);

	if (!j)
		return err_fail(err, ERR_NOTFOUND, "job %" PRIu64 " is at no engine", id);
	j->run->stop_asked = true;
	j->run->stop_grace_s = grace_s;
	tick_in(a, 0);
	return 0;
}

static size_t engines_running(const void *self)
{
	return ((const struct engines *)self)->n_jobs;
}

const struct executor_ops exec_engine_ops = {
	.name = "engine",
	.no_mode = true,
	.create = engines_create,
	.start = engines_start,
	.stop = engines_stop,
	.adopt = engines_adopt,
	.running = engines_running,
	.destroy = engines_destroy,
};
