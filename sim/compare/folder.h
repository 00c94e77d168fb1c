/* The folder that results are written to (-o DIR): checked before the work, and each file written whole or
 * not at all. */
#ifndef SIM_COMPARE_FOLDER_H
#define SIM_COMPARE_FOLDER_H

#include <signal.h>

#include "common/err.h"
#include "common/strbuf.h"

/* Can it be made or written to? ERR_ARG: it is a file; ERR_NOTFOUND, ERR_PERM: the folder around it is
 * missing or closed. */
int folder_check(const char *dir, struct err *err);
int folder_make(const char *dir, struct err *err); /* one that is there is fine */
/* "DIR/NAME", to be freed; NULL: no memory */
char *folder_path(const char *dir, const char *name, struct err *err);
int folder_write(const char *dir, const char *name, const struct strbuf *text, struct err *err);
/* Removes a file of an earlier run, which would not fit the numbers of this one. It need not be there. */
int folder_remove(const char *dir, const char *name, struct err *err);
/* The last system error, as "cannot WHAT PATH: reason". */
int folder_error(const char *what, const char *path, struct err *err);

/* Between these two signals wait, so that files which belong together are written together. */
void folder_hold_signals(sigset_t *before);
void folder_release_signals(const sigset_t *before);

#endif
