#define _GNU_SOURCE
#include "scheduler/daemon/learner.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/text.h"
#include "scheduler/core/paired.h"
#include "scheduler/daemon/learner_train.h"

#define NO_ANSWER 1e-3 /* of the time it took */

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
	pthread_t thread;

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

static int nomem(struct err *err)
{
	return err_fail(err, ERR_NOMEM, "out of memory for learning");
}

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

/* ---- the thread: a training ---- */

struct training {
	const struct learner *l;
	const struct task *task;
	struct model *current;
	struct schema *schema;
	struct learner_plan plan;
	struct learner_base base;
	struct csv *observations;
	uint32_t *row; /* usable observations, the latest at the end */
	size_t n_rows, n_unusable;
};

static void training_release(struct training *t)
{
	free(t->row);
	csv_free(t->observations);
	learner_base_release(&t->base);
	schema_free(t->schema);
	model_free(t->current);
}

/* The schema to train under: the operator's, that of the model in use, or the default; as the policy wants it. */
static int find_schema(struct training *t, struct err *err)
{
	const struct config_learning *c = &t->l->learning;
	struct schema *given = NULL;
	int rc = 0;

	if (c->schema)
		rc = schema_read_file(c->schema, &given, err);
	else if (!t->current)
		rc = schema_default(&given, err);
	if (!rc)
		rc = policy_schema(t->l->policy.policy, given ? given : t->current->schema, &t->schema, err);
	schema_free(given);
	return rc;
}

static int find_rows(struct training *t, struct err *err)
{
	size_t n = t->observations->n_rows;
	bool *good = mem_array(n, sizeof *good);
	int rc = good ? 0 : nomem(err);

	t->row = mem_array(n, sizeof *t->row);
	if (!t->row)
		rc = nomem(err);
	for (size_t i = 0; !rc && i < n; i++)
		good[i] = true;
	if (!rc)
		rc = learner_usable(t->observations, t->schema, good, err);
	if (!rc && t->current)
		rc = learner_usable(t->observations, t->current->schema, good, err);
	for (size_t i = 0; !rc && i < n; i++) {
		if (good[i])
			t->row[t->n_rows++] = (uint32_t)i;
		else
			t->n_unusable++;
	}
	if (t->n_rows > LEARNER_MAX_OBSERVATIONS) {
		memmove(t->row, t->row + t->n_rows - LEARNER_MAX_OBSERVATIONS,
			LEARNER_MAX_OBSERVATIONS * sizeof *t->row);
		t->n_rows = LEARNER_MAX_OBSERVATIONS;
	}
	free(good);
	return rc;
}

static int prepare(struct training *t, struct err *err)
{
	const struct config_learning *c = &t->l->learning;
	const struct task *k = t->task;
	int rc = 0;

	if (k->model_path)
		rc = model_load(k->model_path, &t->current, err);
	if (!rc)
		rc = find_schema(t, err);
	if (!rc)
		rc = learner_plan_make(t->l->policy.policy, t->current, c->curves != NULL, &t->plan, err);
	if (!rc)
		rc = learner_base_read(c->table, c->curves, t->schema, &t->base, err);
	if (!rc)
		rc = csv_parse("observations", k->len ? k->observations : "time_s\n",
			       k->len ? k->len : strlen("time_s\n"), &t->observations, err);
	if (!rc)
		rc = find_rows(t, err);
	return rc;
}

/* How many of the latest jobs the models are compared on; 0: there is nothing to compare with. ERR_NODATA: so few that
 * not even all of them could show anything. */
static int count_tests(const struct training *t, size_t *out, struct err *err)
{
	const struct config_learning *c = &t->l->learning;
	size_t rows = t->n_rows + (t->base.runs ? t->base.runs->n_rows : 0);
	size_t n = t->n_rows / 2 < c->test_jobs ? t->n_rows / 2 : c->test_jobs;

	*out = 0;
	if (rows < c->min_observations)
		return err_fail(err, ERR_NODATA, "%zu runs and observations to learn from; %zu are needed",
				rows, c->min_observations);
	if (!t->current)
		return 0;
	if (exp2(-(double)n) >= c->significance)
		return err_fail(
			err, ERR_NODATA,
			"%zu observations: too few to tell whether a new model is better than the one in use",
			t->n_rows);
	*out = n;
	return 0;
}

