/* Loaded into a daemon by LD_PRELOAD: keeps a copy of what the daemon's database has on the disk, as it would
 * be found after a power cut. POSTRIDER_DISK is a folder. After each sync of the database or its log, `now`
 * in it holds both as they were synced; when a program is spawned, that copy is kept as `spawn-1`, `spawn-2`,
 * ... A sync takes 30 ms longer than it does by itself, so that what does not wait for it is early by as
 * much. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *const file[] = { "postrider.db", "postrider.db-wal" };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void copy(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out;
	char part[PATH_MAX], block[65536];
	ssize_t n;

	if (in < 0)
		return;
	snprintf(part, sizeof part, "%s.part", to);
	out = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	while (out >= 0 && (n = read(in, block, sizeof block)) > 0) {
		if (write(out, block, (size_t)n) != n)
			break;
	}
	close(in);
	if (out >= 0)
		close(out);
	rename(part, to);
}

static void keep_synced(int fd)
{
	const char *disk = getenv("POSTRIDER_DISK");
	char link[64], path[PATH_MAX], to[PATH_MAX];
	const char *name;
	ssize_t n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof path - 1);
	if (!disk || n <= 0)
		return;
	path[n] = '\0';
	name = strrchr(path, '/');
	for (size_t i = 0; name && i < 2; i++) {
		if (strcmp(name + 1, file[i]))
			continue;
		pthread_mutex_lock(&lock);
		snprintf(to, sizeof to, "%s/now/%s", disk, file[i]);
		copy(path, to);
		pthread_mutex_unlock(&lock);
	}
}

static int slowly(const char *call, int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, call);
	struct timespec delay = { .tv_nsec = 30000000 };
	int rc;

	nanosleep(&delay, NULL);
	rc = real(fd);
	if (rc == 0)
		keep_synced(fd);
	return rc;
}

int fsync(int fd)
{
	return slowly("fsync", fd);
}

int fdatasync(int fd)
{
	return slowly("fdatasync", fd);
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	static int n_spawned;
	int (*real)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
		    char *const *, char *const *) =
		(int (*)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
			 char *const *, char *const *))dlsym(RTLD_NEXT, "posix_spawn");
	const char *disk = getenv("POSTRIDER_DISK");
	char from[PATH_MAX], to[PATH_MAX];

	if (disk) {
		pthread_mutex_lock(&lock);
		snprintf(to, sizeof to, "%s/spawn-%d", disk, ++n_spawned);
		mkdir(to, 0700);
		for (size_t i = 0; i < 2; i++) {
			snprintf(from, sizeof from, "%s/now/%s", disk, file[i]);
			snprintf(to, sizeof to, "%s/spawn-%d/%s", disk, n_spawned, file[i]);
			copy(from, to);
		}
		pthread_mutex_unlock(&lock);
	}
	return real(pid, path, actions, attr, argv, envp);
}
