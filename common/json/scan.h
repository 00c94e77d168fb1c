/* The judge of what is valid JSON, for json.c: every error with its line and column, before a tree is built. */
#ifndef COMMON_JSON_SCAN_H
#define COMMON_JSON_SCAN_H

#include <stddef.h>

#include "common/err.h"

#define JSON_MAX_NUMBER 63 /* characters of a number; some versions of cJSON cut the rest off */

struct json_extent {         /* what the tree of a text will hold */
	size_t n_values;
	size_t n_strings;    /* keys too */
	size_t string_bytes; /* as they stand in the text, quotes included */
};

/* ERR_FORMAT "NAME:LINE:COLUMN: reason", or ERR_NOMEM. */
int json_scan(const char *name, const char *text, size_t len, struct json_extent *out, struct err *err);
int json_nomem(const char *name, struct err *err); /* fills the error, returns -ERR_NOMEM */

#endif
