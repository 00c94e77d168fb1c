/* The folder of results: paths, checks, writing. */
#include "sim/compare/folder.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/io.h"
#include "common/mem.h"
#include "common/text/text.h"

int folder_error(const char *what, const char *path, struct err *err)
{
	int error = errno;

	return err_fail(err, io_code_of(error), "cannot %s %s: %s", what, text_tail(path, 300),
			strerror(error));
}

char *folder_path(const char *dir, const char *name, struct err *err)
{
	size_t size = strlen(dir) + strlen(name) + 2;
	char *path = mem_alloc(size);

	if (path)
		snprintf(path, size, "%s%s%s", dir, *dir && dir[strlen(dir) - 1] == '/' ? "" : "/", name);
	else
		err_nomem(err, "the name of a file");
	return path;
}

static int check_parent(const char *dir, struct err *err)
{
	char *parent = mem_strdup(dir), *slash;
	size_t len = strlen(dir);
	int status = 0;

	if (!parent)
		return err_nomem(err, "the name of a folder");
	while (len > 1 && parent[len - 1] == '/')
		parent[--len] = '\0';
	slash = strrchr(parent, '/');
	if (slash)
		slash[slash == parent] = '\0';
	if (access(slash ? parent : ".", W_OK | X_OK))
		status = folder_error("make a folder in", slash ? parent : ".", err);
	free(parent);
	return status;
}

int folder_check(const char *dir, struct err *err)
{
	struct stat st;

	if (!*dir)
		return err_fail(err, ERR_ARG, "the folder to write to has no name");
	if (stat(dir, &st))
		return errno == ENOENT ? check_parent(dir, err) : folder_error("open folder", dir, err);
	if (!S_ISDIR(st.st_mode))
		return err_fail(err, ERR_ARG, "%s is a file; name a folder to write to", text_tail(dir, 300));
	return access(dir, W_OK | X_OK) ? folder_error("write to folder", dir, err) : 0;
}

int folder_make(const char *dir, struct err *err)
{
	return mkdir(dir, 0777) && errno != EEXIST ? folder_error("make folder", dir, err) : 0;
}

int folder_write(const char *dir, const char *name, const struct strbuf *text, struct err *err)
{
	char *path = folder_path(dir, name, err);
	int status;

	if (!path)
		return -ERR_NOMEM;
	if (text->failed)
		status = err_nomem(err, "%s", text_tail(path, 300));
	else
		status = io_write_file(path, strbuf_text(text), text->len, err);
	free(path);
	return status;
}

int folder_remove(const char *dir, const char *name, struct err *err)
{
	char *path = folder_path(dir, name, err);
	int status = 0;

	if (!path)
		return -ERR_NOMEM;
	if (unlink(path) && errno != ENOENT)
		status = folder_error("remove the earlier", path, err);
	free(path);
	return status;
}

void folder_hold_signals(sigset_t *before)
{
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &stop, before);
}

void folder_release_signals(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}
