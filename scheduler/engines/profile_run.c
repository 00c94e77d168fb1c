/* One run of a campaign at an engine. See profile_run.h. */
#define _GNU_SOURCE
#include "scheduler/engines/profile_run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/io.h"
#include "common/mem.h"
#include "common/places.h"
#include "common/text/template.h"
#include "common/text/text.h"
#include "scheduler/engines/errand.h"
#include "scheduler/jobs/record.h"
#include "scheduler/process/run_record.h"

#define LOOK_AT_RECORDS_S 0.1
#define TICK_S 1.0
#define GRACE_S 2.0 /* of a copy that is asked to end */
#define STOP_S                                                                                               \
	20.0 /* for the engine to end the copies; then we leave, and the next command cancels them again */
#define TRY_AGAIN_S 5.0 /* after an answer that was neither yes nor no */
#define MISSING 3 /* polls in a row that do not know a copy, before it counts as gone */
#define MAX_OUTPUT ((size_t)16 << 20)
#define HANDED_OVER ".handed-over" /* DIR/jobs/NAME.copy-1.handed-over: the identity and the id */

enum place { TO_SUBMIT, THERE, AT_GATE, ENDED };

struct copy {
	enum place place;
	char identity[JOB_IDENTITY + 1], id[ENGINE_MAX_ID + 1];
	char dir[PATH_MAX - 64]; /* its folder; the records are beside it */
	double submit_at_s;
	enum engine_word word;
	char said[ENGINE_MAX_SAID];
	unsigned missing;
	double over_s; /* since when the engine says that it is over; 0: it does not */
};

struct at_engine {
	struct engine_runner *runner;
	const struct profile_run_params *p;
	struct profile_outcome *out;
	struct copy *copy;
	char dir[PATH_MAX - 300], gate[PATH_MAX]; /* of the jobs; the file that lets the copies go */
	bool open; /* the gate */
	double begun_s, poll_at_s, look_at_s, tick_at_s, leave_at_s; /* leave_at_s: INFINITY unless we stop */
	bool timed_out;
	int signal;
	size_t failed; /* the copy that failed first, from 1 */
	char why[200];
	double others, looks; /* sum of the cpus that jobs of others had, and how often we looked */
	struct err err; /* no run can work */
};

/* ---- the programs of the engine ---- */

static bool is_asked_to_stop(const void *owner)
{
	return owner && profile_signals_came();
}

/* Takes the call. NULL: out of memory. `a` NULL: nothing interrupts it. */
static struct errand *run_call(const struct engine_runner *r, const struct at_engine *a,
			       struct engine_call *c)
{
	struct errand *e = mem_calloc(1, sizeof *e);

	if (!e) {
		engine_call_release(c);
		return NULL;
	}
	e->argv = c->argv;
	e->input = c->input;
	*c = (struct engine_call){ 0 };
	e->timeout_s = r->config->timeout_s;
	e->max_output = MAX_OUTPUT;
	errand_run(e, environ, is_asked_to_stop, a);
	return e;
}

static void cancel(const struct engine_runner *r, const char *identity, const char *id, uint64_t job)
{
	struct engine_call c = { 0 };

	if (r->ops->cancel(r->config, job, identity, id, &c, NULL))
		engine_call_release(&c);
	else
		errand_free(run_call(r, NULL, &c));
}

/* ---- handing a copy over ---- */

static bool supervisor_words(const struct at_engine *a, size_t copy, char **argv, char ***out)
{
	const struct copy *k = &a->copy[copy];
	const struct profile_design *d = a->p->design;
	const char *program = a->runner->config->supervisor ? a->runner->config->supervisor
							    : a->runner->supervisor;
	char here[PATH_MAX];
	bool fine = engine_word_add(out, "%s", program) && engine_word_add(out, "--dir=%s", k->dir) &&
		    engine_word_add(out, "--identity=%s", k->identity) &&
		    engine_word_add(out, "--grace=%.3f", GRACE_S) && engine_word_add(out, "--pass-code") &&
		    engine_word_add(out, "--all-env");

	if (fine && !a->runner->at_once)
		fine = engine_word_add(out, "--gate=%s", a->gate);

	if (fine && (d->work_dir || getcwd(here, sizeof here)))
		fine = engine_word_add(out, "--work-dir=%s", d->work_dir ? d->work_dir : here);
	fine = fine && engine_word_add(out, "--");
	for (size_t i = 0; fine && argv[i]; i++)
		fine = engine_word_add(out, "%s", argv[i]);
	return fine;
}

