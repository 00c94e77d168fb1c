/* The executor of jobs on this machine: each has its own supervisor (scheduler/supervisor/), which this
 * file has started (spawner.c), watches by a pidfd, and whose records it reads (local_job.c).
 * Nothing here waits for a disk or a process.
 *
 * One timer serves all jobs: it reads what they printed, tells progress and ends. It runs while there are
 * jobs. Read executor.h first, then process/record_format.h. */
#define _GNU_SOURCE
#include "scheduler/daemon/exec/local.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/daemon/exec/cpus.h"
#include "scheduler/daemon/exec/local_job.h"
#include "scheduler/process/identity.h"
#include "scheduler/daemon/exec/spawner.h"
#include "scheduler/daemon/exec/wake.h"

#define TICK_US 200000
#define TICK_MAX_BYTES (256 << 10) /* of output looked at in one turn: a few milliseconds of parsing */
#define SETTLE_TRIES 50 /* ticks to wait for a record that cannot be read: 10 s */

struct local {
	struct event_base *base;
	struct executor_sink sink;
	struct spawn_program program; /* the supervisor */
	struct spawner *spawner;
	struct event *spawned; /* orders came back */
	char boot[RECORD_BOOT_BYTES + 1];
	struct local_job **job;
	size_t n_jobs, cap;
	size_t next; /* whose output is looked at first in the next turn */
	struct event *tick;
	struct wakes *wakes; /* NULL: none */
	struct cpus cpus;
	char scratch[JOB_OUTPUT_MAX_LINE + 1];
};

static struct local_job *find(const struct local *l, uint64_t id)
{
	for (size_t i = 0; i < l->n_jobs; i++) {
		if (l->job[i]->id == id)
			return l->job[i];
	}
	return NULL;
}

static void tick_in(struct local *l, int us)
{
	const struct timeval t = { .tv_usec = us };

	if (event_add(l->tick, &t))
		log_error("out of memory for the timer of the running jobs");
}

/* ---- telling ---- */

static void release_cpus(struct local_job *j)
{
	if (j->pinned)
		cpus_give_back(&j->local->cpus, &j->cpus);
	j->pinned = false;
}

/* Out of the table first: the sink may start the next job. */
static void tell_finished(struct local *l, size_t at, int64_t now_boot_ns)
{
	struct local_job *j = l->job[at];

	l->job[at] = l->job[--l->n_jobs];
	wakes_drop(l->wakes, j->id);
	release_cpus(j);
	local_job_tell_finished(j, now_boot_ns);
}

/* The same for a delayed job: the sink may start it at once. */
static void tell_delayed(struct local *l, size_t at)
{
	struct local_job *j = l->job[at];

	l->job[at] = l->job[--l->n_jobs];
	wakes_drop(l->wakes, j->id);
	release_cpus(j);
	l->sink.delayed(l->sink.owner, j->id, j->failed);
	local_job_free(j);
}

/* ---- the supervisor's report ---- */

/* The report says so, the record says when. */
static void note_start(struct local_job *j)
{
	bool more;

	if (j->state == LOCAL_STARTING && j->said_started && !local_job_learn_start(j, NULL))
		j->state = LOCAL_RUNNING; /* else: the next tick tries again */
	if (j->state != LOCAL_RUNNING || j->told_started)
		return;
	local_job_tell_started(j);
	if (j->steer) { /* its log is there, and its first report may come soon */
		job_output_read(&j->output, j->local->scratch, false, &more);
		wakes_add(j->local->wakes, j->id, j->output.log[0].fd);
	}
}

static void on_report(evutil_socket_t fd, short what, void *job)
{
	(void)fd;
	(void)what;
	local_job_take_report(job);
	note_start(job);
}

/* ---- the supervisor's end ---- */

static void on_gone(evutil_socket_t fd, short what, void *job);

/* Our own child, not reaped yet, so no other process has its number. False: it was reaped elsewhere, as the
 * kernel does where SIGCHLD is ignored. */
static bool open_pidfd(struct local_job *j)
{
	j->pidfd = pidfd_open(j->supervisor, 0);
	if (j->pidfd >= 0 || errno != ESRCH)
		return true;
	local_job_take_report(j);
	local_job_close_report(j);
	j->seen_gone = true;
	j->state = LOCAL_UNSETTLED;
	tick_in(j->local, 0);
	return false;
}

