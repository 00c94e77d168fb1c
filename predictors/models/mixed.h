/* Runs beside jobs of another kind: what a table with the column `beside` says of neighbours that are no
 * copies of the job. No model of time learns from them: it sees how many neighbours there are, not who they
 * are. A model file carries them, and the scheduler learns one slowdown for each pair of kinds from them
 * (scheduler/core/learn/pairs.h). search/train_mixed.c makes them. */
#ifndef PREDICTORS_MODELS_MIXED_H
#define PREDICTORS_MODELS_MIXED_H

#include "common/err.h"
#include "predictors/file/bytes.h"

#define MIXED_MAX_RUNS 1024
#define MIXED_MAX_TEXT 512 /* bytes of a text */

struct mixed_run {
	char *of;         /* categories of the job: "network=lenet5,data=mnist"; "": it has none */
	char *beside;     /* of its neighbours: a type, such categories, or both: "mlp network=lenet5"; "":
	                   * none of another kind. Such runs tell how far off the model is anyway. */
	double held;      /* processes of these neighbours */
	double processes; /* all that there were, with this job and with other work */
	double score;     /* log(time / the model's time under that load) */
};

struct mixed_runs { struct mixed_run *run; size_t n; };

void mixed_release(struct mixed_runs *m);
void mixed_save(const struct mixed_runs *m, struct writer *w);
int mixed_load(struct reader *r, struct mixed_runs *out, struct err *err);

/* Cuts the text of a neighbour: the type ("" where it has none) goes to type[], and the categories, which are
 * part of the text, are returned. NULL: it is no such text, or the type is too long. */
const char *mixed_neighbour(const char *text, char *type, size_t size);

#endif
