/* The transcripts of docs/PROTOCOL.md, read and replayed against a real daemon. The document itself says how
 * they are to be read ("How to read the transcripts"); nothing is taken that it does not explain. */
#ifndef TESTS_DAEMON_TRANSCRIPT_H
#define TESTS_DAEMON_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/json/json.h"

struct step {
	char kind;              /* '>' sent, '<' expected, '@' done by us */
	size_t line;            /* in the document */
	char *text;
	struct json *expected;  /* of '<' */
};

struct transcript {
	char name[96];          /* "PROTOCOL.md:123: submit" */
	struct step *step; size_t n_steps, cap;
	bool needs_root;        /* has clients of another user */
};

struct document {
	char *text;             /* the whole file */
	char *lines;            /* again, cut into lines: what the steps point into */
	struct transcript *transcript; size_t n_transcripts, cap;
	struct json *configuration;
};

/* Dies, naming the line, where the document cannot be read. */
void document_read(const char *path, struct document *out);
void document_release(struct document *d);

/* `model`: a file; what did not come as expected is told on stdout, both lines. */
bool transcript_replay(const struct document *d, const struct transcript *t, const char *model);

#endif
