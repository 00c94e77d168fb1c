/* See run_remove.h. The folder belongs to the job's owner, who may have a process in it that changes folders
 * for links while we delete as root. So every step goes by descriptors of folders and names without a slash.
 *
 * A tree may be deeper than there are descriptors or stack. So folders are not descended into: a folder is
 * emptied by moving the folders in it up to the top, where their turn comes. */
#define _GNU_SOURCE
#include "scheduler/process/run_remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text/text.h"
#include "scheduler/process/record_format.h"

#define PATH_SHOWN 120
#define MAX_PASSES                                                                                           \
	1000000 /* over the top folder: an owner who keeps adding to it does not keep us for ever */
#define MAX_OLD 1000 /* folders of jobs that had the number before: supervisor_place.c */

static bool is_name(const struct dirent *e)
{
	return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

/* Opens a folder in a folder and takes its ownership, so that it can be written to: its owner may have
 * removed the rights, and the service's root may chown but not write to folders of others. NULL: errno says
 * why. */
static DIR *open_folder(int in, const char *name)
{
	int fd = openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d;

	if (fd < 0 && errno == EACCES && geteuid() != 0 && fchmodat(in, name, 0700, 0) == 0)
		fd = openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (geteuid() == 0)
		(void)!fchown(fd, 0, 0);
	(void)!fchmod(fd, 0700);
	d = fdopendir(fd);
	if (!d)
		close(fd);
	return d;
}

/* Removes the folder `name` in `top`; folders in it move to `top`. 0 or an error number. */
static int flatten(int top, const char *name, unsigned long *moved)
{
	DIR *d = open_folder(top, name), *inner;
	struct dirent *e;
	int error = 0;

	if (!d)
		return errno;
	while (!error && (e = readdir(d))) {
		char to[40];

		if (!is_name(e) || unlinkat(dirfd(d), e->d_name, 0) == 0 || errno == ENOENT)
			continue;
		if (errno != EISDIR && errno != EPERM) {
			error = errno;
			break;
		}
		inner = open_folder(dirfd(d), e->d_name); /* its ".." changes, so it must be writable */
		if (inner)
			closedir(inner);
		do /* a name that the owner uses, too, is passed over */
			snprintf(to, sizeof to, ".postrider-%lu", (*moved)++);
		while (renameat2(dirfd(d), e->d_name, top, to, RENAME_NOREPLACE) && errno == EEXIST);
	}
	closedir(d);
	if (error)
		return error;
	if (unlinkat(top, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	return errno;
}

/* 0 or an error number. */
static int empty(DIR *d)
{
	unsigned long moved = 0;
	bool removed = true;
	int error = 0;

	for (int pass = 0; removed && pass < MAX_PASSES; pass++) {
		struct dirent *e;

		removed = false;
		rewinddir(d);
		while ((e = readdir(d))) {
			if (!is_name(e))
				continue;
			if (unlinkat(dirfd(d), e->d_name, 0) == 0) {
				removed = true;
				continue;
			}
			error = errno == EISDIR || errno == EPERM ? flatten(dirfd(d), e->d_name, &moved)
								  : errno;
			if (error == EMFILE || error == ENFILE || error == ENOMEM)
				return error;
			removed |= !error;
		}
	}
	return error;
}

static int remove_folder(const char *path)
{
	DIR *d = open_folder(AT_FDCWD, path);
	int error = d ? empty(d) : errno;

	if (d)
		closedir(d);
	if (error == ENOENT || rmdir(path) == 0)
		return 0;
	return error ? error : errno;
}

int run_remove(const char *dir, const char *identity, struct err *err)
{
	static const char *const suffix[] = { RECORD_STARTED, RECORD_EXIT,          RECORD_EXIT ".new",
					      RECORD_ENGINE,  RECORD_ENGINE ".new", RECORD_REPORT };
	char path[PATH_MAX];
	struct stat st;
	int error = remove_folder(dir);

	for (int i = 1; !error && i < MAX_OLD; i++) {
		if ((size_t)snprintf(path, sizeof path, "%s.old-%d", dir, i) >= sizeof path ||
		    lstat(path, &st))
			break;
		error = remove_folder(path);
	}
	if (error)
		return err_fail(err,
				error == EMFILE || error == ENFILE || error == ENOMEM ? ERR_BUSY : ERR_IO,
				"cannot remove %s: %s", text_tail(dir, PATH_SHOWN), strerror(error));
	/* Last: without them a job that a lost row calls queued would run again. */
	for (size_t i = 0; i < sizeof suffix / sizeof *suffix; i++) {
		snprintf(path, sizeof path, "%s%s%s%s", dir, identity[0] ? "." : "", identity, suffix[i]);
		unlink(path);
	}
	return 0;
}
