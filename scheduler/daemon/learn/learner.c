/* The thread and what the loop sees of it. What the thread does is in learner_work.c. */
#define _GNU_SOURCE
#include "scheduler/daemon/learn/learner.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/worker.h"
#include "scheduler/daemon/learn/learner_work.h"

enum learner_state { LEARNER_IDLE, LEARNER_RUNNING, LEARNER_DONE };

struct task {
	char *observations; /* NULL: a rollback */
	size_t len;
	char *model_path; /* NULL: there is no model */
	uint32_t back_to;
	char reason[sizeof((struct model_version *)0)->reason];
};

struct learner {
	struct config_learning learning; /* own copies of the paths */
	struct policy_choice policy;
	char *program;
	uint64_t seed;
	int fd;
	atomic_bool stop;
	struct worker worker;

	/* the loop's while idle, the thread's while it runs */
	struct task task;
	struct versions *versions;
	struct learner_result result;

	pthread_mutex_t lock; /* held for moments only, never over a system call that may wait */
	enum learner_state state;
	struct model_version *known; /* what the loop may see of the versions; room for VERSIONS_MAX */
	size_t n_known;
	uint32_t current;
};

void learner_result_release(struct learner_result *r)
{
	free(r->path);
	model_free(r->model);
	*r = (struct learner_result){ 0 };
}

static void task_release(struct task *t)
{
	free(t->observations);
	free(t->model_path);
	*t = (struct task){ 0 };
}

/* ---- the thread ---- */

/* What the loop may see; the list touches the disk, so it is made without the lock. */
static void publish(struct learner *l, struct model_version *fresh)
{
	size_t n = versions_list(l->versions, fresh, VERSIONS_MAX);
	uint32_t current = versions_current(l->versions);

	pthread_mutex_lock(&l->lock);
	memcpy(l->known, fresh, n * sizeof *fresh);
	l->n_known = n;
	l->current = current;
	pthread_mutex_unlock(&l->lock);
}

static void lower_priority(void)
{
	struct sched_param none = { 0 };

	/* Where it is not allowed, training is merely less polite. */
	pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
	setpriority(PRIO_PROCESS, (id_t)gettid(), LEARNER_NICE);
}

static void *run(void *arg)
{
	struct learner *l = arg;
	const struct learner_work work = {
		.learning = &l->learning,
		.policy = &l->policy,
		.seed = l->seed,
		.program = l->program ? l->program : "",
		.stop = &l->stop,
		.versions = l->versions,
		.reason = l->task.reason,
		.observations = l->task.observations,
		.len = l->task.len,
		.model_path = l->task.model_path,
		.back_to = l->task.back_to,
	};
	struct model_version *fresh = mem_array(VERSIONS_MAX, sizeof *fresh);
	struct learner_result r = { 0 };
	double from_s = clock_monotonic_s();
	int rc;

	lower_priority();
	if (!fresh)
		rc = err_nomem(&r.err, "learning");
	else
		rc = work.observations ? learner_work_train(&work, &r, &r.err)
				       : learner_work_roll_back(&work, &r, &r.err);
	if (!rc)
		r.err = (struct err){ 0 };
	if (fresh)
		publish(l, fresh);
	free(fresh);
	task_release(&l->task);
	r.seconds = clock_monotonic_s() - from_s;
	l->result = r;
	pthread_mutex_lock(&l->lock);
	l->state = LEARNER_DONE;
	pthread_mutex_unlock(&l->lock);
	bell_ring(l->fd);
	return NULL;
}

/* Takes the task, also on failure. */
static int start(struct learner *l, struct task *task, struct err *err)
{
	int rc;

	if (learner_busy(l)) {
		task_release(task);
		return err_fail(err, ERR_BUSY, "a training is under way");
	}
	l->task = *task;
	l->state = LEARNER_RUNNING;
	rc = worker_start(&l->worker, run, l, "training", err);
	if (rc) {
		l->state = LEARNER_IDLE;
		task_release(&l->task);
	}
	return rc;
}

/* ---- the loop ---- */

static int copy_text(const char *s, char **out)
{
	*out = s ? mem_strdup(s) : NULL;
	return s && !*out;
}

