/* A command whose settings are in a file: `init` and `run` with --template FILE. */
#ifndef SCHEDULER_CLI_JOB_JOB_TEMPLATE_H
#define SCHEDULER_CLI_JOB_JOB_TEMPLATE_H

#include <stddef.h>

#include "common/err.h"

/* The words of `postrider fill`, which runs the command with FILE filled in: the word of the command that
 * names FILE, as it is or without its ".in", stands for the copy. To be freed with argv_free(). file NULL:
 * the words as they are. ERR_ARG: no word names it; ERR_FORMAT: it has no placeholder. */
int job_template_words(const char *file, char *const *word, size_t n, char ***out, size_t *out_n,
                       struct err *err);

#endif
