/* The models that the daemon has trained: a folder with NNNN.model files, and versions.jsonl, a line for each
 * attempt with its result. The journal is rewritten as a whole and atomically, so it never has half a line;
 * invalid lines (from an editor, say) are dropped with a warning in the log.
 *
 * Not thread-safe: the loop uses it while no training runs, and the training thread while one does. */
#ifndef SCHEDULER_DAEMON_LEARN_VERSIONS_H
#define SCHEDULER_DAEMON_LEARN_VERSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/json/json.h"

#define VERSIONS_MAX 1000       /* lines kept in the journal */
#define VERSIONS_MAX_NUMBER 999999999

struct model_version {
	uint32_t number;        /* from 1 on; attempts that were not taken have one, too */
	uint32_t rolled_back_to;/* not a training: that version is in use again; UINT32_MAX otherwise. 0:
	                           the configuration's model */
	bool accepted;          /* has a file, unless it was pruned since */
	char created[32];       /* RFC 3339, UTC */
	char reason[64];        /* "200 jobs", "drift", "asked for" */
	char message[256];      /* for people: the result */
	size_t rows;            /* trained on */
	size_t observations;    /* of the daemon's own among them */
	size_t tested;          /* jobs the models were compared on; 0: there was nothing to compare with */
	double old_error, new_error, p; /* medians of |log error|, and the p value; NaN: not compared */
	bool kept;              /* its file is there; filled in by versions_list() */
};

struct versions;
/* Makes the folder (0700) where it is not there. */
int versions_open(const char *folder, struct versions **out, struct err *err);
void versions_free(struct versions *v);

uint32_t versions_next(const struct versions *v); /* number of the next attempt */
/* "FOLDER/0007.model"; to be freed; NULL without memory. */
char *versions_path(const struct versions *v, uint32_t number);
/* Adds a line; without one (ERR_IO, ERR_NOMEM) nothing has changed. */
int versions_add(struct versions *v, const struct model_version *one, struct err *err);
/* Removes files until the last `keep` are there; the one in use always stays. */
void versions_prune(struct versions *v, size_t keep);
/* The version in use: the last accepted one, or what was rolled back to; 0: none, so the configuration's. A
 * version whose file is gone counts as not there. */
uint32_t versions_current(const struct versions *v);
/* Oldest first, at most `max` of the latest; returns how many. */
size_t versions_list(const struct versions *v, struct model_version *out, size_t max);

/* An object: a line of the journal, or what a client gets, with whether its file is there. */
void model_version_to_json(const struct model_version *one, bool to_client, struct json_writer *w);

#endif
