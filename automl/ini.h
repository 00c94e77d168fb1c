/* A campaign as it is written: sections of keys and values, from the .ini dialect of aMLLibrary (Python's
 * configparser with case kept) or from JSON ({"General": {"y": "t", ...}, ...}). campaign.h says what the
 * keys mean. */
#ifndef AUTOML_INI_H
#define AUTOML_INI_H

#include "automl/literal.h"

#define INI_MAX_BYTES ((size_t)4 << 20)
#define INI_MAX_SECTIONS 256
#define INI_MAX_KEYS 1024 /* of a section */
#define INI_FILE_SHOWN 120 /* of a long path its end */

struct ini_key {
	char *name;
	struct literal value;
	char why[128]; /* a bare word that looks like a literal: why it is none; else empty */
	unsigned line; /* 0: not known (JSON) */
};

struct ini_section {
	char *name;
	unsigned line;
	struct ini_key *key;
	size_t n, cap;
};

struct ini {
	char *file; /* what errors call it */
	struct ini_section *section;
	size_t n, cap;
};

/* A text that begins with '{' is JSON. Errors are "FILE:LINE: reason" (ERR_FORMAT). */
int ini_parse(const char *file, const char *text, size_t len, struct ini **out, struct err *err);
int ini_read_file(const char *path, struct ini **out, struct err *err);
void ini_free(struct ini *f);

const struct ini_section *ini_section(const struct ini *f, const char *name); /* NULL: there is none */
const struct ini_key *ini_key(const struct ini_section *s, const char *name); /* NULL too; s may be NULL */

/* "FILE:LINE: [SECTION] KEY: reason"; key NULL: about the section. */
int ini_fail(const struct ini *f, const struct ini_section *s, const struct ini_key *key, struct err *err,
             const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#endif
