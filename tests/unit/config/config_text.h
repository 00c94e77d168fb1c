/* A configuration as text, as the tests of this folder write it: read, or refused. */
#ifndef TESTS_UNIT_CONFIG_CONFIG_TEXT_H
#define TESTS_UNIT_CONFIG_CONFIG_TEXT_H

#include "scheduler/config/config.h"

int read_text(const char *text, struct config **out, struct err *err);
struct config *must(const char *text); /* reads it, or the test fails */
/* The text is refused as malformed; the message starts with `start` and has `say` in it. */
void refuses(const char *text, const char *start, const char *say);

#endif
