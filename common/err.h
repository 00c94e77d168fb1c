/* Errors: a code the caller can branch on and a sentence an operator can act on.
 * Everything that can fail returns 0 or -code and takes a `struct err *` last. */
#ifndef COMMON_ERR_H
#define COMMON_ERR_H

#include <stdatomic.h>
#include <stdbool.h>

enum err_code {
	ERR_NONE,
	ERR_NOMEM,
	ERR_ARG,      /* the caller asked for something that makes no sense (usage) */
	ERR_IO,       /* the operating system said no */
	ERR_FORMAT,   /* a file or message is not what it claims to be */
	ERR_NUMERIC,  /* the mathematics has no answer for this input */
	ERR_UNSTABLE, /* a queue without a steady state: an answer, not an accident */
	ERR_NODATA,   /* too few observations for what was asked */
	ERR_BUSY,     /* refused for now */
	ERR_NOTFOUND, /* no such file, model or job */
	ERR_PERM,     /* not permitted */
	ERR_STOPPED,  /* the caller asked for it to stop */
};

struct err {
	enum err_code code;
	char text[512];
}; /* all zero: nothing went wrong */

/* Fills `e` unless it is NULL; returns -code, so that `return err_fail(...)` reads well. */
int err_fail(struct err *e, enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* "out of memory for WHAT", or "out of memory" without `what`; returns -ERR_NOMEM. */
int err_nomem(struct err *e, const char *what, ...) __attribute__((format(printf, 2, 3)));

/* Puts "PREFIX: " before the text that is already there; returns -e->code (or -ERR_ARG for NULL). */
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* For long work that another thread may stop by setting a flag: 0, or -ERR_STOPPED once `stop` is set. NULL: never. */
int err_if_stopped(const atomic_bool *stop, struct err *e);

/* The exit code of design for a program that stops because of this error. */
int err_exit_code(enum err_code code);

#endif
