/* The epochs of a run as they are told, kept and read again. See told_epochs.h. */
#include "scheduler/jobs/told_epochs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The first one stays, because it tells the start-up best. */
static void thin(struct told_epochs *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->n; i += 2)
		t->at[kept++] = t->at[i];
	t->n = kept;
	t->step = fmax(2.0 * t->step, (t->at[kept - 1].epoch - t->at[0].epoch) / (double)(kept - 1));
}

void told_epochs_add(struct told_epochs *t, double epoch, double time_s, double accuracy)
{
	struct told_epoch *last = t->n ? &t->at[t->n - 1] : NULL;

	if (!(epoch >= 1.0 && time_s > 0.0) || (last && !(epoch > last->epoch && time_s > last->time_s)))
		return;
	/* The last one is always there: it replaces one that is nearer than a step. */
	if (last && t->n > 1 && last->epoch < t->at[t->n - 2].epoch + t->step)
		t->n--;
	if (t->n == TOLD_EPOCHS)
		thin(t);
	t->at[t->n++] = (struct told_epoch){ epoch, time_s, accuracy };
}

const char *told_epochs_text(struct told_epochs *t, double epochs, double run_s)
{
	const struct told_epoch *last = t->n ? &t->at[t->n - 1] : NULL;
	size_t used = 0;

	if (t->n < 2 || last->epoch != epochs || !(run_s >= last->time_s))
		return NULL;
	for (size_t i = 0; i + 1 < t->n; i++) {
		double time_s = t->at[i].time_s + (run_s - last->time_s);

		used += (size_t)snprintf(t->text + used, sizeof t->text - used, "%.9g %.9g ", t->at[i].epoch,
					 time_s);
		if (!isnan(t->at[i].accuracy))
			used += (size_t)snprintf(t->text + used, sizeof t->text - used, "%.9g",
						 t->at[i].accuracy);
		used += (size_t)snprintf(t->text + used, sizeof t->text - used, ";");
	}
	return t->text;
}

bool told_epochs_next(const char **text, struct told_epoch *out)
{
	char *end;

	*out = (struct told_epoch){ strtod(*text, &end), NAN, NAN };
	if (end == *text || *end != ' ')
		return false;
	*text = end + 1;
	out->time_s = strtod(*text, &end);
	if (end == *text || *end != ' ')
		return false;
	*text = end + 1;
	if (**text != ';')
		out->accuracy = strtod(*text, &end), *text = end;
	if (**text != ';' || !(out->epoch >= 1.0 && out->time_s > 0.0))
		return false;
	++*text;
	return isfinite(out->epoch) && isfinite(out->time_s);
}
