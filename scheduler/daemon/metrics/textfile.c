/* The metrics as a file that node_exporter's textfile collector reads. The loop writes the text into memory,
 * a thread brings it to the file: the loop never waits for a disk. See metrics.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/worker.h"
#include "scheduler/daemon/daemon.h"

#define EVERY_S 5

struct textfile {
	struct daemon *d;
	struct event *timer;
	struct worker worker;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	char path[PATH_MAX], fresh[PATH_MAX];
	/* under the lock */
	char *text;
	size_t len; /* to be written; NULL: nothing is */
	bool stop;
	/* the thread's */
	bool failed;
};

/* 0, or an errno. Others may read it; it is not synced, because after a crash its numbers are of no use. */
static int write_text(const struct textfile *t, const char *text, size_t len)
{
	int fd = open(t->fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600), error = 0;
	size_t done = 0;

	if (fd < 0 && errno == EEXIST && unlink(t->fresh) == 0) /* of a daemon that was killed */
		fd = open(t->fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return errno;
	while (!error && done < len) {
		ssize_t n = write(fd, text + done, len - done);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || errno != EINTR)
			error = n == 0 ? EIO : errno;
	}
	if (!error && fchmod(fd, 0644))
		error = errno;
	if (close(fd) && !error)
		error = errno;
	if (!error && rename(t->fresh, t->path))
		error = errno;
	if (error)
		unlink(t->fresh);
	return error;
}

static void *run(void *arg)
{
	struct textfile *t = arg;

	for (;;) {
		char *text;
		size_t len;
		int error;

		pthread_mutex_lock(&t->lock);
		while (!t->text && !t->stop)
			pthread_cond_wait(&t->wake, &t->lock);
		text = t->text;
		len = t->len;
		t->text = NULL;
		pthread_mutex_unlock(&t->lock);
		if (!text)
			return NULL;
		error = write_text(t, text, len);
		if (error && !t->failed)
			log_warn("metrics_file %s cannot be written: %s", t->path, strerror(error));
		else if (!error && t->failed)
			log_info("metrics_file %s can be written again", t->path);
		t->failed = error != 0;
		free(text);
	}
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct textfile *t = arg;
	struct strbuf text = { 0 };

	(void)fd;
	(void)what;
	metrics_text(t->d, &text);
	if (text.failed) {
		strbuf_release(&text);
		return;
	}
	pthread_mutex_lock(&t->lock);
	free(t->text); /* the disk is slow: only the latest counts */
	t->text = text.text;
	t->len = text.len;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
}

struct textfile *textfile_new(struct daemon *d, const char *path)
{
	struct textfile *t = path ? mem_calloc(1, sizeof *t) : NULL;
	struct timeval every = { .tv_sec = EVERY_S };
	struct err err = { 0 };

	if (!path)
		return NULL;
	if (!t || snprintf(t->path, sizeof t->path, "%s", path) >= (int)sizeof t->path ||
	    snprintf(t->fresh, sizeof t->fresh, "%s.%d.new", path, (int)getpid()) >= (int)sizeof t->fresh) {
		log_warn("metrics_file is not written: the path is too long, or there is no memory");
		free(t);
		return NULL;
	}
	t->d = d;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->wake, NULL);
	t->timer = event_new(d->base, -1, EV_PERSIST, on_timer, t);
	if (!t->timer || worker_start(&t->worker, run, t, "the metrics", &err)) {
		log_warn("metrics_file is not written: %s", t->timer ? err.text : "out of memory");
		textfile_free(t);
		return NULL;
	}
	event_add(t->timer, &every);
	on_timer(-1, 0, t);
	return t;
}

void textfile_free(struct textfile *t)
{
	if (!t)
		return;
	if (t->timer)
		event_free(t->timer);
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	free(t->text);
	t->text = NULL;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
	worker_join(&t->worker);
	unlink(t->path);
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->wake);
	free(t);
}
