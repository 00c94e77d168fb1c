/* Columns that are computed from others: inverses, logarithms, products, and the features of Ernest
 * (Venkataraman et al., NSDI 2016). See prepare.h for the order of the steps. */
#define _GNU_SOURCE /* qsort_r() */
#include "automl/prepare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"

static void column_release(struct made_column *col)
{
	free(col->name);
	free(col->class);
	free(col->of);
	free(col->value);
}

int prepare_add(struct prepare *s, struct made_column *col)
{
	struct prepared *p = s->p;
	uint32_t *x;
	int rc = 0;

	if (p->n_columns >= PREPARE_MAX_COLUMNS || p->n_columns >= PREPARE_MAX_CELLS / p->n_rows)
		rc = err_fail(s->err, ERR_ARG, "%s: there would be more than %d columns",
			      text_tail(s->c->ini->file, INI_FILE_SHOWN), PREPARE_MAX_COLUMNS);
	else if (!col->name || (col->by == MADE_CLASS && (!col->class || !col->value)))
		rc = err_nomem(s->err, "a column");
	for (size_t i = 0; i < p->n_columns && !rc && col->by != MADE_PRODUCT; i++)
		if (!strcmp(p->column[i].name, col->name))
			rc = err_fail(s->err, ERR_FORMAT, "%s: column '%.80s' would be there twice",
				      text_tail(s->c->ini->file, INI_FILE_SHOWN), col->name);
	if (!rc && mem_grow((void **)&p->column, &p->cap, p->n_columns + 1, sizeof *p->column))
		rc = err_nomem(s->err, "a column");
	x = rc ? NULL : mem_resize(p->x, p->n_x + 1, sizeof *p->x);
	if (!rc && !x)
		rc = err_nomem(s->err, "a column");
	if (rc) {
		column_release(col);
		return rc;
	}
	p->x = x;
	p->x[p->n_x++] = (uint32_t)p->n_columns;
	p->column[p->n_columns++] = *col;
	return 0;
}

/* Takes the list `of`. */
static int add_made(struct prepare *s, enum made_by by, char *name, uint32_t *of, size_t n_of)
{
	struct prepared *p = s->p;
	struct made_column col = { .by = by, .name = name, .of = of, .n_of = n_of };
	double *row = mem_array(p->n_columns, sizeof *row);

	col.value = mem_array(p->n_rows, sizeof *col.value);
	if (!name || !of || !row || !col.value) {
		column_release(&col);
		free(row);
		return err_nomem(s->err, "a column");
	}
	for (size_t i = 0; i < p->n_rows; i++) {
		for (size_t k = 0; k < n_of; k++)
			row[of[k]] = p->column[of[k]].value[i];
		col.value[i] = made_value(by, of, n_of, row);
	}
	free(row);
	return prepare_add(s, &col);
}

static char *joined(const char *a, const char *b)
{
	struct strbuf name = { 0 };

	strbuf_printf(&name, "%s%s", a, b);
	if (name.failed)
		strbuf_release(&name);
	return name.text;
}

/* The active column of that name; SIZE_MAX: none. */
static size_t active(const struct prepared *p, const char *name)
{
	for (size_t j = 0; j < p->n_x; j++)
		if (!strcmp(p->column[p->x[j]].name, name))
			return p->x[j];
	return SIZE_MAX;
}

static int need_active(const struct prepare *s, const char *key, const char *name, size_t *out)
{
	const struct prepared *p = s->p;
	const char **all;
	char hint[TEXT_HINT];
	int rc;

	*out = active(p, name);
	if (*out != SIZE_MAX)
		return 0;
	all = mem_calloc(p->n_x + 1, sizeof *all);
	for (size_t j = 0; all && j < p->n_x; j++)
		all[j] = p->column[p->x[j]].name;
	rc = prepare_fail(s, "DataPreparation", key, "there is no feature '%.60s'%s", name,
			  all ? text_hint(name, all, hint) : "");
	free(all);
	return rc;
}

/* ---- inverses and logarithms ---- */

/* A column of 0 and 1, of which neither the inverse nor the logarithm means anything. */
static bool is_boolean(const struct made_column *c)
{
	return c->by == MADE_CLASS || c->boolean;
}