/* Without memory or descriptors for it, it is tried again at every tick. */
static void watch(struct local_job *j)
{
	if (j->state != LOCAL_STARTING && j->state != LOCAL_RUNNING)
		return;
	if (j->pidfd < 0 && !open_pidfd(j))
		return;
	if (j->pidfd >= 0 && !j->gone) {
		j->gone = event_new(j->local->base, j->pidfd, EV_READ, on_gone, j);
		if (j->gone && event_add(j->gone, NULL)) {
			event_free(j->gone);
			j->gone = NULL;
		}
	}
	if (j->report_fd >= 0 && !j->report) {
		j->report = event_new(j->local->base, j->report_fd, EV_READ | EV_PERSIST, on_report, j);
		if (j->report && event_add(j->report, NULL)) {
			event_free(j->report);
			j->report = NULL;
		}
	}
}

/* Asked for before the supervisor was known. */
static void pass_on_stop(const struct local_job *j)
{
	struct err err = { 0 };

	if (j->stop_asked && (j->state == LOCAL_STARTING || j->state == LOCAL_RUNNING) &&
	    local_job_send_stop(j, &err))
		log_error("%s", err.text);
}

/* An adopted supervisor is not our child, and has nothing to say to us but its record. */
static void reap(struct local_job *j)
{
	siginfo_t info = { 0 };

	j->supervisor_code = -1;
	if (!waitid(P_PIDFD, (id_t)j->pidfd, &info, WEXITED | WNOHANG) && info.si_pid != 0 &&
	    info.si_code == CLD_EXITED)
		j->supervisor_code = info.si_status;
}

/* Whatever cpus we had in mind for it, it has those its own supervisor gave it. */
static void mark_cpus(struct local_job *j)
{
	if (j->state == LOCAL_RUNNING && j->pinned)
		cpus_mark(&j->local->cpus, &j->cpus);
	else
		j->pinned = false;
}

/* Our supervisor came second, or it is not known which supervisor has the job: it is watched as if it had
 * been found after a restart. */
static int adopt_late(struct local_job *j, struct err *err)
{
	bool unstarted = false;
	int rc;

	release_cpus(j);
	rc = local_job_examine(j, j->local->boot, &unstarted, err);
	if (!rc && unstarted)
		j->state = LOCAL_DELAYED; /* the one that came first could not start it, and said so */
	mark_cpus(j);
	watch(j);
	pass_on_stop(j); /* the supervisor that heard it came second */
	return rc;
}

static void settle(struct local_job *j)
{
	struct err err = { 0 };
	int rc = local_job_settle(j, &err);

	if (rc == -ERR_BUSY)
		rc = adopt_late(j, &err);
	if (rc && rc != -ERR_NOMEM && ++j->tries >= SETTLE_TRIES) /* descriptors and memory come back */
		local_job_lost(j, "%.250s", err.text);
}

static void on_gone(evutil_socket_t fd, short what, void *job)
{
	struct local_job *j = job;

	(void)fd;
	(void)what;
	local_job_take_report(j);
	note_start(j);
	local_job_close_report(j);
	reap(j);
	event_free(j->gone);
	j->gone = NULL;
	close(j->pidfd);
	j->pidfd = -1;
	j->seen_gone = true;
	j->state = LOCAL_UNSETTLED;
	settle(j);
	tick_in(j->local, 0);
}

/* ---- the supervisor's beginning ---- */

static void take_order(struct local_job *j, struct spawn_order *o)
{
	j->order = NULL;
	if (!o->pid && !j->stop_asked && spawn_error_passes(o->error)) {
		snprintf(j->failed, sizeof j->failed, "cannot start a process: %s", strerror(o->error));
		j->state = LOCAL_DELAYED;
		tick_in(j->local, 0);
		return;
	}
	if (!o->pid) {
		local_job_never_ran(j, false, "could not be started: cannot run %s: %s",
				    text_tail(o->program->path, 150), strerror(o->error));
		tick_in(j->local, 0);
		return;
	}
	j->supervisor = o->pid;
	j->report_fd = spawn_order_take_report(o);
	j->state = LOCAL_STARTING;
	watch(j);
	pass_on_stop(j);
}

static void on_spawned(evutil_socket_t fd, short what, void *self)
{
	struct local *l = self;
	struct order *list = orders_returned(spawner_orders(l->spawner)), *order;

	(void)fd;
	(void)what;
	while ((order = order_next(&list))) {
		struct spawn_order *o = (struct spawn_order *)order;

		if (o->job) /* else it was withdrawn */
			take_order(o->job, o);
		spawn_order_free(o);
	}
}

/* ---- the tick ---- */

/* A piece of each job's output, so that one that prints much does not hold up the others, or us. False: there
 * is more to be read at once. */
