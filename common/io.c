/* Files, read and written as a whole. Every system call that writes goes through one place, where a test can
 * make the k-th call fail. */
#define _GNU_SOURCE
#include "common/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/text/text.h"

#define IO_CHUNK ((size_t)1 << 30) /* Linux moves at most 0x7ffff000 bytes in one call */
#define IO_FIRST_READ 65536 /* for what does not tell its size: pipes, /proc */
#define IO_PATH_SHOWN 300 /* leaves room for the reason in an error's text */
#define IO_TEMP_TRIES 100

/* Armed by tests, as in mem.c. */
static atomic_ulong fail_countdown;
static atomic_int fail_error;
static atomic_bool fail_happened;

static bool must_fail(void)
{
	unsigned long left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);

	if (!left)
		return false;
	atomic_fetch_sub(&fail_countdown, 1);
	if (left > 1)
		return false;
	atomic_store(&fail_happened, true);
	errno = atomic_load(&fail_error);
	return true;
}

void io_fail_at(unsigned long k, int error)
{
	atomic_store(&fail_happened, false);
	atomic_store(&fail_error, error);
	atomic_store(&fail_countdown, error ? k : 0);
}

bool io_failed(void)
{
	return atomic_load(&fail_happened);
}

/* ---- the system calls, each restarted when a signal came between ---- */

static int io_open(const char *path, int flags, mode_t mode)
{
	int fd;

	do {
		fd = must_fail() ? -1 : open(path, flags | O_CLOEXEC, mode);
	} while (fd < 0 && errno == EINTR);
	return fd;
}

static ssize_t io_read(int fd, void *buf, size_t n)
{
	ssize_t got;

	do {
		got = must_fail() ? -1 : read(fd, buf, n < IO_CHUNK ? n : IO_CHUNK);
	} while (got < 0 && errno == EINTR);
	return got;
}

static int io_write_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t done = must_fail() ? -1 : write(fd, bytes, len < IO_CHUNK ? len : IO_CHUNK);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -1;
		bytes += done;
		len -= (size_t)done;
	}
	return 0;
}

static int io_fsync(int fd)
{
	int rc;

	do {
		rc = must_fail() ? -1 : fsync(fd);
	} while (rc < 0 && errno == EINTR);
	return rc;
}

static int io_rename(const char *from, const char *to)
{
	return must_fail() ? -1 : rename(from, to);
}

enum err_code io_code_of(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR: return ERR_NOTFOUND;
	case EACCES:
	case EPERM:
	case EROFS: return ERR_PERM;
	case ENOMEM:
	case EMFILE:
	case ENFILE: return ERR_NOMEM;
	default: return ERR_IO;
	}
}

/* The error of a system call that just failed. */
static int io_error(const char *what, const char *path, struct err *err)
{
	int error = errno;

	return err_fail(err, io_code_of(error), "cannot %s %s: %s", what, text_tail(path, IO_PATH_SHOWN),
			strerror(error));
}

/* ---- reading ---- */

static int io_too_long(const char *name, size_t max, struct err *err)
{
	return err_fail(err, ERR_FORMAT, "%s is longer than the limit of %zu bytes",
			text_tail(name, IO_PATH_SHOWN), max);
}

int io_read_file(const char *path, size_t max, char **out, size_t *out_len, struct err *err)
{
	bool from_stdin = strcmp(path, "-") == 0;
	const char *name = from_stdin ? "standard input" : path;
	int fd = from_stdin ? STDIN_FILENO : io_open(path, O_RDONLY | O_NOCTTY, 0);
	size_t len = 0, cap = 0, first = IO_FIRST_READ;
	void *buf = NULL;
	struct stat st;
	int rc = 0;

	if (fd < 0)
		return io_error("open", name, err);
	if (max > SIZE_MAX / 4)
		max = SIZE_MAX / 4; /* so that sums below cannot wrap */
	if (fstat(fd, &st) < 0) {
		rc = io_error("look at", name, err);
		goto out;
	}
	if (S_ISDIR(st.st_mode)) {
		rc = err_fail(err, ERR_FORMAT, "%s is a folder, not a file", text_tail(name, IO_PATH_SHOWN));
		goto out;
	}
	if (S_ISREG(st.st_mode) && st.st_size > 0) {
		if ((uintmax_t)st.st_size > max) {
			rc = io_too_long(name, max, err);
			goto out;
		}
		first = (size_t)st.st_size;
	}
	if (first > max)
		first = max;
	/* One for the NUL, one so that the read that finds the end needs no larger buffer. */
	cap = first + 2;
	buf = mem_alloc(cap);
	if (!buf) {
		rc = err_fail(err, ERR_NOMEM, "out of memory to read %s", text_tail(name, IO_PATH_SHOWN));
		goto out;
	}
	for (;;) {
		size_t room = cap - len - 1;
		ssize_t got;

		if (room == 0) {
			if (mem_grow(&buf, &cap, cap + 1, 1)) {
				rc = err_fail(err, ERR_NOMEM,
					      "out of memory to read more than %zu bytes of %s", len,
					      text_tail(name, IO_PATH_SHOWN));
				goto out;
			}
			continue;
		}
		if (room > max + 1 - len)
			room = max + 1 - len; /* one byte past the limit is enough to know */
		got = io_read(fd, (char *)buf + len, room);
		if (got < 0) {
			rc = io_error("read", name, err);
			goto out;
		}
		if (got == 0)
			break;
		len += (size_t)got;
		if (len > max) {
			rc = io_too_long(name, max, err);
			goto out;
		}
	}
	((char *)buf)[len] = '\0';
	*out = buf;
	*out_len = len;
	buf = NULL;
out:
	free(buf);
	if (!from_stdin)
		close(fd);
	return rc;
}

