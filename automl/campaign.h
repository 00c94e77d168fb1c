/* What a campaign asks for: the keys of a campaign file (ini.h), checked and typed. docs/AUTOML.md explains
 * every key. A key in a section where it has no meaning is passed over with a notice that names the right
 * place; the reference implementation passes it over without one, and has such an example. Unknown keys and
 * sections are errors; a lenient reader passes them over as well. */
#ifndef AUTOML_CAMPAIGN_H
#define AUTOML_CAMPAIGN_H

#include "automl/ini.h"
#include "automl/prior.h"
#include "automl/techniques/technique.h"

#define CAMPAIGN_MAX_RUNS 1000
#define CAMPAIGN_MAX_FOLDS 1000
#define CAMPAIGN_MAX_POINTS 200000 /* of one technique's grid */
#define CAMPAIGN_MAX_EVALS 100000
#define CAMPAIGN_MAX_AXES 24

enum holdout { HOLD_ALL, HOLD_OUT, HOLD_KFOLD, HOLD_INTERPOLATION, HOLD_EXTRAPOLATION };
extern const char *const holdout_name[]; /* "All", "HoldOut", ...; NULL at the end */

enum selection { SELECT_NONE, SELECT_SFS, SELECT_XGBOOST };

struct axis { /* one hyper-parameter of a technique */
	const struct technique_key *key;
	const struct literal *choice; /* borrowed from the file or from `own` */
	size_t n;
	struct prior *prior; /* n of them, `high` NaN where the choice is a value; NULL: no priors */
	struct literal own;  /* the default, where the file does not say */
};

struct plan { /* one technique of the campaign, with its grid */
	const struct technique *technique;
	struct axis axis[CAMPAIGN_MAX_AXES];
	size_t n_axes;
	size_t n_points; /* the product of the axes; the first one varies slowest */
};

struct campaign {
	struct ini *ini;
	char (*notice)[256]; size_t n_notices, cap_notices;

	/* [General] */
	const char *y;
	struct plan *plan; size_t n_plans;
	enum holdout hp_selection, validation;
	size_t runs, folds;
	uint64_t seed;
	double hold_out_ratio;
	const struct literal *extrapolation, *interpolation; /* dictionaries */
	bool tune; /* Bayesian optimisation */
	size_t max_evals;
	size_t save_interval; /* trials of a search between two lines of the journal; 0: its end alone */

	/* [DataPreparation]: NULL where not given */
	const char *input_path;
	const struct literal *rename, *skip_rows, *use_columns, *skip_columns, *categorical, *inverse, *log;
	const struct literal *selected_products;
	size_t product_max_degree; /* 0: no products; SIZE_MAX: inf */
	bool interactions_only, ernest, normalization;

	/* [FeatureSelection] */
	enum selection selection;
	size_t min_features, max_features, selection_folds;
	double tolerance;
	struct plan selector; /* XGBoost's own grid, where it selects the features */
	struct ini *selector_ini; /* its default */

	/* [Postrider]: what the reference does not have */
	const struct literal *group_columns, *roles, *candidates;
	const char *decision;
	bool learning_curve;
};

struct campaign_params {
	bool lenient;
	bool predict; /* only y and input_path are needed */
};
int campaign_read(const char *path, const struct campaign_params *p, struct campaign **out, struct err *err);
/* Takes the file. */
int campaign_of(struct ini *ini, const struct campaign_params *p, struct campaign **out, struct err *err);
void campaign_free(struct campaign *c);
void campaign_notice(struct campaign *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The choice of each axis at a point. */
void plan_choices(const struct plan *p, size_t point, size_t *out);
size_t plan_n_priors(const struct plan *p, size_t point);
/* The settings of a point. tuned: values of its priors, in the order of the axes; NULL: there are none. */
int plan_settings(const struct plan *p, size_t point, const double *tuned, struct settings *out,
                  struct err *err);
/* An object of hyper-parameters in the campaign's own words. */
void plan_point_json(const struct plan *p, size_t point, const double *tuned, struct json_writer *w);
/* "alpha=0.1 max_depth=3": only what the campaign says. */
void plan_point_text(const struct plan *p, size_t point, const double *tuned, struct strbuf *out);

#endif
