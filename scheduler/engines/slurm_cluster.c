/* What Slurm has and who uses it: sinfo and squeue, for the look at the cluster. slurm.c has the rest. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scheduler/engines/slurm.h"

#define MAX_FIELD 127

/* ---- the questions ---- */

int slurm_look(const struct config_engine *c, enum cluster_question q, struct engine_call *out,
	       struct err *err)
{
	bool fine;

	if (q == CLUSTER_NODES)
		fine = slurm_program(c, "sinfo", out) && engine_word_add(&out->argv, "--noheader") &&
		       engine_word_add(&out->argv, "--Node") && engine_word_add(&out->argv, "--sort=N") &&
		       engine_word_add(&out->argv, "--format=%%N|%%P|%%T|%%C|%%G");
	else /* a comment may have any character, so it comes last; times since 1970 have no time zone */
		fine = engine_word_add(&out->argv, "env") &&
		       engine_word_add(&out->argv, "SLURM_TIME_FORMAT=%%s") &&
		       slurm_program(c, "squeue", out) && engine_word_add(&out->argv, "--noheader") &&
		       engine_word_add(&out->argv, "--states=RUNNING,PENDING,SUSPENDED,CONFIGURING") &&
		       engine_word_add(&out->argv, "--format=%%C|%%T|%%P|%%e|%%b|%%D|%%U|%%k");
	return fine ? 0 : err_nomem(err, "a look at the cluster");
}

/* ---- the answers ---- */

bool cluster_in_scope(const char *scope, const char *partition, bool is_default)
{
	size_t len = strlen(partition);

	if (is_default && strstr(scope, ",*,"))
		return true;
	for (const char *at = scope; len && (at = strchr(at, ',')); at++) {
		if (!strncmp(at + 1, partition, len) && at[1 + len] == ',')
			return true;
	}
	return false;
}

/* "gpu:2", "gres:gpu:a100:4(S:0-1),mps:100": the devices that are GPUs. */
static uint64_t count_gpus(const char *gres)
{
	uint64_t n = 0;

	for (const char *at = gres; (at = strstr(at, "gpu")); at++) {
		size_t len = strcspn(at, ",(");
		const char *last = at + len;

		if (at != gres && at[-1] != ',' && at[-1] != ':' && at[-1] != '/')
			continue;
		while (last > at && last[-1] >= '0' && last[-1] <= '9')
			last--;
		n += last > at && last[-1] == ':' && last < at + len ? strtoul(last, NULL, 10) : len == 3;
		at += len - 1;
	}
	return n;
}

/* Slurm marks a state: "idle*" does not answer, "idle~" is asleep and wakes for a job. */
static bool is_away(const char *state)
{
	static const char *const away[] = { "drain", "down",    "fail",    "maint",  "reserved", "future",
					    "inval", "unknown", "blocked", "reboot", NULL };

	for (size_t i = 0; away[i]; i++) {
		if (!strncmp(state, away[i], strlen(away[i])))
			return true;
	}
	return strchr(state, '*') != NULL;
}

/* "n1|near*|mixed|5/3/0/8|gpu:2": taken, idle, other and all cpus. A node of two partitions has two lines,
 * one after the other. */
static void read_node(const char *line, const char *scope, struct cluster *out)
{
	char name[MAX_FIELD + 1], partition[MAX_FIELD + 1], state[32], gres[MAX_FIELD + 1];
	unsigned long taken, idle, other, all;
	char *star;

	gres[0] = '\0';
	if (sscanf(line, "%127[^|]|%127[^|]|%31[^|]|%lu/%lu/%lu/%lu|%127[^\n]", name, partition, state,
		   &taken, &idle, &other, &all, gres) < 7)
		return;
	star = strchr(partition, '*');
	if (star)
		*star = '\0';
	if (star)
		snprintf(out->home, sizeof out->home, "%s", partition);
	if (!cluster_in_scope(scope, partition, star != NULL) || !strcmp(name, out->last))
		return;
	snprintf(out->last, sizeof out->last, "%s", name);
	out->nodes++;
	out->gpus += is_away(state) ? 0 : count_gpus(gres);
	if (is_away(state)) {
		out->nodes_away++;
		out->cpus_leaving += taken;
	} else {
		out->cpus += taken + idle;
	}
}

/* One of the partitions that a job waits for, or the one it runs in. */
static bool is_ours(char *partitions, const char *scope, const struct cluster *c)
{
	for (char *at = partitions, *name; (name = strsep(&at, ","));) {
		if (cluster_in_scope(scope, name, !strcmp(name, c->home)))
			return true;
	}
	return false;
}

/* "5|RUNNING|near|1794929978|gres:gpu:1|1|60001|postrider:IDENTITY" */
static void read_job(const char *line, const char *scope, struct cluster *out)
{
	char state[32], partition[MAX_FIELD + 1], end[32], gres[MAX_FIELD + 1];
	unsigned long cpus, nodes, uid;
	bool waits, own;
	int at = 0;

	if (sscanf(line, "%lu|%31[^|]|%127[^|]|%31[^|]|%127[^|]|%lu|%lu|%n", &cpus, state, partition, end,
		   gres, &nodes, &uid, &at) != 7 ||
	    !at || !cpus || cpus > UINT32_MAX || !is_ours(partition, scope, out))
		return;
	/* Any user may write such a comment; only our own user's counts. */
	own = uid == geteuid() && !strncmp(line + at, SLURM_COMMENT, strlen(SLURM_COMMENT));
	waits = !strcmp(state, "PENDING");
	if (!waits)
		out->gpus_taken += count_gpus(gres) * nodes;
	if (own) {
		out->own_cpus += waits ? 0 : cpus;
		return;
	}
	if (waits) {
		out->others_waiting++;
		out->others_waiting_cpus += cpus;
		return;
	}
	out->others++;
	out->others_cpus += cpus;
	if (out->n_guests < out->cap)
		out->guest[out->n_guests++] = (struct cluster_guest){
			.cpus = (uint32_t)cpus, .end_s = strtoll(end, NULL, 10) /* 0: NOT_SET and its like */
		};
}

void slurm_look_line(enum cluster_question q, const char *line, const char *scope, struct cluster *out)
{
	if (q == CLUSTER_NODES)
		read_node(line, scope, out);
	else
		read_job(line, scope, out);
}
