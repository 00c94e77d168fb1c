/* An observation table as the world `measured` sees it: rows that can be used, grouped into settings, and
 * parted into folds. A setting is all that was chosen for a run but the load: its categories, and its
 * numbers (cpus, batch, epochs, samples, ...), which are the axes of a grid. Numbers are compared by their
 * logarithms: from 64 to 128 is as far as from 256 to 512. Read measured_fold.h next. */
#ifndef SIM_WORLD_MEASURED_TABLE_H
#define SIM_WORLD_MEASURED_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/csv.h"
#include "predictors/data/curves.h"
#include "predictors/data/table.h"

#define MEASURED_MAX_AXES 8
#define MEASURED_MAX_CATEGORIES 8
#define MEASURED_MAX_COMBOS 4096      /* of their values */
#define MEASURED_MAX_REPLICATIONS 256
#define MEASURED_SAME 1e-9 /* numbers that differ by less, relatively, are the same level */

struct measured_axis {
	size_t column;           /* of the schema */
	const char *name;
	double *level; size_t n_levels; /* ascending, all > 0 */
	double scale;            /* 1 / (log of the highest / lowest level); 0: a single level */
};

struct measured_category {
	size_t column;
	const char *name;
	const char **value; size_t n_values; /* ascending, borrowed from the csv */
};

struct measured_setting {
	uint64_t key;            /* of categories and levels: settings are sorted by it */
	uint32_t combo;          /* of categories */
	uint16_t level[MEASURED_MAX_AXES];
	double z[MEASURED_MAX_AXES]; /* logarithms of its levels */
};

struct measured_row {
	uint32_t csv_row, setting, replication; /* the last: an index in replication[] */
	uint32_t fold;           /* where settings are dealt into folds: the one in which it happens */
	double others;           /* processes of other jobs */
	double time_s, accuracy; /* NaN: not known */
};

struct measured_table {
	struct schema *own_schema; /* NULL: it was handed in */
	const struct schema *schema;
	struct csv *runs;
	struct curves *curves;   /* NULL: none given */
	const struct csv *csv;   /* runs, or the joined ones */
	struct table *table;
	struct measured_axis axis[MEASURED_MAX_AXES]; size_t n_axes;
	struct measured_category category[MEASURED_MAX_CATEGORIES]; size_t n_categories;
	size_t batch_axis, cpus_axis;
	int epochs_axis;         /* -1: none */
	uint32_t n_combos;       /* of all values of the categories */
	uint64_t fields;         /* of the grid of one of them */
	struct measured_row *row; size_t n_rows;
	size_t n_left_out;       /* rows of the csv that are not among them */
	struct measured_setting *setting; size_t n_settings;
	double *low, *high;      /* by combo and axis: the range measured; NaN: this combination was not */
	const char **replication; size_t n_replications; /* at least 1; borrowed from the csv */
	size_t hold_out;
	size_t n_runs;           /* rows but for the points of curves */
	size_t n_folds;
	bool by_replication;     /* folds are replications; false: settings, dealt (row[].fold) */
};

/* `argument` is "TABLE.csv" or "RUNS.csv+CURVES.csv"; schema NULL: the default one, else borrowed. */
int measured_table_open(const char *argument, const struct schema *schema, size_t hold_out,
                        struct measured_table **out, struct err *err);
void measured_table_free(struct measured_table *t);

/* The sides (measured_split.c). */
/* called once, by measured_table_open() */
int measured_table_part(struct measured_table *t, struct err *err);
/* Sets n_folds and row[].fold (measured_deal.c). */
int measured_table_deal(struct measured_table *t, struct err *err);
bool measured_table_happens(const struct measured_table *t, size_t fold, const struct measured_row *r);
void measured_table_split_text(const struct measured_table *t, size_t fold, char *out, size_t size);
/* The rows of the other side, as they are in the file, under the same header. With curves there is one more
 * column, `run_of`: the row (from 0) of the run that a row is of. */
int measured_table_training(const struct measured_table *t, size_t fold, struct csv **out, struct err *err);

/* The first setting of these categories or behind them: those of one combination are side by side. */
size_t measured_table_first(const struct measured_table *t, uint32_t combo);
/* The last level that is not above v, but for rounding. */
size_t measured_axis_level(const struct measured_axis *a, double v);
/* The setting with these levels; -1: it was not measured. */
int32_t measured_table_find(const struct measured_table *t, uint32_t combo, const uint16_t *level);

#endif
