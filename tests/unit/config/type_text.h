/* A job type as text, as the tests of this folder write it: read, or refused. The type is "digits", and its
 * place TYPE_WHERE. */
#ifndef TESTS_UNIT_CONFIG_TYPE_TEXT_H
#define TESTS_UNIT_CONFIG_TYPE_TEXT_H

#include "scheduler/config/job_type.h"

#define TYPE_WHERE "c.json: types.digits"

int type_read(const char *text, struct job_type *out, struct err *err);
struct job_type type_must(const char *text); /* reads it, or the test fails */
/* The text is refused as malformed, and nothing is written. The message starts with TYPE_WHERE and `place`,
 * and has `say` in it. */
void type_refused(const char *text, const char *place, const char *say);

#endif
