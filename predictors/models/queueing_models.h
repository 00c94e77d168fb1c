/* The queueing models as predictors: `queueing-paper` (queueing/paper.h) and `queueing`
 * (queueing/calibrate.h), and what the hybrid needs of the latter.
 *
 * They know what features mean, so they need a dataset with roles (dataset.h): a batch and the cpus at
 * least. Without njobs a job is alone; without processes there are cpus * njobs; without samples or epochs
 * the settings of that name count for every job. A missing value counts as the mean of training, and one
 * a thousand times outside the training range as that. */
#ifndef PREDICTORS_MODELS_QUEUEING_MODELS_H
#define PREDICTORS_MODELS_QUEUEING_MODELS_H

#include "predictors/predictor.h"
#include "queueing/calibrate.h"
#include "queueing/cycle.h"
#include "queueing/paper.h"

extern const struct predictor_ops queueing_paper_ops, queueing_ops;

/* Settings of every model that stands on the calibrated one. */
#define QUEUE_SIZE_SETTINGS                                                                                  \
	{ .name = "samples",                                                                                 \
	  .otherwise = 60000,                                                                                \
	  .min = 1,                                                                                          \
	  .max = 1e15,                                                                                       \
	  .help = "records in an epoch, where the table has no such column" },                               \
	{                                                                                                    \
		.name = "epochs", .otherwise = 10, .min = 1e-6, .max = 1e9,                                  \
		.help = "epochs of a job, where the table has no such column"                                \
	}
#define QUEUE_CORES_SETTING                                                                                  \
	{                                                                                                    \
		.name = "cores", .otherwise = 0, .min = 0, .max = 1e9,                                       \
		.help = "of the machine; 0: fitted where the table shows them"                               \
	}

/* Of the hybrid: which model of waiting the forest corrects. */
enum queue_kind {
	QUEUE_CALIBRATED, /* queueing/calibrate.h: a line in the processes */
	QUEUE_PAPER,      /* queueing/paper.h: the open M/M/1 disk of the paper; no answer where unstable */
	QUEUE_CLOSED,     /* queueing/cycle.h: a closed cycle by mean value analysis */
	QUEUE_NONE,       /* no law of waiting: the effects in log time are all there is */
	N_QUEUES,
};
extern const char *const queue_words[]; /* "calibrated", ... */
#define QUEUE_KIND_SETTING                                                                                   \
	{                                                                                                    \
		.name = "queue", .otherwise = 0, .min = 0, .max = N_QUEUES - 1, .words = queue_words,        \
		.help = "how waiting is modelled: calibrated, paper (open M/M/1), closed (a cycle), none"    \
	}

/* From features to what a queueing model asks for. */
struct queue_map {
	int32_t at[N_ROLES];            /* feature with that role; -1: none */
	double low[N_ROLES], high[N_ROLES], mean[N_ROLES]; /* over training */
	double samples, epochs;         /* assumed where no column says */
	uint32_t n_categories;
	uint32_t category[CALIBRATE_MAX_CATEGORIES];
	double category_mean[CALIBRATE_MAX_CATEGORIES];
};
int queue_map_make(const char *title, const struct settings *s, const struct dataset *d,
                   struct queue_map *out, struct err *err);
void queue_map_job(const struct queue_map *m, const double *x, struct calibrate_job *out);
void queue_map_describe(const struct queue_map *m, struct json_writer *w);
void queue_map_save(const struct queue_map *m, struct writer *w);
int queue_map_load(struct reader *r, size_t n_features, struct queue_map *out, struct err *err);

/* The calibrated model on features. */
struct queue_model {
	struct queue_map map;
	struct calibrated c;     /* also of the other kinds: where the time goes, and the machine */
	uint8_t kind;            /* enum queue_kind */
	struct paper paper;      /* of QUEUE_PAPER */
	struct cycle cycle;      /* of QUEUE_CLOSED */
};
/* `how`: its leverage, stop and memo count; the rest follows from the data and the settings. */
int queue_model_fit(const char *title, const struct settings *s, const struct dataset *d,
                    enum queue_kind kind, const struct calibrate_params *how, struct queue_model *out,
                    struct err *err);
/* QUEUE_NONE for predictions alone: nothing is calibrated, so it knows no shares and no machine. */
int queue_model_none(const char *title, const struct settings *s, const struct dataset *d, double *leverage,
                     struct queue_model *out, struct err *err);
/* NaN: unstable, of QUEUE_PAPER alone. */
double queue_model_time_s(const struct queue_model *m, const double *x);
/* Why there is no time; empty if there is one. */
void queue_model_why_none(const struct queue_model *m, const double *x, char *out, size_t size);
/* As in predictor.h. */
void queue_model_shares(const struct queue_model *m, const double *x, struct work_shares *out);
double queue_model_spread(const struct queue_model *m, const double *x); /* relative: calibrate_errs() */
void queue_model_machine(const struct queue_model *m, double *out_cores, double *out_disk_saturation);
void queue_model_describe(const struct queue_model *m, const struct dataset *names, struct json_writer *w);
void queue_model_remark(const struct queue_model *m, char *out, size_t size);
void queue_model_save(const struct queue_model *m, struct writer *w);
int queue_model_load(struct reader *r, size_t n_features, struct queue_model *out, struct err *err);

/* Importances of a model that has no splits to count: the variance of its log prediction as one feature
 * takes the values it had in training, the others staying, averaged over rows; as shares. To be freed. */
int queue_importances(void (*predict)(const void *self, const double *x, size_t n_rows, double *out),
                      const void *self, const struct dataset *d, double **out, struct err *err);

#endif
