/* A value deep inside a JSON document, by a path of names: "test.accuracy". Used by whatever looks for
 * numbers in the output of training commands: the profiler and the daemon. */
#ifndef COMMON_JSON_PATH_H
#define COMMON_JSON_PATH_H

#include "common/json/json.h"

#define JSON_PATH_MAX_NAME 128 /* bytes of one name in a path */

/* "a.b.c": members inside members. A member whose own name is the whole path goes first. NULL: there is
 * none. */
const struct json *json_path(const struct json *v, const char *path);

#endif