/* Both models on the last n observations. The times to predict are in `said`: actual, old, new, each by row. */
static int predict_both(const struct training *t, size_t n, double *said, struct err *err)
{
	const uint32_t *last = t->row + t->n_rows - n;
	struct learner_table old = { 0 }, fresh = { 0 }, rest = { 0 };
	int rc = learner_table_make(NULL, t->observations, last, n, t->current->schema, &old, err);

	if (!rc)
		rc = learner_table_make(NULL, t->observations, last, n, t->schema, &fresh, err);
	if (!rc)
		rc = learner_table_make(&t->base, t->observations, t->row, t->n_rows - n, t->schema, &rest,
					err);
	for (size_t i = 0; i < 3 * n; i++)
		said[i] = NAN;
	if (!rc)
		rc = learner_ask(t->current, old.table, said + n, err);
	if (!rc)
		rc = learner_trial(&t->plan, &rest, fresh.table, t->l->seed, &t->l->stop, said + 2 * n, err);
	for (size_t i = 0; !rc && i < fresh.table->n_rows; i++)
		said[fresh.table->row[i]] = fresh.table->time[i];
	learner_table_release(&old);
	learner_table_release(&fresh);
	learner_table_release(&rest);
	return rc;
}

/* A model without an answer (an unstable queue), or with one that no job can have, is as wrong as can be; left out of the
 * comparison it would have got away with it. */
static void punish(const double *actual, double *said, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (actual[i] > 0.0 && !(said[i] > 0.0 && isfinite(said[i])))
			said[i] = NO_ANSWER * actual[i];
	}
}

static int compare(const struct training *t, size_t n, struct model_version *v, struct err *err)
{
	double *said = mem_array(4 * n, sizeof *said);
	struct paired_jobs jobs = { .n = n, .actual_s = said, .old_s = said + n, .new_s = said + 2 * n };
	struct paired_result result;
	int rc = said ? predict_both(t, n, said, err) : nomem(err);

	if (!rc) {
		punish(said, said + n, n);
		punish(said, said + 2 * n, n);
		rc = paired_compare(&jobs, said + 3 * n, &result, err);
	}
	free(said);
	if (rc)
		return rc;
	v->tested = result.n;
	v->old_error = result.old_error;
	v->new_error = result.new_error;
	v->p = result.p;
	return 0;
}

/* Everything, bounds included, into a file and back. */
static int train_and_save(struct training *t, const char *path, struct model_version *v, struct model **out,
			  struct err *err)
{
	struct learner_table all = { 0 };
	struct model *trained = NULL, *back = NULL;
	int rc = learner_table_make(&t->base, t->observations, t->row, t->n_rows, t->schema, &all, err);

	if (!rc)
		rc = learner_train(&t->plan, &all, t->l->seed, "runs and observations", v->created,
				   t->l->program ? t->l->program : "", &t->l->stop, &trained, err);
	if (!rc)
		rc = policy_accepts(&t->l->policy, trained, err);
	if (!rc) {
		rc = model_save(trained, path, err);
		if (!rc) /* what is used from now on is what a restart will find */
			rc = model_load(path, &back, err);
		if (!rc)
			rc = model_compile(back, err);
		if (rc)
			unlink(path);
	}
	if (!rc) {
		v->rows = all.table->n_rows;
		*out = back;
		back = NULL;
	}
	model_free(back);
	model_free(trained);
	learner_table_release(&all);
	return rc;
}

static void describe(const struct training *t, struct model_version *v)
{
	char unusable[64] = "";

	if (t->n_unusable)
		snprintf(unusable, sizeof unusable, "; %zu observations could not be used", t->n_unusable);
	if (!v->tested)
		snprintf(v->message, sizeof v->message, "the first model, from %zu rows%s", v->rows,
			 unusable);
	else
		snprintf(v->message, sizeof v->message,
			 "on the last %zu jobs the new model is off by %.1f %% where the old one is by %.1f "
			 "%% (p %.2g): "
			 "%s%s",
			 v->tested, 100.0 * expm1(v->new_error), 100.0 * expm1(v->old_error), v->p,
			 v->accepted ? "taken" : "not taken", unusable);
}

static void now_text(char *out, size_t size)
{
	struct timespec now;
	char text[40];

	clock_gettime(CLOCK_REALTIME, &now);
	text_utc((int64_t)now.tv_sec * 1000000000 + now.tv_nsec, text);
	snprintf(out, size, "%.31s", text);
}

static void version_begin(const struct learner *l, struct model_version *v)
{
	*v = (struct model_version){ .number = versions_next(l->versions),
				     .rolled_back_to = UINT32_MAX,
				     .old_error = NAN,
				     .new_error = NAN,
				     .p = NAN };
	now_text(v->created, sizeof v->created);
	snprintf(v->reason, sizeof v->reason, "%s", l->task.reason);
}