static bool read_outputs(struct local *l)
{
	size_t bytes = 0, n = l->n_jobs;
	bool all_read = true;

	for (size_t i = 0; i < n; i++) {
		struct local_job *j = l->job[(l->next + i) % n];
		bool more = false;

		if (!local_job_has_output(j))
			continue;
		if (bytes >= TICK_MAX_BYTES) {
			l->next = (l->next + i) % n;
			return false;
		}
		bytes += job_output_read(&j->output, l->scratch, j->state == LOCAL_ENDED, &more);
		all_read &= !more;
	}
	return all_read;
}

static bool output_is_read(struct local_job *j)
{
	bool more = false;

	return !local_job_has_output(j) ||
	       (job_output_read(&j->output, j->local->scratch, true, &more) == 0 && !more);
}

static void visit(struct local *l, size_t at, int64_t now_boot_ns)
{
	struct local_job *j = l->job[at];

	watch(j);
	if (j->state == LOCAL_STARTING)
		local_job_take_report(j);
	note_start(j);
	if (j->state == LOCAL_UNSETTLED)
		settle(j);
	if (j->steer && j->state == LOCAL_RUNNING)
		wakes_add(l->wakes, j->id, j->output.log[0].fd);
	if (local_job_is_due(j, now_boot_ns))
		local_job_tell_progress(j, now_boot_ns);
	if (j->state == LOCAL_DELAYED)
		tell_delayed(l, at);
	else if (j->state == LOCAL_ENDED && output_is_read(j))
		tell_finished(l, at, now_boot_ns);
}

static void on_tick(evutil_socket_t fd, short what, void *self)
{
	struct local *l = self;
	bool all_read = read_outputs(l), all_told = true;
	int64_t now_boot_ns = clock_boot_ns();

	(void)fd;
	(void)what;
	for (size_t i = l->n_jobs;
	     i-- > 0;) { /* backwards: an end moves the last one, already seen, to its place */
		if (i < l->n_jobs)
			visit(l, i, now_boot_ns);
	}
	wakes_tick(l->wakes);
	for (size_t i = 0; i < l->n_jobs; i++)
		all_told &= l->job[i]->state != LOCAL_ENDED;
	if (l->n_jobs)
		tick_in(l, all_read && all_told ? TICK_US : 0);
}

/* A job that waits for an answer has written something. */
static size_t on_wake(void *self, uint64_t id)
{
	struct local *l = self;
	struct local_job *j = find(l, id);
	int64_t now_boot_ns = clock_boot_ns();
	bool more = false;
	size_t n;

	if (!j || j->state != LOCAL_RUNNING)
		return 0;
	n = job_output_read(&j->output, l->scratch, false, &more);
	if (local_job_is_due(j, now_boot_ns))
		local_job_tell_progress(j, now_boot_ns);
	return n;
}

/* ---- the table's functions ---- */

static void local_destroy(void *self)
{
	struct local *l = self;

	if (!l)
		return;
	if (l->spawned)
		event_free(l->spawned); /* before the spawner, whose descriptor it watches */
	spawner_free(l->spawner); /* before the program, which its orders borrow */
	wakes_free(l->wakes); /* before the logs that it watches */
	for (size_t i = 0; i < l->n_jobs; i++)
		local_job_free(l->job[i]);
	if (l->tick)
		event_free(l->tick);
	free(l->job);
	spawn_program_release(&l->program);
	free(l);
}

static int local_create(struct event_base *base, const struct executor_sink *sink, void **out_self,
			struct err *err)
{
	struct local *l = mem_calloc(1, sizeof *l);
	int rc = 0;

	if (l) {
		l->base = base;
		l->sink = *sink;
		l->tick = event_new(base, -1, 0, on_tick, l);
		rc = wakes_new(base, on_wake, l, &l->wakes, err);
		cpus_init(&l->cpus);
	}
	if (!l || (!rc && !l->tick))
		rc = err_nomem(err, "the executor");
	else if (!rc && !proc_boot_id(l->boot))
		rc = err_fail(err, ERR_IO, "cannot read /proc/sys/kernel/random/boot_id: is /proc mounted?");
	else if (!rc)
		rc = spawn_program_init(&l->program, err);
	if (!rc)
		rc = spawner_new(&l->spawner, err);
	if (!rc) {
		l->spawned = event_new(base, orders_fd(spawner_orders(l->spawner)), EV_READ | EV_PERSIST,
				       on_spawned, l);
		if (!l->spawned || event_add(l->spawned, NULL))
			rc = err_nomem(err, "the executor");
	}
	if (rc) {
		local_destroy(l);
		return rc;
	}
	*out_self = l;
	return 0;
}

