/* A daemon that answers from a script. See fake_daemon.h. */
#include "tests/unit/cli/fake_daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/support.h"

static int fake_send(int fd, const char *text, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);

		if (sent <= 0)
			return -1;
		text += sent;
		n -= (size_t)sent;
	}
	return 0;
}

static void fake_hear(struct fake_daemon *d, int fd, const char *want)
{
	size_t n = 0;

	while (n + 1 < sizeof d->heard) {
		if (recv(fd, d->heard + n, 1, 0) != 1) {
			snprintf(d->complaint, sizeof d->complaint,
				 "the client hung up when '%s' was expected", want);
			return;
		}
		if (d->heard[n++] == '\n')
			break;
	}
	d->heard[n] = '\0';
	if (!strstr(d->heard, want))
		snprintf(d->complaint, sizeof d->complaint, "'%.80s' is not in: %.140s", want, d->heard);
}

static void *fake_run(void *arg)
{
	struct fake_daemon *d = arg;
	int fd = accept(d->listener, NULL, NULL);
	char noise[4096];

	if (fd < 0)
		return NULL;
	memset(noise, 'x', sizeof noise);
	for (const struct fake_step *s = d->step; s->kind != FAKE_END && !d->complaint[0]; s++) {
		switch (s->kind) {
		case FAKE_SAY: fake_send(fd, s->text, strlen(s->text)); break;
		case FAKE_SPELL:
			for (const char *p = s->text; *p; p++)
				fake_send(fd, p, 1);
			break;
		case FAKE_FLOOD:
			for (size_t n = 0; n < s->n; n += sizeof noise) {
				if (fake_send(fd, noise, sizeof noise))
					break;
			}
			break;
		case FAKE_HEAR: fake_hear(d, fd, s->text ? s->text : ""); break;
		case FAKE_STAY:
			while (recv(fd, noise, sizeof noise, 0) > 0)
				;
			break;
		case FAKE_NAP: usleep((useconds_t)s->n * 1000); break;
		case FAKE_END: break;
		}
	}
	close(fd);
	return NULL;
}

struct fake_daemon *fake_start(const struct fake_step *step)
{
	static int turn;
	struct fake_daemon *d = calloc(1, sizeof *d);
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char name[32];

	snprintf(name, sizeof name, "fake%d.sock", turn++);
	snprintf(d->path, sizeof d->path, "%s", support_path(support_temp_dir(), name));
	snprintf(at.sun_path, sizeof at.sun_path, "%s", d->path);
	d->step = step;
	d->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	if (d->listener < 0 || bind(d->listener, (struct sockaddr *)&at, sizeof at) ||
	    listen(d->listener, 4) || pthread_create(&d->thread, NULL, fake_run, d)) {
		perror(d->path);
		exit(1);
	}
	return d;
}

const char *fake_stop(struct fake_daemon *d)
{
	static char complaint[256];

	shutdown(d->listener, SHUT_RDWR); /* a client that never came does not keep us waiting */
	pthread_join(d->thread, NULL);
	snprintf(complaint, sizeof complaint, "%s", d->complaint);
	close(d->listener);
	unlink(d->path);
	free(d);
	return complaint;
}