static void note_id(const struct copy *k)
{
	struct strbuf path = { 0 }, text = { 0 };

	strbuf_printf(&path, "%s" HANDED_OVER, k->dir);
	strbuf_printf(&text, "%s %s\n", k->identity, k->id[0] ? k->id : "-");
	if (!path.failed && !text.failed)
		io_write_file(path.text, text.text, text.len,
			      NULL); /* without it nobody cleans up after a kill */
	strbuf_release(&path);
	strbuf_release(&text);
}

static void submit(struct at_engine *a, size_t copy, double now_s)
{
	const struct config_engine *c = a->runner->config;
	const char *cpus = profile_value(a->p->design, a->p->point->level, "cpus");
	struct copy *k = &a->copy[copy];
	struct strbuf report = { 0 };
	struct engine_task t = { .job = copy + 1,
				 .identity = k->identity,
				 .type = "profile",
				 .tenant = "profile",
				 .account = c->account,
				 .partition = c->partition,
				 .cpus = cpus ? (uint32_t)fmax(1.0, atof(cpus)) : 1,
				 .memory_mb = NAN,
				 .limit_s = isfinite(a->p->design->timeout_s)
						    ? a->p->design->timeout_s + c->time_margin_s
						    : NAN };
	char **argv = NULL, **words = NULL, said[ENGINE_MAX_SAID];
	struct engine_call call = { 0 };
	enum engine_answer answer = ENGINE_UNSURE;
	struct errand *e = NULL;

	strbuf_printf(&report, "%s" RECORD_REPORT, k->dir);
	t.report = report.text;
	if (report.failed || profile_argv(a->p->design, a->p->point, copy + 1, &argv, &a->err) ||
	    !supervisor_words(a, copy, argv, &words)) {
		if (!a->err.code)
			err_nomem(&a->err, "a copy");
		goto out;
	}
	t.command = words;
	note_id(k); /* before the engine knows of it */
	if (a->runner->ops->submit(c, &t, &call, &a->err))
		goto out;
	e = run_call(a->runner, a, &call);
	if (!e) {
		err_nomem(&a->err, "a copy");
		goto out;
	}
	snprintf(said, sizeof said, "%.150s", e->err.code ? e->err.text : e->said);
	if (e->ran && !e->err.code)
		answer = a->runner->ops->answer(e->exit_code, strbuf_text(&e->output), e->said, said,
						sizeof said);
	if (answer == ENGINE_YES) {
		snprintf(k->id, sizeof k->id, "%.*s", ENGINE_MAX_ID, said);
		k->place = THERE;
		note_id(k);
	} else if (answer == ENGINE_NO || (!e->ran && e->err.code)) {
		err_fail(&a->err, ERR_IO, "%s refused it: %s", c->name, said);
	} else { /* should the engine have it all the same, the second supervisor finds the copy claimed */
		k->submit_at_s = now_s + TRY_AGAIN_S;
		snprintf(a->runner->waits, sizeof a->runner->waits, "%s: %.150s", c->name, said);
	}
out:
	errand_free(e);
	argv_free(argv);
	argv_free(words);
	strbuf_release(&report);
}

/* ---- what the engine says ---- */

static void take_line(struct at_engine *a, const struct engine_line *l, double now_s)
{
	for (size_t i = 0; i < a->out->n_copies; i++) {
		struct copy *k = &a->copy[i];

		if (strcmp(k->identity, l->identity) || k->place == ENDED)
			continue;
		if (k->place == TO_SUBMIT)
			k->place = THERE; /* an answer that was none: it has the copy */
		snprintf(k->id, sizeof k->id, "%s", l->id);
		snprintf(k->said, sizeof k->said, "%s", l->said);
		k->word = l->word;
		k->missing = 0;
		if (l->word < ENGINE_ENDED)
			k->over_s = 0.0;
		else if (k->over_s == 0.0)
			k->over_s = now_s;
		if (!a->open && l->word == ENGINE_WAITS)
			snprintf(a->runner->waits, sizeof a->runner->waits, "%s: %s", a->runner->config->name,
				 l->said);
	}
}

static void poll_engine(struct at_engine *a, double now_s)
{
	struct engine_call c = { 0 };
	struct engine_line line;
	struct errand *e;
	char *at;

	a->poll_at_s = now_s + a->runner->config->poll_s;
	if (a->runner->ops->poll(a->runner->config, &c, NULL)) {
		engine_call_release(&c);
		return;
	}
	e = run_call(a->runner, a, &c);
	if (!e || e->err.code || e->exit_code) { /* nothing follows from it */
		errand_free(e);
		return;
	}
	for (size_t i = 0; i < a->out->n_copies; i++)
		a->copy[i].missing += a->copy[i].place == THERE || a->copy[i].place == AT_GATE;
	at = e->output.text;
	for (char *one; at && (one = strsep(&at, "\n"));) {
		if (a->runner->ops->line(one, &line))
			take_line(a, &line, now_s);
	}
	for (size_t i = 0; i < a->out->n_copies; i++) {
		if (a->copy[i].missing >= MISSING && a->copy[i].over_s == 0.0)
			a->copy[i].over_s = now_s;
	}
	errand_free(e);
}