/* A new job and room for it in the table. */
static int enlist(struct local *l, const struct exec_job *from, struct local_job **out, struct err *err)
{
	void *list = l->job;
	int rc;

	if (find(l, from->id))
		return err_fail(err, ERR_ARG, "job %" PRIu64 " is already running", from->id);
	if (!from->dir || from->dir[0] != '/')
		return err_fail(err, ERR_ARG, "job %" PRIu64 ": its folder needs an absolute path", from->id);
	if (mem_grow(&list, &l->cap, l->n_jobs + 1, sizeof *l->job))
		return err_nomem(err, "job %" PRIu64, from->id);
	l->job = list;
	rc = local_job_new(from, &l->sink, l->boot, out, err);
	if (!rc)
		(*out)->local = l;
	return rc;
}

static int check_start(const struct exec_job *j, struct err *err)
{
	if (!j->argv || !j->argv[0])
		return err_fail(err, ERR_ARG, "job %" PRIu64 " has no command", j->id);
	if (geteuid() != 0 && j->uid != geteuid())
		return err_fail(err, ERR_PERM, "jobs run as the daemon's own user only (%u, not %u)",
				(unsigned)geteuid(), (unsigned)j->uid);
	if (!(j->kill_grace_s >= 0.0) || isnan(j->max_time_s))
		return err_fail(err, ERR_ARG,
				"job %" PRIu64 ": grace %g s, longest time %g s: need numbers >= 0", j->id,
				j->kill_grace_s, j->max_time_s);
	return 0;
}

static int local_start(void *self, const struct exec_job *from, struct err *err)
{
	struct local *l = self;
	char list[RECORD_MAX_CPUS + 1];
	struct local_job *j;
	int rc = check_start(from, err);

	if (!rc)
		rc = enlist(l, from, &j, err);
	if (rc)
		return rc;
	j->pinned = from->pin && cpus_take(&l->cpus, from->cpus, &j->cpus);
	if (j->pinned && !cpus_format(&j->cpus, list, sizeof list))
		release_cpus(j);
	rc = spawn_order_new(&l->program, from, j->pinned ? list : NULL, &j->order, err);
	if (rc) {
		release_cpus(j);
		local_job_free(j);
		return rc;
	}
	j->order->job = j;
	l->job[l->n_jobs++] = j;
	orders_add(spawner_orders(l->spawner), &j->order->order);
	if (!event_pending(l->tick, EV_TIMEOUT, NULL))
		tick_in(l, TICK_US);
	return 0;
}

static int local_adopt(void *self, const struct exec_job *from, bool *out_unstarted, struct err *err)
{
	struct local *l = self;
	struct local_job *j;
	struct err why = { 0 };
	bool unstarted = false;
	int rc = enlist(l, from, &j, err);

	if (rc)
		return rc;
	j->adopted = true;
	rc = local_job_examine(j, l->boot, &unstarted, &why);
	if (unstarted) {
		local_job_free(j);
		*out_unstarted = true;
		return 0;
	}
	if (rc) { /* for want of descriptors, say: given up as lost, it would run on unseen */
		log_warn("%s; trying again", why.text);
		j->state = LOCAL_UNSETTLED;
		j->supervisor_code = SUPERVISOR_LOST_RACE;
	}
	mark_cpus(j);
	l->job[l->n_jobs++] = j;
	watch(j);
	tick_in(l, 0);
	*out_unstarted = false;
	return 0;
}

static int local_stop(void *self, uint64_t id, double grace_s, struct err *err)
{
	struct local *l = self;
	struct local_job *j = find(l, id);

	if (!j)
		return err_fail(err, ERR_NOTFOUND, "job %" PRIu64 " is not running here", id);
	if (!(grace_s >= 0.0))
		return err_fail(err, ERR_ARG, "job %" PRIu64 ": a grace of %g s: need a number >= 0", id,
				grace_s);
	j->stop_grace_s = j->stop_asked ? fmin(j->stop_grace_s, grace_s) : grace_s;
	j->stop_asked = true;
	if (j->state == LOCAL_STARTING || j->state == LOCAL_RUNNING)
		return local_job_send_stop(j, err);
	if (j->state == LOCAL_ORDERED && spawner_withdraw(j->order)) {
		spawn_order_empty(j->order);
		j->order->job = NULL;
		j->order = NULL;
		local_job_never_ran(j, true, "stopped on request, before it was started");
		tick_in(l, 0);
	}
	return 0;
}

static size_t local_running(const void *self)
{
	return ((const struct local *)self)->n_jobs;
}

const struct executor_ops exec_local_ops = {
	.name = "run",
	.create = local_create,
	.start = local_start,
	.stop = local_stop,
	.adopt = local_adopt,
	.running = local_running,
	.destroy = local_destroy,
};
