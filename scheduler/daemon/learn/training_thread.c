/* The thread that trains, and what the loop sees of it. What the thread does is in training.c. */
#define _GNU_SOURCE
#include "scheduler/daemon/learn/training_thread.h"

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
#include "scheduler/daemon/learn/training.h"

enum trainer_state { TRAINER_IDLE, TRAINER_RUNNING, TRAINER_DONE };

struct trainer {
	struct config_learning learning; /* own copies of the paths */
	struct policy_choice policy;
	char *program;
	struct schema *schema; /* NULL: the default one */
	int fd;
	atomic_bool stop;
	struct worker worker;

	/* the loop's while idle, the thread's while it runs */
	struct training_task task; /* observations and model_path are owned */
	struct versions *versions;
	struct training_result result;

	pthread_mutex_t lock; /* held for moments only, never over a system call that may wait */
	enum trainer_state state;
	struct model_version *known; /* what the loop may see of the versions; room for VERSIONS_MAX */
	size_t n_known;
	uint32_t current;
};

void training_result_release(struct training_result *r)
{
	free(r->path);
	model_free(r->model);
	*r = (struct training_result){ 0 };
}

static void task_release(struct training_task *t)
{
	free(t->observations);
	free(t->model_path);
	t->observations = t->model_path = NULL;
}

/* ---- the thread ---- */

/* What the loop may see; the list touches the disk, so it is made without the lock. */
static void publish(struct trainer *l, struct model_version *fresh)
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
	setpriority(PRIO_PROCESS, (id_t)gettid(), TRAINER_NICE);
}

static void *run(void *arg)
{
	struct trainer *l = arg;
	struct model_version *fresh = mem_array(VERSIONS_MAX, sizeof *fresh);
	struct training_result r = { 0 };
	double from_s = clock_monotonic_s();
	int rc;

	lower_priority();
	if (!fresh)
		rc = err_nomem(&r.err, "learning");
	else
		rc = l->task.observations ? training_run(&l->task, &r, &r.err)
					  : training_roll_back(&l->task, &r, &r.err);
	if (!rc)
		r.err = (struct err){ 0 };
	if (fresh)
		publish(l, fresh);
	free(fresh);
	task_release(&l->task);
	r.seconds = clock_monotonic_s() - from_s;
	l->result = r;
	pthread_mutex_lock(&l->lock);
	l->state = TRAINER_DONE;
	pthread_mutex_unlock(&l->lock);
	bell_ring(l->fd);
	return NULL;
}

/* Takes both texts, also on failure. */
static int start(struct trainer *l, char *observations, size_t len, char *model_path, uint32_t back_to,
		 const char *reason, struct err *err)
{
	int rc;

	if (trainer_busy(l)) {
		free(observations);
		free(model_path);
		return err_fail(err, ERR_BUSY, "a training is under way");
	}
	l->task.observations = observations;
	l->task.len = len;
	l->task.model_path = model_path;
	l->task.back_to = back_to;
	snprintf(l->task.reason, sizeof l->task.reason, "%s", reason);
	l->state = TRAINER_RUNNING;
	rc = worker_start(&l->worker, run, l, "training", err);
	if (rc) {
		l->state = TRAINER_IDLE;
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

int trainer_new(const struct trainer_params *p, struct trainer **out, struct err *err)
{
	struct trainer *l = mem_calloc(1, sizeof *l);
	int rc;

	if (!l) {
		schema_free(p->schema);
		return err_nomem(err, "learning");
	}
	l->schema = p->schema;
	l->learning = *p->learning;
	l->policy = p->policy;
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
		trainer_free(l);
		return rc;
	}
	l->task = (struct training_task){ .learning = &l->learning,
					  .policy = &l->policy,
					  .cores = p->cores,
					  .seed = p->seed,
					  .program = l->program ? l->program : "",
					  .schema = l->schema,
					  .stop = &l->stop,
					  .versions = l->versions };
	l->n_known = versions_list(l->versions, l->known, VERSIONS_MAX);
	l->current = versions_current(l->versions);
	*out = l;
	return 0;
}

void trainer_free(struct trainer *l)
{
	if (!l)
		return;
	atomic_store(&l->stop, true);
	worker_join(&l->worker);
	training_result_release(&l->result);
	task_release(&l->task);
	versions_free(l->versions);
	bell_free(&l->fd);
	pthread_mutex_destroy(&l->lock);
	free(l->known);
	free(l->program);
	schema_free(l->schema);
	free(l->learning.table);
	free(l->learning.schema);
	free(l->learning.curves);
	free(l);
}

int trainer_fd(const struct trainer *l)
{
	return l->fd;
}

static enum trainer_state state_of(const struct trainer *l)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)&l->lock;
	enum trainer_state state;

	pthread_mutex_lock(lock);
	state = l->state;
	pthread_mutex_unlock(lock);
	return state;
}

bool trainer_busy(const struct trainer *l)
{
	return state_of(l) != TRAINER_IDLE;
}

int trainer_start(struct trainer *l, char *observations, size_t len, const char *model_path,
		  const char *reason, struct err *err)
{
	char *path;

	if (!observations || copy_text(model_path, &path)) {
		free(observations);
		return err_nomem(err, "learning");
	}
	return start(l, observations, len, path, 0, reason, err);
}

int trainer_rollback(struct trainer *l, uint32_t number, const char *reason, struct err *err)
{
	bool kept = number == 0;

	if (trainer_busy(l))
		return err_fail(err, ERR_BUSY, "a training is under way");
	for (size_t i = 0; i < l->n_known; i++)
		kept = kept || (l->known[i].number == number && l->known[i].kept);
	if (!kept)
		return err_fail(err, ERR_NOTFOUND, "there is no model of version %u", (unsigned)number);
	return start(l, NULL, 0, NULL, number, reason, err);
}

bool trainer_poll(struct trainer *l, struct training_result *out)
{
	if (state_of(l) != TRAINER_DONE)
		return false;
	worker_join(&l->worker); /* it has nothing left to do but to leave */
	bell_clear(l->fd);
	*out = l->result;
	l->result = (struct training_result){ 0 };
	l->state = TRAINER_IDLE;
	return true;
}

size_t trainer_versions(struct trainer *l, struct model_version *out, size_t max)
{
	size_t n;

	pthread_mutex_lock(&l->lock);
	n = l->n_known < max ? l->n_known : max;
	memcpy(out, l->known + l->n_known - n, n * sizeof *out);
	pthread_mutex_unlock(&l->lock);
	return n;
}

uint32_t trainer_current(struct trainer *l)
{
	uint32_t current;

	pthread_mutex_lock(&l->lock);
	current = l->current;
	pthread_mutex_unlock(&l->lock);
	return current;
}

char *trainer_path(const struct trainer *l, uint32_t number)
{
	return versions_path(l->versions, number);
}
