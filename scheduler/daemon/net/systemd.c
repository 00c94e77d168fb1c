/* Messages to systemd (ready, status, watchdog), and the socket it may hand over. See systemd.h. */
#define _GNU_SOURCE
#include "scheduler/daemon/net/systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/text/text.h"

#define LISTEN_FD 3 /* the first one handed over, by convention */

int notify_send(const char *state, struct err *err)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	ssize_t sent;
	int fd, error;

	if (len == 0)
		return 0;
	if ((path[0] != '/' && path[0] != '@') || len < 2 || len >= sizeof address.sun_path)
		return err_fail(err, ERR_ARG,
				"NOTIFY_SOCKET is %s: need a path of at most %zu bytes, or @NAME",
				text_tail(path, 200), sizeof address.sun_path - 1);
	memcpy(address.sun_path, path, len);
	if (path[0] == '@')
		address.sun_path[0] = '\0'; /* the abstract name space: the name's length counts, not a NUL */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_fail(err, ERR_IO, "cannot make a socket to tell systemd: %s", strerror(errno));
	do {
		sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	} while (sent < 0 && errno == EINTR);
	error = errno;
	close(fd);
	if (sent < 0)
		return err_fail(err, ERR_IO, "cannot tell systemd at %s: %s", text_tail(path, 200),
				strerror(error));
	return 0;
}

int notify_reloading(struct err *err)
{
	char text[64];

	snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%lld",
		 (long long)clock_monotonic_ns() / 1000);
	return notify_send(text, err);
}

/* Is the variable about us? One that names a process names its pid. */
static bool names_us(const char *variable)
{
	const char *text = getenv(variable);
	uint64_t pid;

	return text && text_uint64(text, &pid) && pid == (uint64_t)getpid();
}

double notify_watchdog_s(void)
{
	const char *text = getenv("WATCHDOG_USEC");
	uint64_t us;

	if (!text || !text_uint64(text, &us) || (getenv("WATCHDOG_PID") && !names_us("WATCHDOG_PID")))
		return 0.0;
	return (double)us / 1e6;
}

static int socket_option(int fd, int option)
{
	int value = -1;
	socklen_t size = sizeof value;

	return getsockopt(fd, SOL_SOCKET, option, &value, &size) < 0 ? -1 : value;
}

int notify_listen_fd(int *out_fd, struct err *err)
{
	const char *text = getenv("LISTEN_FDS");
	bool ours = names_us("LISTEN_PID");
	uint64_t n = 0;

	if (text && !text_uint64(text, &n))
		n = 0;
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	if (!ours || n == 0) {
		*out_fd = -1;
		return 0;
	}
	if (n > 1)
		return err_fail(err, ERR_ARG, "systemd hands over %llu sockets: need one ListenStream=",
				(unsigned long long)n);
	if (socket_option(LISTEN_FD, SO_DOMAIN) != AF_UNIX ||
	    socket_option(LISTEN_FD, SO_TYPE) != SOCK_STREAM || socket_option(LISTEN_FD, SO_ACCEPTCONN) != 1)
		return err_fail(
			err, ERR_ARG,
			"the socket that systemd hands over is not a listening Unix stream socket: need "
			"ListenStream=/PATH and Accept=no");
	if (fcntl(LISTEN_FD, F_SETFD, FD_CLOEXEC) < 0)
		return err_fail(err, ERR_IO, "cannot take the socket over: %s", strerror(errno));
	*out_fd = LISTEN_FD;
	return 0;
}
