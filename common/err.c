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

int err_prefix(struct err *e, const char *fmt, ...)
{
	char old[sizeof e->text];
	va_list ap;
	int used;

	if (!e)
		return -ERR_ARG;
	memcpy(old, e->text, sizeof old);
	va_start(ap, fmt);
	used = vsnprintf(e->text, sizeof e->text, fmt, ap);
	va_end(ap);
	if (used >= 0 && (size_t)used + 3 < sizeof e->text) {
		size_t room = sizeof e->text - (size_t)used - 3, len = strnlen(old, sizeof old);

		memcpy(e->text + used, ": ", 2);
		memcpy(e->text + used + 2, old, len < room ? len : room);
		e->text[(size_t)used + 2 + (len < room ? len : room)] = '\0';
	}
	return -(int)e->code;
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
	case ERR_NODATA: break;
	}
	return 1;
}
