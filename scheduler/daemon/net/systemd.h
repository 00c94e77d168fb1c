/* What systemd and a daemon tell each other: readiness, reloading and the watchdog by datagrams to
 * $NOTIFY_SOCKET (see sd_notify(3)), and a socket that was opened for us ($LISTEN_FDS, sd_listen_fds(3)).
 * Without systemd nothing happens. No libsystemd is needed: both are a few variables. */
#ifndef SCHEDULER_DAEMON_NET_SYSTEMD_H
#define SCHEDULER_DAEMON_NET_SYSTEMD_H

#include "common/err.h"

/* One datagram, "READY=1\nSTATUS=3 jobs run". 0 also if systemd did not ask for it. Never blocks. */
int notify_send(const char *state, struct err *err);
/* "RELOADING=1" with the time, as Type=notify-reload needs it; READY=1 follows when it is done. */
int notify_reloading(struct err *err);
/* Seconds within which WATCHDOG=1 is expected; 0: not at all. Send it at half of that. */
double notify_watchdog_s(void);

/* *out_fd: the listening Unix stream socket that systemd hands over, -1 if there is none; ERR_ARG if it is
 * something else, or several. Unsets the variables, so that no job takes them for its own. */
int notify_listen_fd(int *out_fd, struct err *err);

#endif
