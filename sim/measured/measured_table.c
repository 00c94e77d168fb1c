/* Reads an observation table: its usable rows, the levels of its columns, and the settings they form. */
#include "sim/measured/measured_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/stats.h"
#include "common/text/text.h"

#define MOST_SECONDS 1e12 /* of a time, and ... */
#define MOST_PROCESSES 1e9 /* ... of a load: beyond is a slip, and sums stay finite */
#define MOST_LEVELS 65535 /* they are counted in 16 bits */

static const char *file_of(const struct measured_table *t)
{
	return text_tail(t->csv->name, 150);
}

static int nomem(const struct measured_table *t, struct err *err)
{
	return err_fail(err, ERR_NOMEM, "%s: out of memory for the settings of the table", file_of(t));
}

/* ---- files ---- */

static int read_files(struct measured_table *t, const char *argument, struct err *err)
{
	const char *plus = strstr(argument, ".csv+");
	struct csv *curve = NULL;
	char *runs;
	int rc;

	runs = plus ? mem_strndup(argument, (size_t)(plus - argument) + 4) : mem_strdup(argument);
	if (!runs)
		return err_nomem(err, "the name of a table");
	rc = csv_read_file(runs, &t->runs, err);
	if (!rc && !t->schema)
		rc = schema_for_table(t->runs, &t->own_schema, err);
	t->schema = t->schema ? t->schema : t->own_schema;
	t->csv = t->runs;
	if (!rc && plus)
		rc = csv_read_file(plus + 5, &curve, err);
	if (!rc && plus)
		rc = curves_join(t->runs, curve, t->schema, &t->curves, err);
	if (!rc && plus)
		t->csv = t->curves->csv;
	csv_free(curve);
	free(runs);
	return rc;
}

/* ---- columns ---- */

static bool is_role(const struct schema *s, size_t column, enum feature_role role)
{
	return schema_role(s, role) == (int)column;
}

static int add_axis(struct measured_table *t, size_t column, struct err *err)
{
	const char *name = t->schema->column[column].name;

	if (t->n_axes == MEASURED_MAX_AXES)
		return err_fail(err, ERR_FORMAT,
				"%s: column %s: at most %d columns of numbers can be interpolated between",
				file_of(t), name, MEASURED_MAX_AXES);
	if (is_role(t->schema, column, ROLE_BATCH))
		t->batch_axis = t->n_axes;
	if (is_role(t->schema, column, ROLE_CPUS))
		t->cpus_axis = t->n_axes;
	if (is_role(t->schema, column, ROLE_EPOCHS))
		t->epochs_axis = (int)t->n_axes;
	t->axis[t->n_axes++] = (struct measured_axis){ .column = column, .name = name };
	return 0;
}

static int add_category(struct measured_table *t, size_t column, struct err *err)
{
	const char *name = t->schema->column[column].name;

	if (t->n_categories == MEASURED_MAX_CATEGORIES)
		return err_fail(err, ERR_FORMAT, "%s: column %s: at most %d columns of categories",
				file_of(t), name, MEASURED_MAX_CATEGORIES);
	t->category[t->n_categories++] = (struct measured_category){ .column = column, .name = name };
	return 0;
}

static int find_columns(struct measured_table *t, struct err *err)
{
	int rc = 0;

	t->batch_axis = t->cpus_axis = MEASURED_MAX_AXES;
	t->epochs_axis = -1;
	for (size_t i = 0; i < t->schema->n_columns && !rc; i++) {
		if (!t->table->column[i].present || is_role(t->schema, i, ROLE_NJOBS) ||
		    is_role(t->schema, i, ROLE_PROCESSES) || is_role(t->schema, i, ROLE_OTHER))
			continue; /* the load is not part of a setting */
		rc = t->schema->column[i].kind == COLUMN_CATEGORY ? add_category(t, i, err)
								  : add_axis(t, i, err);
	}
	if (!rc && (t->batch_axis == MEASURED_MAX_AXES || t->cpus_axis == MEASURED_MAX_AXES))
		rc = err_fail(err, ERR_FORMAT,
			      "%s: no column of %s, without which nothing can happen to a job", file_of(t),
			      t->batch_axis == MEASURED_MAX_AXES ? "batches" : "cpus");
	return rc;
}

/* ---- rows ---- */

static double role_value(const struct measured_table *t, enum feature_role role, size_t i)
{
	int at = schema_role(t->schema, role);

	return at >= 0 && t->table->column[at].present ? t->table->column[at].number[i] : NAN;
}

/* Processes of all jobs: said, or cpus x njobs, or its own alone. */
static double processes_of(const struct measured_table *t, size_t i, double cpus)
{
	double p = role_value(t, ROLE_PROCESSES, i), njobs = role_value(t, ROLE_NJOBS, i);

	return !isnan(p) ? p : !isnan(njobs) ? cpus * njobs : cpus;
}

