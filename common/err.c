/* What went wrong, as a code and a sentence; and the exit code a program ends with because of it. */
#include "common/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_fail(struct err *e, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	if (e) {
		e->code = code;
		va_start(ap, fmt);
		vsnprintf(e->text, sizeof e->text, fmt, ap);
		va_end(ap);
	}
	return -(int)code;
}

int err_nomem(struct err *e, const char *what, ...)
{
	char shown[sizeof e->text - 32];
	va_list ap;

	if (!what)
		return err_fail(e, ERR_NOMEM, "out of memory");
	va_start(ap, what);
	vsnprintf(shown, sizeof shown, what, ap);
	va_end(ap);
	return err_fail(e, ERR_NOMEM, "out of memory for %s", shown);
}

int err_prefix(struct err *e, const char *fmt, ...)
{
	char joined[2 * sizeof e->text + 2]; /* room for both, so that only the last step cuts */
	size_t used;
	va_list ap;

	if (!e)
		return -ERR_ARG;
	va_start(ap, fmt);
	vsnprintf(joined, sizeof e->text, fmt, ap);
	va_end(ap);
	used = strlen(joined);
	memcpy(joined + used, ": ", 2);
	memcpy(joined + used + 2, e->text, strlen(e->text) + 1);
	memcpy(e->text, joined, sizeof e->text - 1);
	return -(int)e->code;
}

int err_if_stopped(const atomic_bool *stop, struct err *e)
{
	return stop && atomic_load_explicit(stop, memory_order_relaxed) ? err_fail(e, ERR_STOPPED, "stopped")
									: 0;
}

int err_exit_code(enum err_code code)
{
	switch (code) {
	case ERR_NONE: return 0;
	case ERR_ARG: return 2;
	case ERR_NOTFOUND: return 4;
	case ERR_FORMAT: return 6;
	case ERR_PERM: return 7;
	case ERR_BUSY: return 8;
	case ERR_NOMEM:
	case ERR_IO:
	case ERR_NUMERIC:
	case ERR_UNSTABLE:
	case ERR_NODATA:
	case ERR_STOPPED: break;
	}
	return 1;
}
