/* From a table to a model bundle: search or a fixed model, fit, residuals, bounds, importances. */
#ifndef PREDICTORS_TRAIN_H
#define PREDICTORS_TRAIN_H

#include "predictors/model.h"
#include "predictors/search.h"

struct train_params {
	const struct table *table;
	const struct grid *grid;          /* of the time model; one point: no search */
	const struct grid *accuracy_grid; /* of the accuracy model */
	const char *const *group; size_t n_groups; /* --group: columns whose equal values stay together */
	struct split_params split;        /* how scores are made; kind KFOLD 5 by default */
	struct fit_context ctx;
	bool plain_bounds;                /* do not normalise the residuals by a spread */
	size_t search_rows;               /* a search looks at so many rows at most, drawn at random; 0: at all */
	void (*on_progress)(void *owner, const char *stage, size_t done, size_t total); /* optional */
	void *owner;
	const char *data_name, *created, *program;
};

struct train_report {                     /* everything tried, for the table people read */
	struct grid *time_grid, *accuracy_grid;   /* copies; accuracy_grid NULL without accuracy */
	struct search_result *time_result, *accuracy_result;
	size_t time_best, accuracy_best;
	bool leaks;                       /* a random split with replicates on both sides */
	char notice[8][256]; size_t n_notices; /* "12 rows without accuracy: ...", for people */
};

int train_model(const struct train_params *p, struct model **out, struct train_report *report,
                struct err *err);
void train_report_release(struct train_report *r);

#endif
