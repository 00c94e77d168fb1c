/* Loaded into a supervisor by LD_PRELOAD: writes down, in the file $POSTRIDER_ORDER, what it syncs ("fsync
 * NAME") and when it lets the job go ("go": the one byte that the child waits for). With
 * $POSTRIDER_SYNC_MS every fsync takes at least that long. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ssize_t real_write(int fd, const void *bytes, size_t n)
{
	ssize_t (*next)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");

	return next(fd, bytes, n);
}

static void note(const char *what, const char *name)
{
	const char *path = getenv("POSTRIDER_ORDER");
	char line[PATH_MAX + 16];
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
	int n = snprintf(line, sizeof line, "%s %s\n", what, name);

	if (fd < 0)
		return;
	(void)!real_write(fd, line, (size_t)n);
	close(fd);
}

int fsync(int fd)
{
	int (*next)(int) = dlsym(RTLD_NEXT, "fsync");
	char link[64], path[PATH_MAX] = "";
	const char *slow_ms = getenv("POSTRIDER_SYNC_MS");
	int rc = next(fd);

	if (slow_ms)
		usleep(1000 * (useconds_t)atoi(slow_ms));
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	(void)!readlink(link, path, sizeof path - 1);
	note("fsync", path);
	return rc;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
	if (n == 1 && *(const char *)bytes == 'g')
		note("go", "");
	return real_write(fd, bytes, n);
}