static bool is_usable(const struct measured_table *t, size_t i, int status)
{
	if (status >= 0 && strcmp(csv_cell(t->csv, t->table->row[i], (size_t)status), "ok"))
		return false;
	if (!(t->table->time[i] > 0.0 && t->table->time[i] <= MOST_SECONDS))
		return false;
	for (size_t a = 0; a < t->n_axes; a++)
		if (!(t->table->column[t->axis[a].column].number[i] > 0.0))
			return false;
	for (size_t c = 0; c < t->n_categories; c++)
		if (!t->table->column[t->category[c].column].category[i])
			return false;
	return true;
}

/* `profile` has measured it beside jobs of another setting. Few settings have such a row: what happens to a
 * job would depend on whether its setting does. */
static bool is_mixed(const struct measured_table *t, size_t i, double cpus)
{
	double p = role_value(t, ROLE_PROCESSES, i), njobs = role_value(t, ROLE_NJOBS, i);

	return csv_column(t->csv, "copy") >= 0 && fabs(p - cpus * njobs) > 1e-6; /* false: one is not known */
}

/* row[].setting is the index in the table for now. */
static int take_rows(struct measured_table *t, struct err *err)
{
	int status = csv_column(t->csv, "status");

	t->row = mem_array(t->table->n_rows, sizeof *t->row);
	if (!t->row)
		return nomem(t, err);
	for (size_t i = 0; i < t->table->n_rows; i++) {
		double cpus = t->table->column[t->axis[t->cpus_axis].column].number[i];
		double others = is_usable(t, i, status) && !is_mixed(t, i, cpus)
					? processes_of(t, i, cpus) - cpus
					: NAN;

		if (!(others <= MOST_PROCESSES))
			continue;
		t->row[t->n_rows++] = (struct measured_row){
			.csv_row = t->table->row[i],
			.setting = (uint32_t)i,
			.others = others > 0.0 ? others : 0.0,
			.time_s = t->table->time[i],
			.accuracy = t->table->accuracy ? t->table->accuracy[i] : NAN,
		};
	}
	t->n_left_out = t->csv->n_rows - t->n_rows;
	if (!t->n_rows)
		return err_fail(err, ERR_NODATA,
				"%s: none of its %zu rows can be used: a row needs a time, and numbers above "
				"0 (and the status ok, where there is one)",
				file_of(t), t->csv->n_rows);
	return 0;
}

/* ---- levels and settings ---- */

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int find_levels(struct measured_table *t, struct measured_axis *a, struct err *err)
{
	size_t n = 0;

	a->level = mem_array(t->n_rows, sizeof *a->level);
	if (!a->level)
		return nomem(t, err);
	for (size_t i = 0; i < t->n_rows; i++)
		a->level[i] = t->table->column[a->column].number[t->row[i].setting];
	stats_sort(a->level, t->n_rows);
	for (size_t i = 0; i < t->n_rows; i++)
		if (!n || a->level[i] > a->level[n - 1] * (1.0 + MEASURED_SAME))
			a->level[n++] = a->level[i];
	a->n_levels = n;
	if (n > MOST_LEVELS)
		return err_fail(err, ERR_FORMAT, "%s: column %s: more than %d levels", file_of(t), a->name,
				MOST_LEVELS);
	if (n > 1)
		a->scale = 1.0 / log(a->level[n - 1] / a->level[0]);
	return 0;
}

static int find_values(struct measured_table *t, struct measured_category *c, struct err *err)
{
	size_t n = 0;

	c->value = mem_array(t->n_rows, sizeof *c->value);
	if (!c->value)
		return nomem(t, err);
	for (size_t i = 0; i < t->n_rows; i++)
		c->value[i] = t->table->column[c->column].category[t->row[i].setting];
	qsort(c->value, t->n_rows, sizeof *c->value, compare_texts);
	for (size_t i = 0; i < t->n_rows; i++)
		if (!n || strcmp(c->value[n - 1], c->value[i]))
			c->value[n++] = c->value[i];
	c->n_values = n;
	return 0;
}

static int find_grid(struct measured_table *t, struct err *err)
{
	uint64_t combos = 1, fields = 1, all;
	bool fits = true;
	int rc = 0;

	for (size_t c = 0; c < t->n_categories && !rc; c++) {
		rc = find_values(t, &t->category[c], err);
		combos *= t->category[c].n_values;
		fits = fits && combos <= MEASURED_MAX_COMBOS;
	}
	for (size_t a = 0; a < t->n_axes && !rc; a++) {
		rc = find_levels(t, &t->axis[a], err);
		fits = fits && !__builtin_mul_overflow(fields, (uint64_t)t->axis[a].n_levels, &fields);
	}
	if (rc)
		return rc;
	if (!fits || __builtin_mul_overflow(fields, combos, &all))
		return err_fail(err, ERR_FORMAT,
				"%s: too many values of categories and levels of numbers for a grid",
				file_of(t));
	t->n_combos = (uint32_t)combos;
	t->fields = fields;
	return 0;
}

static uint64_t key_of(const struct measured_table *t, uint32_t combo, const uint16_t *level)
{
	uint64_t key = combo;

	for (size_t a = 0; a < t->n_axes; a++)
		key = key * t->axis[a].n_levels + level[a];
	return key;
}

