/* A progress bar on stderr, drawn only where stderr is a terminal, at most ten times a second.
 * Adding is safe from any thread. A NULL progress is allowed everywhere and does nothing. */
#ifndef COMMON_PROGRESS_H
#define COMMON_PROGRESS_H

#include <stddef.h>

struct progress;

struct progress *progress_new(const char *label, size_t total); /* NULL if no bar will be drawn */
void progress_total(struct progress *p, size_t total);          /* the estimate changed */
void progress_add(struct progress *p, size_t n);
void progress_free(struct progress *p);                         /* wipes the bar's line */

#endif
