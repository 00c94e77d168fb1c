/* Threads beside an event loop. See worker.h. */
#include "common/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int worker_start(struct worker *w, void *(*run)(void *arg), void *arg, const char *what, struct err *err)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&w->thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	w->runs = error == 0;
	return error ? err_fail(err, ERR_IO, "cannot start a thread for %s: %s", what, strerror(error)) : 0;
}

void worker_join(struct worker *w)
{
	if (w->runs)
		pthread_join(w->thread, NULL);
	w->runs = false;
}

int bell_new(int *out_fd, bool loop, const char *what, struct err *err)
{
	*out_fd = eventfd(0, EFD_CLOEXEC | (loop ? EFD_NONBLOCK : 0));
	if (*out_fd < 0)
		return err_fail(err, ERR_IO, "no event descriptor for %s: %s", what, strerror(errno));
	return 0;
}

void bell_ring(int fd)
{
	const uint64_t one = 1;

	/* It cannot fill up: clearing it takes the whole count. */
	while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

void bell_clear(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof count) < 0 && errno == EINTR)
		;
}

void bell_free(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}