static int learn(struct learner *l, struct learner_result *r, struct err *err)
{
	struct training t = { .l = l, .task = &l->task };
	struct model_version v;
	struct model *model = NULL;
	char *path = NULL;
	size_t tests = 0;
	int rc = prepare(&t, err);

	version_begin(l, &v);
	if (!rc)
		rc = count_tests(&t, &tests, err);
	if (!rc && tests)
		rc = compare(&t, tests, &v, err);
	v.observations = t.n_rows;
	v.rows = t.n_rows + (t.base.runs ? t.base.runs->n_rows : 0);
	v.accepted = !tests || v.p < l->learning.significance;
	if (!rc && v.accepted && !(path = versions_path(l->versions, v.number)))
		rc = nomem(err);
	if (!rc && v.accepted)
		rc = train_and_save(&t, path, &v, &model, err);
	if (!rc) {
		describe(&t, &v);
		rc = versions_add(l->versions, &v, err);
		if (rc && v.accepted)
			unlink(path); /* nobody would know where it came from */
	}
	training_release(&t);
	if (rc || !v.accepted) {
		free(path);
		model_free(model);
	} else {
		r->path = path;
		r->model = model;
		versions_prune(l->versions, l->learning.keep_versions);
	}
	if (!rc) {
		r->accepted = v.accepted;
		r->version = v;
	}
	return rc;
}

/* ---- the thread: a rollback ---- */

static int roll_back(struct learner *l, struct learner_result *r, struct err *err)
{
	uint32_t to = l->task.back_to;
	struct model *model = NULL;
	struct model_version v;
	char *path = to ? versions_path(l->versions, to) : NULL;
	int rc = to && !path ? nomem(err) : 0;

	if (!rc && to)
		rc = model_load(path, &model, err);
	if (!rc && to)
		rc = policy_accepts(&l->policy, model, err);
	if (!rc && to)
		rc = model_compile(model, err);
	version_begin(l, &v);
	v.rolled_back_to = to;
	if (to)
		snprintf(v.message, sizeof v.message, "back to version %u", (unsigned)to);
	else
		snprintf(v.message, sizeof v.message, "back to the configuration's model");
	if (!rc)
		rc = versions_add(l->versions, &v, err);
	if (rc) {
		free(path);
		model_free(model);
		return rc;
	}
	*r = (struct learner_result){ .accepted = true, .version = v, .path = path, .model = model };
	return 0;
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

static double monotonic_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *run(void *arg)
{
	struct learner *l = arg;
	struct model_version *fresh = mem_array(VERSIONS_MAX, sizeof *fresh);
	struct learner_result r = { 0 };
	double from_s = monotonic_s();
	uint64_t one = 1;
	ssize_t ignored;
	int rc;

	lower_priority();
	if (!fresh)
		rc = nomem(&r.err);
	else
		rc = l->task.observations ? learn(l, &r, &r.err) : roll_back(l, &r, &r.err);
	if (!rc)
		r.err = (struct err){ 0 };
	if (fresh)
		publish(l, fresh);
	free(fresh);
	task_release(&l->task);
	r.seconds = monotonic_s() - from_s;
	l->result = r;
	pthread_mutex_lock(&l->lock);
	l->state = LEARNER_DONE;
	pthread_mutex_unlock(&l->lock);
	ignored = write(l->fd, &one, sizeof one);
	(void)ignored;
	return NULL;
}

/* Without signals: they are the loop's. Takes the task, also on failure. */
static int start(struct learner *l, struct task *task, struct err *err)
{
	sigset_t all, before;
	int rc;

	if (learner_busy(l)) {
		task_release(task);
		return err_fail(err, ERR_BUSY, "a training is under way");
	}
	l->task = *task;
	l->state = LEARNER_RUNNING;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&l->thread, NULL, run, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!rc)
		return 0;
	l->state = LEARNER_IDLE;
	task_release(&l->task);
	return err_fail(err, ERR_IO, "no thread to train in: %s", strerror(rc));
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
	int rc = 0;

	if (!l)
		return nomem(err);
	l->learning = *p->learning;
	l->policy = p->policy;
	l->seed = p->seed;
	pthread_mutex_init(&l->lock, NULL);
	l->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->fd < 0)
		rc = err_fail(err, ERR_IO, "no descriptor for learning: %s", strerror(errno));
	l->known = mem_array(VERSIONS_MAX, sizeof *l->known);
	/* each is tried, so that none is left pointing at the configuration's */
	if (copy_text(p->learning->table, &l->learning.table) +
		    copy_text(p->learning->schema, &l->learning.schema) +
		    copy_text(p->learning->curves, &l->learning.curves) +
		    copy_text(p->program, &l->program) ||
	    !l->known)
		rc = rc ? rc : nomem(err);
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
	if (learner_busy(l))
		pthread_join(l->thread, NULL);
	learner_result_release(&l->result);
	task_release(&l->task);
	versions_free(l->versions);
	if (l->fd >= 0)
		close(l->fd);
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
		return nomem(err);
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
	uint64_t n;
	ssize_t ignored;

	if (state_of(l) != LEARNER_DONE)
		return false;
	pthread_join(l->thread, NULL); /* it has nothing left to do but to leave */
	ignored = read(l->fd, &n, sizeof n);
	(void)ignored;
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