/* The cpus that jobs of others have, in our partition. */
static void look_at_others(struct at_engine *a, double now_s)
{
	const struct config_engine *c = a->runner->config;
	char scope[256];
	struct cluster *found = NULL;
	bool fine = a->runner->ops->look != NULL && c->look_s > 0.0;

	a->look_at_s = now_s + (fine ? c->look_s : INFINITY);
	snprintf(scope, sizeof scope, ",%.200s,", c->partition ? c->partition : "*");
	for (int q = 0; q < CLUSTER_QUESTIONS && fine; q++) {
		struct engine_call call = { 0 };
		struct errand *e = NULL;
		struct cluster *more;
		size_t n = 1;
		char *at;

		if (a->runner->ops->look(c, (enum cluster_question)q, &call, NULL))
			engine_call_release(&call);
		else
			e = run_call(a->runner, a, &call);
		fine = e && !e->err.code && !e->exit_code;
		for (const char *s = fine ? strbuf_text(&e->output) : ""; (s = strchr(s, '\n')); s++)
			n++;
		more = fine ? mem_resize(found, 1, sizeof *found + n * sizeof found->guest[0]) : NULL;
		fine = more != NULL;
		if (fine) {
			if (!found)
				*more = (struct cluster){ 0 };
			found = more;
			found->cap = n;
			at = e->output.text;
			for (char *one; at && (one = strsep(&at, "\n"));)
				a->runner->ops->look_line((enum cluster_question)q, one, scope, found);
		}
		errand_free(e);
	}
	if (fine) {
		a->others += (double)found->others_cpus;
		a->looks++;
	}
	free(found);
}

/* ---- the copies ---- */

static void stop_all(struct at_engine *a, double now_s)
{
	if (isfinite(a->leave_at_s))
		return;
	a->leave_at_s = now_s + STOP_S;
	for (size_t i = 0; i < a->out->n_copies; i++) {
		struct copy *k = &a->copy[i];

		if (k->place == TO_SUBMIT)
			k->place = ENDED;
		else if (k->place != ENDED)
			cancel(a->runner, k->identity, k->id, i + 1);
	}
}

static void fail_copy(struct at_engine *a, size_t copy, double now_s, const char *why)
{
	a->copy[copy].place = ENDED;
	if (a->failed || isfinite(a->leave_at_s))
		return;
	a->failed = copy + 1;
	snprintf(a->why, sizeof a->why, "%s", why);
	/* With one job less on the machine the others would measure another setting. */
	if (!a->runner->at_once)
		stop_all(a, now_s);
}

static const char *word_text(enum engine_word w)
{
	return w == ENGINE_TIME_LIMIT  ? "was stopped at its time limit"
	       : w == ENGINE_MEMORY    ? "was out of memory"
	       : w == ENGINE_NODE      ? "lost its node"
	       : w == ENGINE_PREEMPTED ? "was preempted"
	       : w == ENGINE_CANCELLED ? "was cancelled, not by postrider"
				       : "is over and left no record";
}

static void take_exit(struct at_engine *a, size_t copy, const struct job_exit *x, double now_s)
{
	struct profile_copy *m = &a->out->copy[copy];
	enum engine_word w = a->copy[copy].word;
	char why[200];

	if (!x->ran) {
		snprintf(why, sizeof why, "could not be started: %.150s", x->reason);
		fail_copy(a, copy, now_s, why);
		return;
	}
	m->time_s = x->run_s;
	m->max_rss_mb = x->max_rss_mb;
	m->job_cpu_mean = x->run_s > 0.0 ? 100.0 * x->cpu_s / x->run_s : NAN;
	m->job_iowait_mean = NAN;
	m->exit_code = x->exit_signal ? 0 : x->exit_code;
	m->signal = x->exit_signal;
	a->copy[copy].place = ENDED;
	if (w > ENGINE_FAILED)
		snprintf(why, sizeof why, "%s (%s)", word_text(w), a->copy[copy].said);
	else if (x->exit_signal)
		snprintf(why, sizeof why, "was ended by signal %d (%s)", x->exit_signal,
			 strsignal(x->exit_signal));
	else
		snprintf(why, sizeof why, "ended with exit code %d", x->exit_code);
	if (x->exit_signal || x->exit_code)
		fail_copy(a, copy, now_s, why);
}

