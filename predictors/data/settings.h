/* Settings of a model: name=value pairs checked against the model's own list of what it knows. */
#ifndef PREDICTORS_DATA_SETTINGS_H
#define PREDICTORS_DATA_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "common/json/json.h"

#define SETTINGS_MAX 24

struct setting_spec {            /* a NULL name ends the list */
	const char *name;
	double otherwise;        /* default */
	double min, max;         /* inclusive */
	bool integer;
	const char *const *words;/* NULL, or NULL-terminated words whose index is the value */
	const char *help;
	/* A number or fraction or word: where both `words` and a number make sense (max_features), a
	 * word w is stored as -(index+1) and a number as itself. */
	bool words_or_number;
};

struct settings {
	const struct setting_spec *spec;
	double value[SETTINGS_MAX];   /* by the spec's order */
};

void settings_init(struct settings *s, const struct setting_spec *spec); /* all defaults; NULL: no settings */
/* What is unknown, out of range or no such word is ERR_ARG and changes nothing. */
int settings_set(struct settings *s, const char *name, const char *value, struct err *err);
int settings_set_json(struct settings *s, const char *name, const struct json *value, struct err *err);
int settings_parse(struct settings *s, const char *text, struct err *err); /* "trees=50,depth=6" */
double settings_get(const struct settings *s, const char *name); /* asserts that the name exists */
void settings_to_json(const struct settings *s, struct json_writer *w);   /* an object */
/* "trees=2000 depth=6": only what differs from the defaults; returns buf */
char *settings_describe(const struct settings *s, char *buf, size_t size);

#endif
