/* Watches logs by inotify. See wake.h. */
#include "scheduler/daemon/exec/wake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"

/* From one tick to the next. */
#define LOOKS 16 /* at one job */
#define ALL_LOOKS 512
#define ALL_BYTES (128 << 10)

struct watched {
	uint64_t job;
	int fd; /* the job's */
	int watch; /* -1: not until the next tick */
	unsigned looks;
};

struct wakes {
	int fd;
	struct event *event;
	wake_fn *fn;
	void *owner;
	struct watched *item;
	size_t n, cap, looks, bytes;
	bool told;
};

/* By the descriptor: the user may have put something else where the log was. */
static void watch(struct wakes *w, struct watched *x)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/self/fd/%d", x->fd);
	x->watch = inotify_add_watch(w->fd, path, IN_MODIFY);
	if (x->watch < 0 && !w->told)
		log_warn("jobs that ask how to go on are answered late: cannot watch a log: %s",
			 strerror(errno));
	w->told |= x->watch < 0;
}

static void rest(struct wakes *w, struct watched *x)
{
	if (x->watch >= 0)
		inotify_rm_watch(w->fd, x->watch);
	x->watch = -1;
}

static struct watched *find(struct wakes *w, uint64_t job)
{
	for (size_t i = 0; i < w->n; i++) {
		if (w->item[i].job == job)
			return &w->item[i];
	}
	return NULL;
}

static void grew(struct wakes *w, int at)
{
	for (size_t i = 0; i < w->n; i++) {
		struct watched *x = &w->item[i];

		if (x->watch != at)
			continue;
		w->looks++;
		if (++x->looks >= LOOKS)
			rest(w, x);
		w->bytes += w->fn(w->owner, x->job); /* it may drop jobs: x is not used after this */
		return;
	}
}

static void on_grown(evutil_socket_t fd, short what, void *owner)
{
	char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	struct wakes *w = owner;
	ssize_t len = read(fd, buf, sizeof buf);

	(void)what;
	for (ssize_t at = 0; at < len;) {
		const struct inotify_event *e = (const void *)(buf + at);

		if (e->mask & IN_MODIFY)
			grew(w, e->wd);
		at += (ssize_t)(sizeof *e + e->len);
	}
	if (w->looks >= ALL_LOOKS || w->bytes >= ALL_BYTES)
		event_del(w->event);
}

int wakes_new(struct event_base *base, wake_fn *fn, void *owner, struct wakes **out, struct err *err)
{
	struct wakes *w = mem_calloc(1, sizeof *w);

	*out = NULL;
	if (!w)
		return err_nomem(err, "the logs of jobs");
	w->fn = fn;
	w->owner = owner;
	w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	w->event = w->fd >= 0 ? event_new(base, w->fd, EV_READ | EV_PERSIST, on_grown, w) : NULL;
	if (w->event && !event_add(w->event, NULL)) {
		*out = w;
		return 0;
	}
	log_warn("jobs that ask how to go on are answered late: cannot watch logs: %s", strerror(errno));
	wakes_free(w);
	return 0;
}

void wakes_free(struct wakes *w)
{
	if (!w)
		return;
	if (w->event)
		event_free(w->event);
	if (w->fd >= 0)
		close(w->fd);
	free(w->item);
	free(w);
}

void wakes_add(struct wakes *w, uint64_t job, int fd)
{
	if (!w || fd < 0 || find(w, job) || mem_grow((void **)&w->item, &w->cap, w->n + 1, sizeof *w->item))
		return;
	w->item[w->n] = (struct watched){ .job = job, .fd = fd };
	watch(w, &w->item[w->n++]);
}

void wakes_drop(struct wakes *w, uint64_t job)
{
	struct watched *x = w ? find(w, job) : NULL;

	if (!x)
		return;
	rest(w, x);
	*x = w->item[--w->n];
}

void wakes_tick(struct wakes *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->n; i++) {
		w->item[i].looks = 0;
		if (w->item[i].watch < 0)
			watch(w, &w->item[i]);
	}
	if (w->looks >= ALL_LOOKS || w->bytes >= ALL_BYTES)
		event_add(w->event, NULL);
	w->looks = w->bytes = 0;
}