static void look_at(struct at_engine *a, size_t copy, double now_s)
{
	struct copy *k = &a->copy[copy];
	char base[PATH_MAX], why[ENGINE_MAX_SAID + 80];
	struct job_started s;
	struct job_exit x;

	snprintf(base, sizeof base, "%s.%s", k->dir, k->identity);
	if (k->place == TO_SUBMIT && now_s >= k->submit_at_s && !isfinite(a->leave_at_s)) {
		submit(a, copy, now_s);
		return;
	}
	if (k->place == THERE && !job_started_read(base, k->identity, &s, NULL))
		k->place = AT_GATE;
	if (k->place != TO_SUBMIT && k->place != ENDED && !job_exit_read(base, k->identity, &x, NULL)) {
		take_exit(a, copy, &x, now_s);
		return;
	}
	if (k->place != ENDED && k->over_s > 0.0 && now_s - k->over_s >= a->runner->config->record_grace_s) {
		snprintf(why, sizeof why, "%s (%s)", word_text(k->word),
			 k->said[0] ? k->said : "gone from the queue");
		fail_copy(a, copy, now_s, why);
	}
}

static bool all_at(const struct at_engine *a, enum place place)
{
	for (size_t i = 0; i < a->out->n_copies; i++) {
		if (a->copy[i].place != place)
			return false;
	}
	return true;
}

static void open_gate(struct at_engine *a, double now_s)
{
	if (io_write_file(a->gate, "", 0, &a->err))
		return;
	a->open = true;
	a->begun_s = now_s;
	a->runner->waits[0] = '\0';
}

static void wait_all(struct at_engine *a)
{
	while (!all_at(a, ENDED) && !a->err.code) {
		int number = profile_signals_wait(a->p->signals, LOOK_AT_RECORDS_S);
		double now_s = clock_monotonic_s();

		if (number && number != SIGCHLD) {
			if (a->signal)
				return; /* asked twice */
			a->signal = number;
			stop_all(a, now_s);
		}
		for (size_t i = 0; i < a->out->n_copies && !a->err.code; i++)
			look_at(a, i, now_s);
		if (!a->open && !isfinite(a->leave_at_s) && all_at(a, AT_GATE))
			open_gate(a, now_s);
		if (a->open && !isfinite(a->leave_at_s) && now_s - a->begun_s >= a->p->design->timeout_s) {
			a->timed_out = true;
			stop_all(a, now_s);
		}
		if (now_s >= a->leave_at_s)
			return;
		if (now_s >= a->poll_at_s)
			poll_engine(a, now_s);
		if (a->open && now_s >= a->look_at_s)
			look_at_others(a, now_s);
		if (now_s >= a->tick_at_s) {
			a->tick_at_s = now_s + TICK_S;
			if (a->p->on_tick)
				a->p->on_tick(a->p->owner, now_s - a->begun_s);
		}
	}
}

/* ---- before and after ---- */

static int make_folder(const char *path, struct err *err)
{
	if (mkdir(path, 0711) && errno != EEXIST)
		return err_fail(err, ERR_IO, "cannot make the folder %s: %s", text_tail(path, 300),
				strerror(errno));
	return 0;
}

static int begin(struct at_engine *a, struct err *err)
{
	char *dir = NULL, identity[JOB_IDENTITY + 1];
	int rc = profile_run_prepare(a->p, a->out, err);

	if (!rc)
		rc = place_absolute(a->p->dir, &dir, err);
	if (!rc && (size_t)snprintf(a->dir, sizeof a->dir, "%s/jobs", dir) >= sizeof a->dir)
		rc = err_fail(err, ERR_ARG, "%s: the path is too long", text_tail(dir, 200));
	free(dir);
	if (!rc)
		rc = make_folder(a->dir, err);
	a->copy = rc ? NULL : mem_calloc(a->out->n_copies, sizeof *a->copy);
	if (!rc && !a->copy)
		rc = err_nomem(err, "a run");
	if (!rc)
		rc = job_identity_draw(identity, err);
	if (!rc) /* a new one: a copy that comes late must not find the gate of a later try open */
		snprintf(a->gate, sizeof a->gate, "%s/%s.%s.go", a->dir, a->p->name, identity);
	for (size_t i = 0; i < a->out->n_copies && !rc; i++) {
		struct copy *k = &a->copy[i];

		snprintf(k->dir, sizeof k->dir, "%s/%s.copy-%zu", a->dir, a->p->name, i + 1);
		rc = job_identity_draw(k->identity, err);
	}
	a->begun_s = clock_monotonic_s();
	a->open = a->runner->at_once;
	return rc;
}