static int add_of_one(struct prepare *s, const char *key, enum made_by by, size_t from)
{
	struct prepared *p = s->p;
	const struct made_column *c = &p->column[from];
	uint32_t *of;

	for (size_t i = 0; i < p->all.n; i++) {
		double v = c->value[p->all.row[i]];

		if (by == MADE_INVERSE ? v == 0.0 : v <= 0.0)
			return prepare_fail(s, "DataPreparation", key,
					    "column '%.60s' is %g in line %u of the table", c->name, v,
					    p->csv->line[p->all.row[i]]);
	}
	of = mem_array(1, sizeof *of);
	if (of)
		of[0] = (uint32_t)from;
	return add_made(s, by, joined(by == MADE_INVERSE ? "inverse_" : "log_", c->name), of, 1);
}

static int step_of_one(struct prepare *s, const char *key, enum made_by by, const struct literal *list)
{
	struct prepared *p = s->p;
	size_t n = p->n_x, added = p->n_x;
	int rc = 0;

	if (!list)
		return 0;
	if (list->kind == LITERAL_STRING) { /* [*] */
		for (size_t j = 0; j < n && !rc; j++)
			if (!is_boolean(&p->column[p->x[j]]))
				rc = add_of_one(s, key, by, p->x[j]);
	}
	for (size_t i = 0; list->kind == LITERAL_LIST && i < list->n && !rc; i++) {
		size_t from = 0;

		rc = need_active(s, key, list->item[i].text, &from);
		if (!rc && is_boolean(&p->column[from]))
			prepare_log(s, "%s: %s is a column of True and False; passed over", key,
				    list->item[i].text);
		else if (!rc)
			rc = add_of_one(s, key, by, from);
	}
	if (!rc)
		prepare_log(s, "%s: %zu columns added", key, p->n_x - added);
	return rc;
}

/* ---- products ---- */

static char *product_name(const struct prepared *p, const uint32_t *of, size_t n)
{
	struct strbuf name = { 0 };

	for (size_t i = 0; i < n; i++)
		strbuf_printf(&name, "%s%s", i ? "__" : "", p->column[of[i]].name);
	if (name.failed)
		strbuf_release(&name);
	return name.text;
}

/* A column and its inverse cancel; of two values of one category at most one is 1. */
static bool pointless(const struct prepared *p, uint32_t a, uint32_t b)
{
	const struct made_column *x = &p->column[a], *y = &p->column[b];

	if ((x->by == MADE_INVERSE && x->of[0] == b) || (y->by == MADE_INVERSE && y->of[0] == a))
		return true;
	return x->by == MADE_CLASS && y->by == MADE_CLASS && x->source == y->source;
}

struct products {
	struct prepare *s;
	const uint32_t *base; /* by name */
	size_t n_base, degree, added;
	uint32_t of[1000];
};

static int add_product(struct prepare *s, const uint32_t *of, size_t n, size_t *added)
{
	char *name = product_name(s->p, of, n);
	uint32_t *copy = mem_array(n, sizeof *copy);

	if (copy)
		memcpy(copy, of, n * sizeof *copy);
	if (name && active(s->p, name) != SIZE_MAX) {
		prepare_log(s, "product: %s is there already; passed over", name);
		free(name);
		free(copy);
		return 0;
	}
	(*added)++;
	return add_made(s, MADE_PRODUCT, name, copy, n);
}

static int combine(struct products *c, size_t have, size_t from)
{
	int rc = 0;

	if (have == c->degree)
		return add_product(c->s, c->of, have, &c->added);
	for (size_t i = from; i < c->n_base && !rc; i++) {
		bool skip = false;

		for (size_t k = 0; k < have && !skip; k++)
			skip = pointless(c->s->p, c->of[k], c->base[i]);
		if (skip)
			continue;
		c->of[have] = c->base[i];
		rc = combine(c, have + 1, c->s->c->interactions_only ? i + 1 : i);
	}
	return rc;
}