size_t measured_axis_level(const struct measured_axis *a, double v)
{
	size_t low = 0, high = a->n_levels - 1;

	while (low < high) {
		size_t middle = (low + high + 1) / 2;

		if (a->level[middle] <= v * (1.0 + MEASURED_SAME))
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static struct measured_setting setting_of(const struct measured_table *t, size_t row)
{
	struct measured_setting s = { 0 };

	for (size_t c = 0; c < t->n_categories; c++) {
		const struct measured_category *k = &t->category[c];
		char *const *value = &t->table->column[k->column].category[row];
		const char **at = bsearch(value, k->value, k->n_values, sizeof *k->value, compare_texts);

		s.combo = s.combo * (uint32_t)k->n_values + (uint32_t)(at - k->value);
	}
	for (size_t a = 0; a < t->n_axes; a++) {
		s.level[a] = (uint16_t)measured_axis_level(&t->axis[a],
							   t->table->column[t->axis[a].column].number[row]);
		s.z[a] = log(t->axis[a].level[s.level[a]]);
	}
	s.key = key_of(t, s.combo, s.level);
	return s;
}

static int compare_settings(const void *a, const void *b)
{
	uint64_t x = ((const struct measured_setting *)a)->key, y = ((const struct measured_setting *)b)->key;

	return (x > y) - (x < y);
}

static int32_t find_key(const struct measured_table *t, uint64_t key)
{
	struct measured_setting wanted = { .key = key };
	const struct measured_setting *s =
		bsearch(&wanted, t->setting, t->n_settings, sizeof *t->setting, compare_settings);

	return s ? (int32_t)(s - t->setting) : -1;
}

size_t measured_table_first(const struct measured_table *t, uint32_t combo)
{
	size_t low = 0, high = t->n_settings;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->setting[middle].key < combo * t->fields)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int32_t measured_table_find(const struct measured_table *t, uint32_t combo, const uint16_t *level)
{
	return find_key(t, key_of(t, combo, level));
}

static int find_settings(struct measured_table *t, struct err *err)
{
	uint64_t *key = mem_array(t->n_rows, sizeof *key);
	size_t n = 0;

	t->setting = mem_array(t->n_rows, sizeof *t->setting);
	if (!key || !t->setting) {
		free(key);
		return nomem(t, err);
	}
	for (size_t i = 0; i < t->n_rows; i++) {
		t->setting[i] = setting_of(t, t->row[i].setting);
		key[i] = t->setting[i].key;
	}
	qsort(t->setting, t->n_rows, sizeof *t->setting, compare_settings);
	for (size_t i = 0; i < t->n_rows; i++)
		if (!n || t->setting[n - 1].key != t->setting[i].key)
			t->setting[n++] = t->setting[i];
	t->n_settings = n;
	for (size_t i = 0; i < t->n_rows; i++)
		t->row[i].setting = (uint32_t)find_key(t, key[i]);
	free(key);
	return 0;
}

static int find_ranges(struct measured_table *t, struct err *err)
{
	size_t n = t->n_combos * t->n_axes;

	t->low = mem_array(n, sizeof *t->low);
	t->high = mem_array(n, sizeof *t->high);
	if (!t->low || !t->high)
		return nomem(t, err);
	for (size_t i = 0; i < n; i++)
		t->low[i] = t->high[i] = NAN;
	for (size_t i = 0; i < t->n_settings; i++) {
		const struct measured_setting *s = &t->setting[i];

		for (size_t a = 0; a < t->n_axes; a++) {
			double v = t->axis[a].level[s->level[a]], *low = &t->low[s->combo * t->n_axes + a];
			double *high = &t->high[s->combo * t->n_axes + a];

			*low = fmin(*low, v); /* of a number and NaN both give the number */
			*high = fmax(*high, v);
		}
	}
	return 0;
}

/* ---- all of it ---- */

int measured_table_open(const char *argument, const struct schema *schema, size_t hold_out,
			struct measured_table **out, struct err *err)
{
	struct measured_table *t = mem_calloc(1, sizeof *t);
	int rc;

	if (!t)
		return err_nomem(err, "the table of a world");
	t->hold_out = hold_out;
	t->schema = schema;
	rc = read_files(t, argument, err);
	if (!rc)
		rc = table_read(t->csv, t->schema, true, &t->table, err);
	if (!rc)
		rc = find_columns(t, err);
	if (!rc)
		rc = take_rows(t, err);
	if (!rc)
		rc = find_grid(t, err);
	if (!rc)
		rc = find_settings(t, err);
	if (!rc)
		rc = find_ranges(t, err);
	if (!rc)
		rc = measured_table_part(t, err);
	if (rc)
		measured_table_free(t);
	else
		*out = t;
	return rc;
}

void measured_table_free(struct measured_table *t)
{
	if (!t)
		return;
	for (size_t a = 0; a < t->n_axes; a++)
		free(t->axis[a].level);
	for (size_t c = 0; c < t->n_categories; c++)
		free(t->category[c].value);
	free(t->row);
	free(t->setting);
	free(t->low);
	free(t->high);
	free(t->replication);
	table_free(t->table);
	curves_free(t->curves);
	csv_free(t->runs);
	schema_free(t->own_schema);
	free(t);
}