/* What a copy printed goes to the logs, and the rest goes. */
static void tidy_copy(const struct at_engine *a, size_t copy)
{
	static const char *const record[] = { RECORD_STARTED, RECORD_EXIT };
	const struct copy *k = &a->copy[copy];
	char from[PATH_MAX + 64], to[PATH_MAX];

	snprintf(from, sizeof from, "%s/" JOB_STDOUT, k->dir);
	if (!profile_log_path(a->p, copy + 1, "out", to, NULL))
		(void)!rename(from, to);
	snprintf(from, sizeof from, "%s/" JOB_STDERR, k->dir);
	if (!profile_log_path(a->p, copy + 1, "err", to, NULL))
		(void)!rename(from, to);
	rmdir(k->dir);
	if (k->place != ENDED)
		return; /* it may live: the next command looks for it */
	for (size_t i = 0; i < sizeof record / sizeof *record; i++) {
		snprintf(from, sizeof from, "%s.%s%s", k->dir, k->identity, record[i]);
		unlink(from);
	}
	snprintf(from, sizeof from, "%s" RECORD_REPORT, k->dir);
	unlink(from);
	snprintf(from, sizeof from, "%s" HANDED_OVER, k->dir);
	unlink(from);
}

int engine_profile_run(void *runner, const struct profile_run_params *p, struct profile_outcome *out,
		       int *out_signal, struct err *err)
{
	struct at_engine a = { .runner = runner, .p = p, .out = out, .leave_at_s = INFINITY };
	int rc;

	*out = (struct profile_outcome){ .cpu_mean = NAN, .iowait_mean = NAN };
	*out_signal = 0;
	rc = begin(&a, err);
	if (!rc) {
		wait_all(&a);
		if (a.err.code) {
			struct err why = a.err;

			stop_all(&a, clock_monotonic_s());
			rc = err_fail(err, why.code, "%s", why.text);
		}
		for (size_t i = 0; i < out->n_copies; i++)
			tidy_copy(&a, i);
		unlink(a.gate);
	}
	out->other_load = a.looks > 0.0 ? a.others / a.looks : NAN;
	*out_signal = a.signal;
	if (!rc && !a.signal) {
		if (a.timed_out)
			profile_run_timed_out(p, out);
		else if (a.failed)
			profile_run_failed(p, a.failed, a.why, out);
		else
			rc = profile_run_results(p, out, err);
	}
	free(a.copy);
	a.runner->waits[0] = '\0';
	if (rc || a.signal)
		profile_outcome_release(out);
	return rc;
}

int engine_runner_init(struct engine_runner *r, const struct config_engine *c, struct err *err)
{
	*r = (struct engine_runner){ .config = c, .ops = engine_ops_of(c->kind) };
	if (!c->supervisor && !place_program("postrider-supervisor", r->supervisor, sizeof r->supervisor))
		return err_fail(err, ERR_NOTFOUND,
				"postrider-supervisor is neither beside this program, nor in "
				"../libexec/postrider, nor in " PLACE_LIBEXEC);
	return 0;
}

void engine_runner_clean(struct engine_runner *r, const char *dir)
{
	char path[PATH_MAX], identity[JOB_IDENTITY + 1], id[ENGINE_MAX_ID + 1], *text;
	struct dirent *one;
	size_t len, end = strlen(HANDED_OVER);
	DIR *jobs;

	if (snprintf(path, sizeof path, "%s/jobs", dir) >= (int)sizeof path || !(jobs = opendir(path)))
		return;
	while ((one = readdir(jobs))) {
		const char *copy = strstr(one->d_name, ".copy-");

		len = strlen(one->d_name);
		if (len <= end || strcmp(one->d_name + len - end, HANDED_OVER) || !copy ||
		    snprintf(path, sizeof path, "%s/jobs/%s", dir, one->d_name) >= (int)sizeof path ||
		    io_read_file(path, 4096, &text, &len, NULL))
			continue;
		_Static_assert(JOB_IDENTITY == 32 && ENGINE_MAX_ID == 63, "below");
		if (sscanf(text, "%32[0-9a-f] %63s", identity, id) == 2 && strcmp(id, "-") != 0)
			cancel(r, identity, id, strtoull(copy + strlen(".copy-"), NULL, 10));
		free(text);
		unlink(path);
	}
	closedir(jobs);
}
