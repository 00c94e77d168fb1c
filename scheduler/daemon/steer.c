/* Jobs that ask after each epoch how to go on: the scheduler decides (core/steer.h), the life of the job
 * writes it down (jobs/life.h), and this file tells the job. See daemon.h.
 *
 * A job hears of it by a file in its folder that is replaced as a whole (process/record_format.h). A job that
 * is not listening reads nothing, a daemon that is away writes nothing, and both go on with what was there.
 * The folder may be on a network, and nothing in the loop waits for a disk: a thread writes the files, as the
 * user of the job, who could put a link in their place. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/orders.h"
#include "scheduler/daemon/daemon.h"

#define NEW JOB_NEXT ".new"
#define REST_TIMES                                                                                           \
	3.0 /* after an answer, as long as it took: at most a quarter of the loop's time is for them */

/* ---- the files ---- */

struct answer {
	struct order order; /* first */
	uint64_t job;
	uid_t uid;
	gid_t gid;
	char dir[4096];
	char text[JOB_NEXT_MAX + 64];
	int error; /* 0: it is there */
};

struct steer {
	struct orders orders;
	struct event *written;
	struct daemon *d;
	double free_us; /* until then reports are not answered */
	bool told; /* the log says that a file could not be written */
};

static int write_whole(int fd, const char *text)
{
	size_t len = strlen(text);

	return write(fd, text, len) == (ssize_t)len ? 0 : errno ? errno : ENOSPC;
}

static int replace(int dir, const char *text)
{
	int fd, error;

	unlinkat(dir, NEW, 0); /* of a daemon that was killed */
	fd = openat(dir, NEW, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	errno = 0;
	error = write_whole(fd, text);
	close(fd);
	if (!error && renameat(dir, NEW, dir, JOB_NEXT))
		error = errno;
	if (error)
		unlinkat(dir, NEW, 0);
	return error;
}

/* In the thread, whose user for files is its own. */
static void carry_out_answer(struct orders *q, struct order *order)
{
	struct answer *a = (struct answer *)order;
	bool root = geteuid() == 0;
	int dir;

	(void)q;
	if (root) {
		setfsgid(a->gid);
		setfsuid(a->uid);
	}
	dir = open(a->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	a->error = dir < 0 ? errno : replace(dir, a->text);
	if (dir >= 0)
		close(dir);
	if (root) {
		setfsuid(0);
		setfsgid(0);
	}
}

static void free_answer(struct order *o)
{
	free(o);
}

void steer_answer(struct daemon *d, struct job *job)
{
	struct answer *a;
	struct next next;
	char line[JOB_NEXT_MAX + 1];

	if (!d->steer || life_advised(job)) /* its owner asks by a request */
		return;
	job->steering.again = job->steering.writing; /* one at a time: a folder may be slow */
	if (job->steering.writing || !(a = mem_calloc(1, sizeof *a)))
		return;
	job_next(job, &next);
	a->job = job->id;
	a->uid = job->row.uid;
	a->gid = job->row.gid;
	carry_dir(d, job, a->dir, sizeof a->dir);
	snprintf(a->text, sizeof a->text, "%s\n" JOB_NEXT_AFTER "%.0f\n", next_line(&next, line), next.after);
	job->steering.writing = true;
	orders_add(&d->steer->orders, &a->order);
}

static void on_written(evutil_socket_t fd, short what, void *owner)
{
	struct steer *s = owner;
	struct order *list = orders_returned(&s->orders), *order;

	(void)fd;
	(void)what;
	while ((order = order_next(&list))) {
		const struct answer *a = (const struct answer *)order;
		struct job *job = jobs_find(&s->d->jobs, a->job);

		if (a->error && !s->told)
			log_warn("job %llu goes on with its batch: cannot write %s/" JOB_NEXT ": %s",
				 (unsigned long long)a->job, a->dir, strerror(a->error));
		s->told |= a->error != 0;
		if (job)
			job->steering.writing = false;
		if (job && job->steering.again)
			steer_answer(s->d, job);
		free(order);
	}
}

int steer_new(struct daemon *d, struct err *err)
{
	static const struct orders_work work = { .carry_out = carry_out_answer, .free = free_answer };
	struct steer *s = mem_calloc(1, sizeof *s);
	int rc = s ? orders_start(&s->orders, &work, "answers to jobs", err)
		   : err_nomem(err, "answers to jobs");

	if (rc) {
		free(s);
		return rc;
	}
	s->d = d;
	d->steer = s;
	s->written = event_new(d->base, orders_fd(&s->orders), EV_READ | EV_PERSIST, on_written, s);
	if (!s->written || event_add(s->written, NULL))
		return err_nomem(err, "answers to jobs");
	return 0;
}

void steer_free(struct daemon *d)
{
	struct steer *s = d->steer;

	if (!s)
		return;
	if (s->written)
		event_free(s->written);
	orders_stop(&s->orders);
	free(s);
	d->steer = NULL;
}

/* ---- the answers ---- */

bool steer_has_time(const struct daemon *d)
{
	return !d->steer || clock_monotonic_us() >= d->steer->free_us;
}

/* It does not do as it is told: what it does is what is known of it from now on. */
static void let_go(const struct job *job, const struct life_progress *p, struct job_change *c)
{
	log_warn("job %llu says that it trains with batch %g and was told %g; it is not steered any more",
		 (unsigned long long)job->id, p->batch, c->next.batch);
	c->next.batch = p->batch;
	c->next.lr = job->type ? job_type_lr(job->type, p->batch) : NAN;
	snprintf(c->why, sizeof c->why, JOB_NOT_FOLLOWED);
}

static bool decide_again(struct daemon *d, const struct job *job, const struct life_progress *p,
			 int64_t now_ns, struct job_change *c)
{
	struct steer_report r = { .epoch = (uint32_t)p->epoch,
				  .epochs = (uint32_t)p->epochs,
				  .accuracy = p->accuracy };
	struct steer_answer a;

	if (sched_steer(d->sched, now_ns, job->id, &r, &a, NULL))
		return false;
	if (!a.changed)
		return false;
	c->next.batch = a.batch;
	c->next.lr = a.lr;
	c->next.last = a.last;
	c->end_s = a.end_s;
	c->end_upper_s = a.end_upper_s;
	c->accuracy = a.accuracy;
	snprintf(c->why, sizeof c->why, "%s", steer_reason_name(a.reason));
	if (a.reason >= STEER_FASTER)
		d->tally.steered[a.reason - STEER_FASTER]++;
	return true;
}

void steer_ask(struct daemon *d, struct job *job, const struct life_progress *p)
{
	double before_us = clock_monotonic_us();
	struct life_event e = carry_event(d, LIFE_STEERED, job);
	struct job_change c = { .end_s = NAN, .end_upper_s = NAN, .accuracy = NAN, .at_ns = e.now_ns };
	char kept[STEER_TEXT] = "";

	if (!(p->epoch >= 1.0 && p->epochs >= p->epoch && p->epochs <= UINT32_MAX))
		return;
	job_next(job, &c.next);
	if (life_steers(job) && job_steer_deaf(job, p->batch)) {
		let_go(job, p, &c);
		e.changed = true;
	} else if (life_steers(job)) {
		e.changed = decide_again(d, job, p, e.now_ns, &c);
	}
	c.next.after = p->epoch;
	e.change = &c;
	e.kept = sched_steer_kept(d->sched, job->id, kept);
	carry_out(d, &e, NULL);
	if (d->steer)
		d->steer->free_us = clock_monotonic_us() + REST_TIMES * (clock_monotonic_us() - before_us);
}
