/* Columns that are computed from others, for prepare.c. */
#ifndef AUTOML_EXTEND_H
#define AUTOML_EXTEND_H

#include "automl/prepare.h"

struct prepare { /* what the steps share */
	const struct campaign *c;
	struct prepared *p;
	struct err *err;
};

/* Takes the column's contents, also when it fails, and makes it active. A NULL name is a failed
 * allocation. */
int prepare_add(struct prepare *s, struct made_column *col);
void prepare_log(struct prepare *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "FILE:LINE: [SECTION] KEY: reason" */
int prepare_fail(const struct prepare *s, const char *section, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Inverses, logarithms, products, and the features of Ernest. */
int extend_columns(struct prepare *s);

#endif
