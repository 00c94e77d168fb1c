/* Runs a campaign. Work is cut into units, each of which depends on its index alone: experiments (a point
 * of a technique's grid, on the rows of a run and its folds), one validation for each technique and fold,
 * the final models, and the points of the learning curve. Units are spread over the threads of a pool;
 * each finished one is written to the journal, so that the same command goes on where a killed one
 * stopped and ends with the same result.
 *
 * The rule of selection: in each run and validation fold the point of a technique with the least mean
 * MAPE on the hp_selection rows is chosen; it is then fitted to training and hp_selection rows together,
 * and scored once on the validation rows. A point that failed in any fold is never chosen. The best
 * technique has the least mean hp_selection MAPE. */
#ifndef AUTOML_AUTOML_H
#define AUTOML_AUTOML_H

#include "common/pool.h"
#include "automl/fitted.h"
#include "predictors/model.h"

#define AUTOML_MAX_UNITS 1000000
#define AUTOML_VALIDATION_FOLD 4095 /* beyond all hp folds: the fit that is validated */
#define CURVE_SIZES 6
#define CURVE_REPEATS 5

enum automl_set { SET_TRAINING, SET_HP_SELECTION, SET_VALIDATION, N_SETS };
extern const char *const automl_set_name[];

enum automl_stage {
	STAGE_FEATURES,   /* by run and validation fold: features by XGBoost's weights */
	STAGE_EXPERIMENT, /* by run, validation fold, hp fold, technique and point */
	STAGE_VALIDATION, /* by run, validation fold and technique: the chosen point */
	STAGE_MODEL,      /* by technique: the chosen point on all rows */
	STAGE_CURVE,      /* by technique, number of rows and repetition */
	N_STAGES,
};

struct outcome {
	bool done, failed;
	char why[160];
	struct automl_score score[N_SETS];
	double tuned[CAMPAIGN_MAX_AXES]; size_t n_tuned;
	double *loss; size_t n_losses; /* not done: of the first trials of a search that was cut off */
	struct feature_list features; /* n 0: all */
};

struct chosen { /* of a technique in a run and validation fold */
	size_t point;     /* SIZE_MAX: every point failed */
	double hp_mape;   /* mean over the hp folds */
	struct automl_score hp; /* the same for all measures */
};

struct automl {
	const struct campaign *c;
	const struct prepared *p;
	struct pool *pool;
	struct journal *journal;
	size_t n_validation, n_hp; /* folds */
	size_t n_points;           /* of all techniques */
	struct outcome *outcome[N_STAGES];
	size_t n[N_STAGES];
	struct chosen *chosen;     /* by run, validation fold and technique */
	struct chosen *final;      /* by technique, over all runs and folds */
	struct model **model;      /* by technique; NULL: it failed */
	size_t best;               /* technique; SIZE_MAX: all failed */
	size_t curve_rows[CURVE_SIZES];
	void (*on_progress)(void *owner, size_t done, size_t total);
	void *owner;
	size_t n_done, n_resumed;
	size_t part, n_parts;      /* as in automl_params */
};

struct automl_params {
	const struct campaign *c;
	const struct prepared *p;
	struct pool *pool;
	const char *dir;     /* where the journal is; it exists */
	bool restart;        /* forget an old journal */
	/* Only the experiments of a part, from 1, and nothing after them; n_parts 0: all. */
	size_t part, n_parts;
	size_t from_parts;   /* first takes over what DIR/part-1, DIR/part-2, ... have done */
	const char *program, *created;
	void (*on_progress)(void *owner, size_t done, size_t total); /* optional; one thread at a time */
	void *owner;
};
/* ERR_FORMAT if the journal belongs to another campaign or table; the text names what differs. */
int automl_run(const struct automl_params *p, struct automl **out, struct err *err);
void automl_free(struct automl *a);

/* ---- the results, for results.c and page.c ---- */
static inline size_t automl_fold(const struct automl *a, size_t run, size_t fold)
{
	return run * a->n_validation + fold;
}
/* Scores of a technique in a run: mean and standard deviation over the validation folds. failed: `why` of the
 * first reason, and NaN. */
struct run_scores {
	struct automl_score mean[N_SETS], sd[N_SETS];
	size_t n; /* folds that count */
	const char *why;
};
struct run_scores automl_run_scores(const struct automl *a, size_t run, size_t technique);
size_t automl_best_of_run(const struct automl *a, size_t run); /* SIZE_MAX: all failed */
/* Of the fits to the rows of a fold (automl_fold()) and hp fold, or AUTOML_VALIDATION_FOLD. */
uint64_t automl_seed(const struct automl *a, size_t fold, size_t hp_fold);
struct experiment {
	struct fold fold;
	size_t technique, point;
};
struct experiment automl_experiment(const struct automl *a, size_t unit); /* of STAGE_EXPERIMENT */

/* results.c */
/* The other rule: the single experiment of a technique with the least validation MAPE, which has seen the
 * validation rows. SIZE_MAX: none. */
size_t automl_best_by_validation(const struct automl *a, size_t technique);
void automl_results_json(const struct automl *a, struct strbuf *out);
void automl_log(const struct automl *a, struct strbuf *out); /* preparation, and what failed and why */
/* page.c */
int automl_page(const struct automl *a, struct strbuf *out, struct err *err);

#endif
