/* Shared by the tests of the executors: an executor on a loop of its own, and what it told. */
#ifndef TESTS_UNIT_DAEMON_TEST_EXEC_HARNESS_H
#define TESTS_UNIT_DAEMON_TEST_EXEC_HARNESS_H

#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/io.h"
#include "common/mem.h"
#include "scheduler/daemon/exec/executor.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

#define MAX_TOLD 512
#define PATIENCE_S 30.0 /* for a loaded machine under a sanitizer; a test that passes does not wait */

struct told {
	uint64_t id;
	unsigned n_started, n_delayed, n_progress, n_finished;
	char delayed[256];
	int64_t started_ns;
	pid_t pid;
	double started_after_s; /* from the world's birth */
	struct exec_progress progress[16]; /* the first ones */
	struct exec_outcome outcome;
};

struct world {
	struct event_base *base;
	const struct executor_ops *ops;
	void *self;
	double born_s;
	bool inside; /* of a call to the executor: nothing may be told now */
	struct told told[MAX_TOLD];
	size_t n_told, n_finished, n_started, n_delayed;
};

static inline double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int64_t real_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static inline struct told *told_of(struct world *w, uint64_t id)
{
	for (size_t i = 0; i < w->n_told; i++) {
		if (w->told[i].id == id)
			return &w->told[i];
	}
	if (w->n_told == MAX_TOLD)
		abort();
	w->told[w->n_told].id = id;
	return &w->told[w->n_told++];
}

static inline void on_started(void *owner, uint64_t id, int64_t at_ns, pid_t pid)
{
	struct world *w = owner;
	struct told *t = told_of(w, id);

	assert_false(w->inside);
	assert_int_equal(t->n_finished, 0); /* the start comes first */
	t->n_started++;
	t->started_ns = at_ns;
	t->pid = pid;
	t->started_after_s = now_s() - w->born_s;
	w->n_started++;
}

static inline void on_delayed(void *owner, uint64_t id, const char *why)
{
	struct world *w = owner;
	struct told *t = told_of(w, id);

	assert_false(w->inside);
	assert_int_equal(t->n_started + t->n_finished, 0); /* nothing ran */
	t->n_delayed++;
	snprintf(t->delayed, sizeof t->delayed, "%s", why);
	w->n_delayed++;
}

static inline void on_progress(void *owner, const struct exec_progress *p)
{
	struct world *w = owner;
	struct told *t = told_of(w, p->id);

	assert_false(w->inside);
	assert_int_equal(t->n_finished, 0);
	if (t->n_progress < sizeof t->progress / sizeof t->progress[0])
		t->progress[t->n_progress] = *p;
	t->n_progress++;
}

static inline void on_finished(void *owner, const struct exec_outcome *o)
{
	struct world *w = owner;
	struct told *t = told_of(w, o->id);

	assert_false(w->inside);
	t->n_finished++;
	t->outcome = *o;
	w->n_finished++;
}

static inline struct world *world_new(const char *mode)
{
	struct world *w = calloc(1, sizeof *w);
	struct executor_sink sink = {
		.owner = w, .started = on_started, .delayed = on_delayed, .progress = on_progress,
		.finished = on_finished
	};
	struct err err = { 0 };

	assert_non_null(w);
	support_find_supervisor();
	w->base = event_base_new();
	assert_non_null(w->base);
	w->ops = executor_find(mode);
	assert_non_null(w->ops);
	if (w->ops->create(w->base, &sink, &w->self, &err))
		fail_msg("%s", err.text);
	w->born_s = now_s();
	return w;
}

static inline void world_free(struct world *w)
{
	w->ops->destroy(w->self);
	event_base_free(w->base);
	free(w);
}

static inline void turn(struct world *w, double s)
{
	struct timeval t = { .tv_sec = (time_t)s, .tv_usec = (suseconds_t)(1e6 * (s - floor(s))) };

	event_base_loopexit(w->base, &t);
	event_base_dispatch(w->base);
}

static inline void wait_finished(struct world *w, size_t n)
{
	double until_s = now_s() + PATIENCE_S;

	while (w->n_finished < n) {
		if (now_s() > until_s)
			fail_msg("%zu of %zu jobs finished", w->n_finished, n);
		turn(w, 0.01);
	}
}

static inline void wait_started(struct world *w, size_t n)
{
	double until_s = now_s() + PATIENCE_S;

	while (w->n_started < n) {
		if (now_s() > until_s)
			fail_msg("%zu of %zu jobs started", w->n_started, n);
		turn(w, 0.005);
	}
}

/* A fresh folder for jobs; DIR/ID is a job's. In a ring of buffers. */
static inline const char *jobs_dir(void)
{
	static char path[8][512];
	static unsigned n;
	char *p = path[n % 8];

	snprintf(p, sizeof path[0], "%s/jobs-%d-%u", support_temp_dir(), (int)getpid(), n++);
	if (mkdir(p, 0755) || chmod(support_temp_dir(), 0755))
		fail_msg("%s: %s", p, strerror(errno));
	return p;
}

