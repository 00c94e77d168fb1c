/* When the epochs of a running job ended, as far as it told: what its run teaches beside its end. A run of 12
 * epochs tells so what 3 would have taken, its start-up apart, and how accurate they would have been.
 *
 * They become one value of the observation, EPOCHS_TOLD, whose text has for each `epoch time accuracy` and a
 * semicolon, the accuracy empty where none was said. training_data.c makes rows of it. */
#ifndef SCHEDULER_JOBS_TOLD_EPOCHS_H
#define SCHEDULER_JOBS_TOLD_EPOCHS_H

#include <stdbool.h>
#include <stddef.h>

#define EPOCHS_TOLD "@epochs" /* no column and no parameter can be called so */
#define TOLD_EPOCHS 16 /* of more, every second one is forgotten */

struct told_epoch {
	double epoch, time_s, accuracy; /* NaN: not said */
};

struct told_epochs {
	size_t n;
	struct told_epoch at[TOLD_EPOCHS];
	double step; /* epochs from one to the next that is kept, at least */
	char text[TOLD_EPOCHS * 48];
};

/* time_s: since the start of the run. NaN, or one that does not come after the last: left out. */
void told_epochs_add(struct told_epochs *t, double epoch, double time_s, double accuracy);
/* The text for a run of `epochs` that took run_s: a run stopped after an epoch would have had what comes
 * before the first and after the last one, too. NULL: only its end is known, or the last was not told. */
const char *told_epochs_text(struct told_epochs *t, double epochs, double run_s);
/* The next of a text; false: there is none, or it is damaged. */
bool told_epochs_next(const char **text, struct told_epoch *out);

#endif