static int step_selected(struct prepare *s)
{
	const struct literal *list = s->c->selected_products;
	size_t added = 0;
	int rc = 0;

	for (size_t i = 0; i < list->n && !rc; i++) {
		char *text = mem_strdup(list->item[i].text), *rest = text, *one;
		uint32_t of[64];
		size_t n = 0;

		if (!text)
			return err_nomem(s->err, "a product");
		while (!rc && (one = strsep(&rest, " "))) {
			size_t from = 0;

			if (!*one)
				continue;
			rc = n < 64 ? need_active(s, "selected_products", one, &from)
				    : prepare_fail(s, "DataPreparation", "selected_products",
						   "more than 64 factors");
			if (!rc)
				of[n++] = (uint32_t)from;
		}
		free(text);
		if (!rc && n < 2)
			rc = prepare_fail(
				s, "DataPreparation", "selected_products",
				"'%.60s': a product has two names or more, with blanks between them",
				list->item[i].text);
		if (!rc)
			rc = add_product(s, of, n, &added);
	}
	if (!rc)
		prepare_log(s, "selected_products: %zu columns added", added);
	return rc;
}

static int by_name(const void *a, const void *b, void *ctx)
{
	const struct made_column *sorting = ctx;

	return strcmp(sorting[*(const uint32_t *)a].name, sorting[*(const uint32_t *)b].name);
}

static int step_products(struct prepare *s)
{
	struct prepared *p = s->p;
	struct products *c;
	uint32_t *base;
	size_t most = s->c->product_max_degree;
	int rc = 0;

	if (s->c->selected_products)
		return step_selected(s);
	if (most < 2)
		return 0;
	base = mem_array(p->n_x, sizeof *base);
	c = mem_calloc(1, sizeof *c);
	if (!base || !c) {
		free(base);
		free(c);
		return err_nomem(s->err, "products");
	}
	memcpy(base, p->x, p->n_x * sizeof *base);
	qsort_r(base, p->n_x, sizeof *base, by_name, p->column);
	*c = (struct products){ .s = s, .base = base, .n_base = p->n_x };
	if (most == SIZE_MAX || (s->c->interactions_only && most > c->n_base))
		most = c->n_base < 1000 ? c->n_base : 1000;
	for (c->degree = 2; c->degree <= most && !rc; c->degree++)
		rc = combine(c, 0, 0);
	if (!rc)
		prepare_log(s, "product: %zu columns added up to degree %zu", c->added, most);
	free(base);
	free(c);
	return rc;
}

/* ---- Ernest ---- */

static int step_ernest(struct prepare *s)
{
	static const struct {
		const char *name;
		enum made_by by;
	} made[] = { { "datasize_over_cores", MADE_RATIO },
		     { "log_cores", MADE_LOG },
		     { "square_datasize_over_cores", MADE_ROOT_RATIO },
		     { "squared_datasize_over_cores", MADE_ROOT_OVER } };
	struct prepared *p = s->p;
	size_t size, cores;
	int rc = need_active(s, "ernest", "datasize", &size);

	if (!rc)
		rc = need_active(s, "ernest", "cores", &cores);
	for (size_t i = 0; i < p->all.n && !rc; i++) {
		uint32_t r = p->all.row[i];

		if (!(p->column[size].value[r] >= 0.0) || !(p->column[cores].value[r] > 0.0))
			rc = prepare_fail(s, "DataPreparation", "ernest",
					  "line %u of the table: datasize must not be negative and cores "
					  "must be above 0",
					  p->csv->line[r]);
	}
	if (rc)
		return rc;
	p->n_x = 0;
	for (size_t k = 0; k < 4 && !rc; k++) {
		uint32_t *of = mem_array(2, sizeof *of);

		if (of) {
			of[0] = (uint32_t)(made[k].by == MADE_LOG ? cores : size);
			of[1] = (uint32_t)cores;
		}
		rc = add_made(s, made[k].by, mem_strdup(made[k].name), of, made[k].by == MADE_LOG ? 1 : 2);
	}
	if (!rc)
		prepare_log(s, "ernest: 4 features of datasize and cores");
	return rc;
}

int extend_columns(struct prepare *s)
{
	int rc = step_of_one(s, "inverse", MADE_INVERSE, s->c->inverse);

	if (!rc)
		rc = step_of_one(s, "log", MADE_LOG, s->c->log);
	if (!rc)
		rc = step_products(s);
	if (!rc && s->c->ernest)
		rc = step_ernest(s);
	return rc;
}