/* ---- writing ---- */

static int write_directly(const char *path, const void *bytes, size_t len, struct err *err)
{
	bool to_stdout = strcmp(path, "-") == 0;
	const char *name = to_stdout ? "standard output" : path;
	int fd = to_stdout ? STDOUT_FILENO : io_open(path, O_WRONLY | O_NOCTTY, 0);
	int rc = 0;

	if (fd < 0)
		return io_error("open", name, err);
	if (io_write_all(fd, bytes, len) < 0)
		rc = io_error("write to", name, err);
	if (!to_stdout && close(fd) < 0 && !rc)
		rc = io_error("close", name, err);
	return rc;
}

/* Opens a file of our own beside `path`. Its name does not contain that of `path`, which may be
 * as long as the file system allows already. */
static int open_temp(const char *folder, char *temp, size_t size)
{
	static atomic_uint serial;

	for (int i = 0; i < IO_TEMP_TRIES; i++) {
		int fd, n;

		n = snprintf(temp, size, "%s/.postrider-%lx-%x-%lx", folder, (long)getpid(),
			     atomic_fetch_add(&serial, 1), (long)(clock_wall_ns() % 1000000000));
		if (n < 0 || (size_t)n >= size) {
			errno = ENAMETOOLONG;
			return -1;
		}
		/* Asking for 0666 lets the kernel apply the umask, which a thread cannot read safely. */
		fd = io_open(temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return -1;
}

static void folder_of(const char *path, char *out, size_t size)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		snprintf(out, size, ".");
	else if (slash == path)
		snprintf(out, size, "/");
	else
		snprintf(out, size, "%.*s", (int)(slash - path), path);
}

/* Writes beside `path` and renames over it; `old` is what is there now, or NULL. */
static int replace_file(const char *path, const struct stat *old, const void *bytes, size_t len,
			struct err *err)
{
	char folder[PATH_MAX], temp[PATH_MAX];
	int folder_fd = -1, fd = -1, rc = 0;

	folder_of(path, folder, sizeof folder);
	/* Opened first: what can fail should fail while the old file is still there. */
	folder_fd = io_open(folder, O_RDONLY | O_DIRECTORY, 0);
	if (folder_fd < 0)
		return io_error("open folder", folder, err);
	fd = open_temp(folder, temp, sizeof temp);
	if (fd < 0) {
		rc = io_error("create a file in", folder, err);
		goto out;
	}
	if (old) {
		/* A file that root writes again keeps its owner; for other users this cannot succeed. */
		if ((old->st_uid != geteuid() || old->st_gid != getegid()) &&
		    fchown(fd, old->st_uid, old->st_gid) < 0)
			errno = 0;
		if (fchmod(fd, old->st_mode & 0777) < 0) {
			rc = io_error("set the mode of", temp, err);
			goto out;
		}
	}
	if (io_write_all(fd, bytes, len) < 0 || io_fsync(fd) < 0) {
		rc = io_error("write", path, err);
		goto out;
	}
	if (close(fd) < 0) {
		fd = -1;
		rc = io_error("write", path, err);
		unlink(temp);
		goto out;
	}
	fd = -1;
	if (io_rename(temp, path) < 0) {
		rc = io_error("replace", path, err);
		unlink(temp);
		goto out;
	}
	/* Some file systems cannot sync a folder and say so with EINVAL: nothing to be done. */
	if (io_fsync(folder_fd) < 0 && errno != EINVAL)
		rc = err_fail(err, ERR_IO, "%s is in place, but may not survive a power cut: fsync of %s: %s",
			      text_tail(path, IO_PATH_SHOWN / 2), text_tail(folder, IO_PATH_SHOWN / 2),
			      strerror(errno));
out:
	if (fd >= 0) {
		close(fd);
		unlink(temp);
	}
	close(folder_fd);
	return rc;
}

int io_write_file(const char *path, const void *bytes, size_t len, struct err *err)
{
	char real[PATH_MAX];
	struct stat st;

	if (strcmp(path, "-") == 0)
		return write_directly(path, bytes, len, err);
	if (path[0] == '\0' || strlen(path) >= PATH_MAX)
		return err_fail(err, ERR_ARG, "a file name of %zu bytes cannot be written to", strlen(path));
	if (lstat(path, &st) < 0) {
		if (errno != ENOENT)
			return io_error("write", path, err);
		return replace_file(path, NULL, bytes, len, err);
	}
	if (S_ISLNK(st.st_mode)) {
		/* Write where the link points, as open() would, instead of replacing the link. */
		if (stat(path, &st) < 0 || (S_ISREG(st.st_mode) && !realpath(path, real)))
			return io_error("follow the link", path, err);
		if (S_ISREG(st.st_mode))
			path = real;
	}
	if (!S_ISREG(st.st_mode))
		return write_directly(path, bytes, len, err);
	/* A rename would replace a read-only file without asking; a user who made it read-only meant it. */
	if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0)
		return io_error("write", path, err);
	return replace_file(path, &st, bytes, len, err);
}
