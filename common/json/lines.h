/* The journal of a campaign: a file of JSON lines that grows, DIR/journal.jsonl, with one writer at a time.
 * `postrider profile` and `postrider automl` say what the lines are.
 *
 * A line is in the file whole or not at all: what a program that was killed had written of its last one is
 * cut off. Damage anywhere else is an error, because more may be damaged than one sees. */
#ifndef COMMON_JSON_LINES_H
#define COMMON_JSON_LINES_H

#include "common/json/json.h"

struct json_lines {
	char *path;
	int fd;                 /* -1: read only */
	long long len;          /* of the whole lines */
	size_t torn;            /* bytes behind them */
};

/* `busy`: what a process does that has the file ("is measuring with it"), for ERR_BUSY. NULL: only to read,
 * also what is not there. Close after failure, too. */
int json_lines_open(struct json_lines *f, const char *dir, const char *busy, struct err *err);
void json_lines_close(struct json_lines *f);

#define JSON_LINES_STRANGE 1
struct json_lines_reader {
	size_t max;             /* bytes of the file */
	/* 0, an error, or JSON_LINES_STRANGE: the line is no line of this journal. `line` counts from 1. */
	int (*take)(void *owner, const struct json *v, size_t line, struct err *err);
	void *owner;
	const char *strange;    /* "this is not a run of this design" */
};
int json_lines_read(struct json_lines *f, const struct json_lines_reader *r, struct err *err);

int json_lines_cut(struct json_lines *f, struct err *err); /* what is behind f->len */
/* Appends a line, or leaves the file as it was. sync: it is on the disk then. */
int json_lines_append(struct json_lines *f, const struct strbuf *line, bool sync, struct err *err);

#endif
