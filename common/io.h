/* Files: whole-file reading with a limit, atomic writing, and system calls that a test can make
 * fail at the k-th call. */
#ifndef COMMON_IO_H
#define COMMON_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/err.h"

/* Reads a whole file (or "-", standard input) of at most `max` bytes; *out is NUL-terminated, to
 * be freed. A missing file is ERR_NOTFOUND, a folder or a longer file ERR_FORMAT. */
int io_read_file(const char *path, size_t max, char **out, size_t *out_len, struct err *err);

/* All or nothing: temporary file in the same folder, write, fsync, rename, fsync of the folder. "-" and
 * existing paths that are not regular files (a pipe, /dev/stdout) are written to directly; a link is
 * followed. After an error the old file is still complete. Only if syncing the folder fails at the very end
 * is it the new one, and the error says so. */
int io_write_file(const char *path, const void *bytes, size_t len, struct err *err);

enum err_code io_code_of(int error); /* for an error number of the system */

/* Tests only: the k-th open, read, write, fsync or rename from now on fails with `error` (k or
 * `error` 0: none). */
void io_fail_at(unsigned long k, int error);
bool io_failed(void);

#endif
