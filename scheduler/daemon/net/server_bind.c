/* The path of the socket: who may listen there, and with which rights. The lock file beside it decides
 * between daemons that start at the same time; it is left where it is, because removing a lock file that
 * another one may have opened already would give two owners. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/io.h"
#include "common/text/text.h"
#include "scheduler/daemon/net/server_internal.h"

#define BACKLOG 4096

static int system_error(const char *what, const char *path, struct err *err)
{
	int error = errno;

	return err_fail(err, io_code_of(error), "cannot %s %s: %s", what, path, strerror(error));
}

static int fill_address(const char *path, struct sockaddr_un *out, struct err *err)
{
	size_t len = strlen(path);

	if (len == 0)
		return err_fail(err, ERR_ARG, "the path of the socket is empty");
	if (len >= sizeof out->sun_path)
		return err_fail(err, ERR_ARG,
				"the path of the socket has %zu bytes, Linux allows %zu: choose a shorter "
				"one than %s",
				len, sizeof out->sun_path - 1, text_tail(path, 200));
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(out->sun_path, path, len + 1);
	return 0;
}

/* A user who may write to the folder could replace our socket by another. */
static int check_folder(const char *path, bool force, struct err *err)
{
	char folder[sizeof((struct sockaddr_un *)0)->sun_path];
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;
	struct stat st;

	if (!slash)
		snprintf(folder, sizeof folder, ".");
	else
		snprintf(folder, sizeof folder, "%.*s", len ? (int)len : 1, path);
	if (stat(folder, &st) < 0)
		return system_error("put a socket into the folder", folder, err);
	if (!S_ISDIR(st.st_mode))
		return err_fail(err, ERR_ARG, "cannot put a socket into %s: it is not a folder", folder);
	if (force)
		return 0;
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return err_fail(
			err, ERR_PERM,
			"the folder %s belongs to uid %u, who could replace the socket: use one of your own, "
			"or force it",
			folder, (unsigned)st.st_uid);
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) && !(st.st_mode & S_ISVTX))
		return err_fail(err, ERR_PERM,
				"others may write to the folder %s (mode %03o) and replace the socket: chmod "
				"go-w it, "
				"or force it",
				folder, (unsigned)(st.st_mode & 0777));
	return 0;
}

static int take_lock(const char *path, int *out_fd, struct err *err)
{
	char lock[sizeof((struct sockaddr_un *)0)->sun_path + sizeof ".lock"];
	int fd, rc;

	snprintf(lock, sizeof lock, "%s.lock", path);
	fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return system_error("open the lock file", lock, err);
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		*out_fd = fd;
		return 0;
	}
	rc = errno == EWOULDBLOCK
		     ? err_fail(err, ERR_BUSY, "another daemon listens, or starts to, on %s (it holds %s)",
				path, lock)
		     : system_error("lock", lock, err);
	close(fd);
	return rc;
}

/* Under the lock: removes the socket of a daemon that does not run any more. */
static int clear_path(const struct sockaddr_un *address, struct err *err)
{
	const char *path = address->sun_path;
	struct stat st;
	int fd, error;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : system_error("look at", path, err);
	if (!S_ISSOCK(st.st_mode))
		return err_fail(err, ERR_ARG,
				"%s exists and is not a socket: remove it, or choose another path", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return system_error("make a socket to try", path, err);
	error = connect(fd, (const struct sockaddr *)address, sizeof *address) < 0 ? errno : 0;
	close(fd);
	if (error == 0 || error == EAGAIN) /* its backlog is full: it lives, and has much to do */
		return err_fail(err, ERR_BUSY, "another program listens on %s", path);
	if (error != ECONNREFUSED && error != ENOENT) {
		errno = error;
		return system_error("find out whether a program listens on", path, err);
	}
	if (unlink(path) < 0 && errno != ENOENT)
		return system_error("remove the stale socket", path, err);
	return 0;
}

/* No client can connect before listen(), so rights that are set before it hold from the beginning. */
static int bind_path(const struct server_params *p, const struct sockaddr_un *address,
		     struct server_socket *s, struct err *err)
{
	struct stat st;

	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return system_error("make a socket for", p->path, err);
	if (bind(s->fd, (const struct sockaddr *)address, sizeof *address) < 0)
		return system_error("bind", p->path, err);
	s->bound = true;
	if (lstat(p->path, &st) < 0)
		return system_error("look at", p->path, err);
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	if (p->set_group && chown(p->path, (uid_t)-1, p->group) < 0)
		return system_error("give the group to", p->path, err);
	if (chmod(p->path, p->mode & 0777) < 0)
		return system_error("set the mode of", p->path, err);
	if (listen(s->fd, BACKLOG) < 0)
		return system_error("listen on", p->path, err);
	return 0;
}

int server_socket_open(const struct server_params *p, struct server_socket *out, struct err *err)
{
	struct sockaddr_un address;
	int rc, flags;

	*out = (struct server_socket){ .fd = -1, .lock_fd = -1 };
	if (p->listen_fd >= 0) {
		flags = fcntl(p->listen_fd, F_GETFL);
		if (flags < 0 || fcntl(p->listen_fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
		    fcntl(p->listen_fd, F_SETFD, FD_CLOEXEC) < 0)
			return err_fail(err, ERR_ARG, "descriptor %d cannot be listened on: %s", p->listen_fd,
					strerror(errno));
		out->fd = p->listen_fd;
		return 0;
	}
	if (!p->path)
		return err_fail(err, ERR_ARG, "the socket has no path");
	if ((rc = fill_address(p->path, &address, err)) || (rc = check_folder(p->path, p->force, err)))
		return rc;
	memcpy(out->path, address.sun_path, sizeof out->path);
	if ((rc = take_lock(p->path, &out->lock_fd, err)) || (rc = clear_path(&address, err)) ||
	    (rc = bind_path(p, &address, out, err)))
		server_socket_close(out);
	return rc;
}

void server_socket_close(struct server_socket *s)
{
	struct stat st;

	if (s->fd >= 0)
		close(s->fd);
	/* Another file may have been put there in the meantime. */
	if (s->bound && lstat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
		unlink(s->path);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	*s = (struct server_socket){ .fd = -1, .lock_fd = -1 };
}
