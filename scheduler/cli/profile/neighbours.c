/* Finds the jobs that may run beside one that is measured. See neighbours.h. */
#include "scheduler/cli/profile/neighbours.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/json/json.h"
#include "scheduler/cli/job/own_daemon.h"
#include "scheduler/profiler/plan.h"

struct found {
	const char *name;
	char job[PATH_MAX];
	struct timespec at; /* when it was described */
};

void neighbours_release(struct neighbours *n)
{
	for (size_t i = 0; i < n->n; i++)
		profile_design_release(&n->design[i]);
	n->n = 0;
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* The path of a type's description, as the configuration means it. */
static bool path_of(const struct json *type, const char *config, char *out, size_t size)
{
	const char *job = json_string(json_get(type, "job"), NULL), *slash = strrchr(config, '/');

	if (!job)
		return false;
	if (*job == '/' || !slash)
		return snprintf(out, size, "%s", job) < (int)size;
	return snprintf(out, size, "%.*s/%s", (int)(slash - config), config, job) < (int)size;
}

/* Keeps the latest, the latest first. */
static size_t keep_latest(struct found *f, size_t n, const struct found *one)
{
	size_t at = n;

	while (at > 0 && is_later(&one->at, &f[at - 1].at))
		at--;
	if (at == PROFILE_MAX_NEIGHBOURS)
		return n;
	n += n < PROFILE_MAX_NEIGHBOURS;
	memmove(&f[at + 1], &f[at], (n - 1 - at) * sizeof *f);
	f[at] = *one;
	return n;
}

static void take(struct neighbours *n, const struct found *f)
{
	struct profile_design *d = &n->design[n->n];

	profile_design_init(d);
	if (strlen(f->name) > PROFILE_MAX_VALUE || profile_design_read(d, f->job, NULL) ||
	    profile_design_check(d, NULL)) {
		profile_design_release(d);
		return;
	}
	snprintf(n->of[n->n].name, sizeof n->of[n->n].name, "%s", f->name);
	n->of[n->n++].design = d;
}

int neighbours_find(struct neighbours *n, const char *config, const char *own, struct err *err)
{
	struct found found[PROFILE_MAX_NEIGHBOURS];
	struct own_daemon run;
	struct json *root = NULL;
	struct stat self, st;
	bool has_self = own && !stat(own, &self);
	size_t n_found = 0;
	int rc = 0;

	n->n = 0;
	if (!config && (own_daemon_find(&run, NULL) || stat(run.config, &st)))
		return 0;
	rc = json_read_settings(config ? config : run.config, PROFILE_MAX_BYTES, &root, config ? err : NULL);
	for (const struct json *t = json_first(json_get(root, "types")); t; t = json_next(t)) {
		struct found one = { .name = json_key(t) };

		if (!path_of(t, config ? config : run.config, one.job, sizeof one.job) ||
		    stat(one.job, &st) || (has_self && st.st_dev == self.st_dev && st.st_ino == self.st_ino))
			continue;
		one.at = st.st_mtim;
		n_found = keep_latest(found, n_found, &one);
	}
	for (size_t i = 0; i < n_found; i++)
		take(n, &found[i]);
	json_free(root);
	return config ? rc : 0;
}