static struct job_type plain_type = { 0 };

struct job_spec {
	struct exec_job job;
	char dir[600];
	char *argv[8];
};

static inline struct job_spec spec_of(const char *jobs, uint64_t id, const char *script)
{
	struct job_spec s = { 0 };

	snprintf(s.dir, sizeof s.dir, "%s/%llu", jobs, (unsigned long long)id);
	s.argv[0] = "/bin/sh";
	s.argv[1] = "-c";
	s.argv[2] = (char *)script;
	s.job = (struct exec_job){ .id = id,
				   .type = &plain_type,
				   .uid = getuid(),
				   .gid = getgid(),
				   .cpus = 1,
				   .epochs = NAN,
				   .kill_grace_s = 0.3 };
	return s;
}

static inline int start_spec(struct world *w, struct job_spec *s, struct err *err)
{
	int rc;

	s->job.dir = s->dir;
	s->job.argv = s->argv;
	w->inside = true;
	rc = w->ops->start(w->self, &s->job, err);
	w->inside = false;
	return rc;
}

static inline void start_script(struct world *w, const char *jobs, uint64_t id, const char *script)
{
	struct job_spec s = spec_of(jobs, id, script);
	struct err err = { 0 };

	if (start_spec(w, &s, &err))
		fail_msg("%s", err.text);
}

static inline int adopt_job(struct world *w, const char *jobs, uint64_t id, bool *out_unstarted,
			    struct err *err)
{
	struct job_spec s = spec_of(jobs, id, "");
	int rc;

	s.job.dir = s.dir;
	s.job.argv = NULL;
	w->inside = true;
	rc = w->ops->adopt(w->self, &s.job, out_unstarted, err);
	w->inside = false;
	return rc;
}

static inline void must_adopt(struct world *w, const char *jobs, uint64_t id)
{
	struct err err = { 0 };
	bool unstarted = true;

	if (adopt_job(w, jobs, id, &unstarted, &err))
		fail_msg("%s", err.text);
	assert_false(unstarted);
}

/* Runs one script to its end; the outcome stays valid until the world is freed. */
static inline struct told *run_script(struct world *w, const char *script)
{
	static uint64_t id = 1000;
	size_t before = w->n_finished;

	start_script(w, jobs_dir(), ++id, script);
	wait_finished(w, before + 1);
	return told_of(w, id);
}

static inline char *file_text(const char *path)
{
	static char text[4][65536];
	static unsigned n;
	char *t = text[n++ % 4];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, t, sizeof text[0] - 1);

	if (fd >= 0)
		close(fd);
	t[got < 0 ? 0 : got] = '\0';
	return t;
}

static inline const char *in_job(const char *jobs, uint64_t id, const char *name)
{
	static char path[4][1024];
	static unsigned n;
	char *p = path[n++ % 4];

	snprintf(p, sizeof path[0], "%s/%llu%s", jobs, (unsigned long long)id, name);
	return p;
}

static inline void put_text(const char *path, const char *text, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static inline size_t count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Gone, or dead and not reaped yet. */
static inline bool is_dead(pid_t pid)
{
	char path[64], *after, *text;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	text = file_text(path);
	after = strrchr(text, ')');
	return !after || after[2] == 'Z';
}

static inline bool dies_within(pid_t pid, double s)
{
	double until_s = now_s() + s;

	while (!is_dead(pid)) {
		if (now_s() > until_s)
			return false;
		usleep(5000);
	}
	return true;
}

static inline pid_t pid_in_file(const char *path)
{
	double until_s = now_s() + PATIENCE_S;

	while (!strchr(file_text(path), '\n')) {
		if (now_s() > until_s)
			fail_msg("nothing in %s", path);
		usleep(5000);
	}
	return (pid_t)atoi(file_text(path));
}

static inline int stop_job(struct world *w, uint64_t id, double grace_s)
{
	struct err err = { 0 };
	int rc;

	w->inside = true;
	rc = w->ops->stop(w->self, id, grace_s, &err);
	w->inside = false;
	return rc;
}

static inline void wait_for_file(const char *path)
{
	double until_s = now_s() + PATIENCE_S;

	while (access(path, F_OK)) {
		if (now_s() > until_s)
			fail_msg("%s does not come", path);
		usleep(2000);
	}
}

static inline long long number_after(const char *text, const char *key, int skip)
{
	const char *at = strstr(text, key);

	assert_non_null(at);
	at += strlen(key);
	while (skip-- > 0)
		at = strchr(at, ' ') + 1;
	return atoll(at);
}

static inline pid_t supervisor_of(const char *jobs, uint64_t id)
{
	return (pid_t)number_after(file_text(in_job(jobs, id, ".started")), "\nsupervisor ", 0);
}

#endif
