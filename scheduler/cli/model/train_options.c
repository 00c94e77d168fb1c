/* The options of `postrider train` that have a grammar: --split and --group. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "predictors/data/features.h"
#include "scheduler/cli/model/views.h"

static int split_column(const char *text, const char *column, const struct table *t, size_t *out,
			struct err *err)
{
	struct features *f;
	const char **name;
	char hint[TEXT_HINT];
	size_t n = 0;
	int at = schema_find(t->schema, column);
	int rc = features_fit(t, &f, err);

	if (rc)
		return rc;
	name = mem_calloc(f->n + 1, sizeof *name);
	if (!name) {
		features_free(f);
		return err_nomem(err, NULL);
	}
	if (at >= 0)
		column = t->schema->column[at].name; /* an alias stands for its column */
	rc = -ERR_ARG;
	for (size_t i = 0; i < f->n && rc; i++) {
		if (feature_is_category(&f->feature[i]))
			continue;
		name[n++] = f->feature[i].name;
		if (!strcmp(f->feature[i].name, column)) {
			*out = i;
			rc = 0;
		}
	}
	if (rc) {
		rc = err_fail(err, ERR_ARG, "--split %s: the table has no column of numbers '%s'%s", text,
			      column, text_hint(column, name, hint));
	}
	free(name);
	features_free(f);
	return rc;
}

/* "16,64": levels that are held out at once. */
static int levels_parse(const char *text, char *list, struct train_split *room, struct split_params *out,
			struct err *err)
{
	char *one;

	out->level = room->level;
	out->n_levels = 0;
	while ((one = strsep(&list, ","))) {
		if (out->n_levels == TRAIN_MAX_LEVELS)
			return err_fail(err, ERR_ARG, "--split %s: more than %d levels", text,
					TRAIN_MAX_LEVELS);
		if (!text_number(one, &room->level[out->n_levels++]))
			return err_fail(err, ERR_ARG, "--split %s: the level '%s' is not a number", text,
					one);
	}
	return 0;
}

int train_split_parse(const char *text, const struct table *t, struct train_split *room,
		      struct split_params *out, struct err *err)
{
	char buf[256], *part[4] = { NULL }, *rest = buf;
	size_t n = 0;
	uint64_t folds;

	if (strlen(text) >= sizeof buf)
		return err_fail(err, ERR_ARG, "--split: longer than any way to split");
	strcpy(buf, text);
	while (rest && n < 4)
		part[n++] = strsep(&rest, ":");
	if (rest)
		return err_fail(err, ERR_ARG, "--split %s: too many parts", text);
	if (!strcmp(part[0], "kfold") && n <= 2) {
		out->kind = SPLIT_KFOLD;
		out->folds = 5;
		if (n == 2) {
			if (!text_uint64(part[1], &folds) || folds < 2 || folds > 100000)
				return err_fail(err, ERR_ARG, "--split %s: '%s' folds; need 2 or more", text,
						part[1]);
			out->folds = (size_t)folds;
		}
		return 0;
	}
	if (!strcmp(part[0], "holdout") && n <= 3) {
		out->kind = SPLIT_HOLDOUT;
		out->folds = 20;
		out->share = 0.2;
		if (n > 1) {
			if (!text_uint64(part[1], &folds) || folds < 1 || folds > 100000)
				return err_fail(err, ERR_ARG, "--split %s: '%s' repetitions; need 1 or more",
						text, part[1]);
			out->folds = (size_t)folds;
		}
		if (n > 2 && (!text_number(part[2], &out->share) || !(out->share > 0.0 && out->share < 1.0)))
			return err_fail(err, ERR_ARG, "--split %s: the share '%s' is not between 0 and 1",
					text, part[2]);
		return 0;
	}
	if (!strcmp(part[0], "leave-group") && n == 1) {
		out->kind = SPLIT_LEAVE_GROUP;
		return 0;
	}
	if (!strcmp(part[0], "interpolate") && (n == 2 || n == 3)) {
		out->kind = SPLIT_INTERPOLATE;
		if (n == 3 && levels_parse(text, part[2], room, out, err))
			return -ERR_ARG;
		return split_column(text, part[1], t, &out->feature, err);
	}
	if (!strcmp(part[0], "extrapolate") && (n == 2 || n == 3)) {
		out->kind = SPLIT_EXTRAPOLATE;
		out->bound = NAN;
		if (n == 3 && !text_number(part[2], &out->bound))
			return err_fail(err, ERR_ARG, "--split %s: the bound '%s' is not a number", text,
					part[2]);
		return split_column(text, part[1], t, &out->feature, err);
	}
	return err_fail(err, ERR_ARG,
			"--split %s: write kfold:5, holdout:20:0.2, leave-group, "
			"interpolate:COLUMN[:LEVEL,LEVEL] or extrapolate:COLUMN[:BOUND]",
			text);
}

/* "network,cpus" into names inside `buf`. */
int train_groups_parse(const char *text, char *buf, size_t size, const char **out, size_t *out_n,
		       struct err *err)
{
	char *rest = buf, *one;

	if (strlen(text) >= size)
		return err_fail(err, ERR_ARG, "--group: the list is too long");
	strcpy(buf, text);
	*out_n = 0;
	while ((one = strsep(&rest, ","))) {
		if (!*one)
			return err_fail(err, ERR_ARG, "--group %s: an empty name; write COLUMN,COLUMN", text);
		if (*out_n == TRAIN_MAX_GROUPS)
			return err_fail(err, ERR_ARG, "--group %s: more than %d columns", text,
					TRAIN_MAX_GROUPS);
		out[(*out_n)++] = one;
	}
	return 0;
}
