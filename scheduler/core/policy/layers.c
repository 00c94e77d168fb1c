/* The table of layers. See layers.h. */
#include "scheduler/core/policy/layers.h"

#include <stdio.h>
#include <string.h>

#include "common/text/text.h"

const struct layer_entry layer_all[] = {
	{ LAYER_BOUNDS, "bounds", "a promise rests on the upper bound, not on the expected time" },
	{ LAYER_LOOK_AHEAD, "look-ahead", "running and waiting jobs are played forward" },
	{ LAYER_PRICE, "price", "a batch pays for what its time costs other jobs" },
	{ LAYER_GIVE_BACK, "give-back", "a job with open epochs ends sooner where others gain more" },
	{ LAYER_SEATS, "seats",
	  "a job that breaks a promise in its place of the plan is tried in later ones" },
	{ LAYER_LATER, "later",
	  "chances, costs and the bound that users see allow for jobs that arrive later" },
	{ LAYER_KINDS, "kinds", "how much neighbours slow a job down depends on their kind" },
	{ LAYER_OTHER_WORK, "other-work", "processes that are not ours make jobs slower" },
	{ LAYER_USUAL_LOAD, "usual-load", "those processes stay as they were on average, not as now" },
	{ LAYER_START_LAG, "start-lag", "a limit allows for the time that a start takes" },
	{ LAYER_BIAS, "bias", "ended jobs correct the expected time" },
	{ LAYER_QUANTILE, "quantile", "ended jobs correct the width of bounds" },
	{ LAYER_NEW_FAMILY, "new-family", "runs of a family that is not in the table correct its times" },
	{ LAYER_STEER, "steer", "a job that asks while it runs gets its batch decided again" },
	{ 0, NULL, NULL },
};

const char *layers_print(unsigned which, const char *between, char *out)
{
	size_t used = 0;

	*out = '\0';
	for (const struct layer_entry *l = layer_all; l->name; l++)
		if (which & l->bit && used < LAYERS_TEXT)
			used += (size_t)snprintf(out + used, LAYERS_TEXT - used, "%s%s", used ? between : "",
						 l->name);
	return out;
}

static unsigned find(const char *name, size_t len)
{
	for (const struct layer_entry *l = layer_all; l->name; l++)
		if (strlen(l->name) == len && !strncmp(l->name, name, len))
			return l->bit;
	return 0;
}

int layers_parse(const char *text, const char *owner, unsigned allowed, unsigned *io, struct err *err)
{
	char name[24], shown[48], names[LAYERS_TEXT];
	unsigned all = 0;

	for (const char *at = text;; at++) {
		size_t len = strcspn(at, "+");
		unsigned bit = find(at, len) & allowed;

		if (!bit) {
			snprintf(name, sizeof name, "%.*s", (int)(len < sizeof name ? len : sizeof name - 1),
				 at);
			return err_fail(err, ERR_ARG, "policy %s has no layer '%s'; it has %s", owner,
					text_printable(name, shown, sizeof shown),
					layers_print(allowed, ", ", names));
		}
		all |= bit;
		at += len;
		if (!*at)
			break;
	}
	*io |= all;
	return 0;
}