int learner_new(const struct learner_params *p, struct learner **out, struct err *err)
{
	struct learner *l = mem_calloc(1, sizeof *l);
	int rc;

	if (!l)
		return err_nomem(err, "learning");
	l->learning = *p->learning;
	l->policy = p->policy;
	l->seed = p->seed;
	pthread_mutex_init(&l->lock, NULL);
	rc = bell_new(&l->fd, true, "learning", err);
	l->known = mem_array(VERSIONS_MAX, sizeof *l->known);
	/* each is tried, so that none is left pointing at the configuration's */
	if (copy_text(p->learning->table, &l->learning.table) +
		    copy_text(p->learning->schema, &l->learning.schema) +
		    copy_text(p->learning->curves, &l->learning.curves) +
		    copy_text(p->program, &l->program) ||
	    !l->known)
		rc = rc ? rc : err_nomem(err, "learning");
	if (!rc)
		rc = versions_open(p->folder, &l->versions, err);
	if (rc) {
		learner_free(l);
		return rc;
	}
	l->n_known = versions_list(l->versions, l->known, VERSIONS_MAX);
	l->current = versions_current(l->versions);
	*out = l;
	return 0;
}

void learner_free(struct learner *l)
{
	if (!l)
		return;
	atomic_store(&l->stop, true);
	worker_join(&l->worker);
	learner_result_release(&l->result);
	task_release(&l->task);
	versions_free(l->versions);
	bell_free(&l->fd);
	pthread_mutex_destroy(&l->lock);
	free(l->known);
	free(l->program);
	free(l->learning.table);
	free(l->learning.schema);
	free(l->learning.curves);
	free(l);
}

int learner_fd(const struct learner *l)
{
	return l->fd;
}

static enum learner_state state_of(const struct learner *l)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)&l->lock;
	enum learner_state state;

	pthread_mutex_lock(lock);
	state = l->state;
	pthread_mutex_unlock(lock);
	return state;
}

bool learner_busy(const struct learner *l)
{
	return state_of(l) != LEARNER_IDLE;
}

int learner_start(struct learner *l, char *observations, size_t len, const char *model_path,
		  const char *reason, struct err *err)
{
	struct task task = { .observations = observations, .len = len };

	snprintf(task.reason, sizeof task.reason, "%s", reason);
	if (!observations || copy_text(model_path, &task.model_path)) {
		task_release(&task);
		return err_nomem(err, "learning");
	}
	return start(l, &task, err);
}

int learner_rollback(struct learner *l, uint32_t number, const char *reason, struct err *err)
{
	struct task task = { .back_to = number };
	bool kept = number == 0;

	if (learner_busy(l))
		return err_fail(err, ERR_BUSY, "a training is under way");
	for (size_t i = 0; i < l->n_known; i++)
		kept = kept || (l->known[i].number == number && l->known[i].kept);
	if (!kept)
		return err_fail(err, ERR_NOTFOUND, "there is no model of version %u", (unsigned)number);
	snprintf(task.reason, sizeof task.reason, "%s", reason);
	return start(l, &task, err);
}

bool learner_poll(struct learner *l, struct learner_result *out)
{
	if (state_of(l) != LEARNER_DONE)
		return false;
	worker_join(&l->worker); /* it has nothing left to do but to leave */
	bell_clear(l->fd);
	*out = l->result;
	l->result = (struct learner_result){ 0 };
	l->state = LEARNER_IDLE;
	return true;
}

size_t learner_versions(struct learner *l, struct model_version *out, size_t max)
{
	size_t n;

	pthread_mutex_lock(&l->lock);
	n = l->n_known < max ? l->n_known : max;
	memcpy(out, l->known + l->n_known - n, n * sizeof *out);
	pthread_mutex_unlock(&l->lock);
	return n;
}

uint32_t learner_current(struct learner *l)
{
	uint32_t current;

	pthread_mutex_lock(&l->lock);
	current = l->current;
	pthread_mutex_unlock(&l->lock);
	return current;
}

char *learner_path(const struct learner *l, uint32_t number)
{
	return versions_path(l->versions, number);
}
