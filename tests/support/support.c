/* Where things are, temporary folders, seeds. See support.h. */
#define _GNU_SOURCE
#include "tests/support/support.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char temp_dir[64];

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void remove_temp_dir(void)
{
	nftw(temp_dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *support_path(const char *dir, const char *name)
{
	static char ring[8][512];
	static unsigned next;
	char *buf = ring[next++ % 8];

	snprintf(buf, sizeof ring[0], "%s/%s", dir, name);
	return buf;
}

const char *support_temp_dir(void)
{
	if (!temp_dir[0]) {
		snprintf(temp_dir, sizeof temp_dir, "/tmp/postrider-test-XXXXXX");
		if (!mkdtemp(temp_dir)) {
			perror("mkdtemp");
			exit(1);
		}
		atexit(remove_temp_dir);
	}
	return temp_dir;
}

const char *support_shared_data(const char *name)
{
	const char *path = support_path("../shared/data", name);

	if (access(path, R_OK) == 0)
		return path;
	printf("skipped: %s is not here\n", path);
	return NULL;
}

uint64_t support_seed(uint64_t usual)
{
	const char *text = getenv("TEST_SEED");

	return text && *text ? strtoull(text, NULL, 10) : usual;
}

bool sanitized(void)
{
	const char *san = getenv("SAN");

	return san && *san;
}

size_t effort(size_t full)
{
	const char *all = getenv("FULL");

	return !sanitized() || (all && *all) ? full : full > 10 ? full / 10 : 1;
}

void support_find_supervisor(void)
{
	char path[4096], *slash;
	const char *bin = getenv("BIN");
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);

	path[n < 0 ? 0 : n] = '\0';
	if (bin)
		snprintf(path, sizeof path - 64, "%s/x", bin);
	while ((slash = strrchr(path, '/'))) {
		strcpy(slash, "/postrider-supervisor");
		if (access(path, X_OK) == 0) {
			setenv("POSTRIDER_SUPERVISOR", path, 1);
			return;
		}
		*slash = '\0';
	}
	fprintf(stderr, "postrider-supervisor is not built\n");
	exit(1);
}
