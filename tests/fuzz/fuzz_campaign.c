/* Campaign files: what is refused has a reason, and a value that is read is the same after it was written. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "automl/campaign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same_again(const struct literal *v)
{
	struct strbuf a = { 0 }, b = { 0 };
	struct literal again;

	literal_write(v, &a);
	if (literal_parse(strbuf_text(&a), &again, NULL))
		abort();
	literal_write(&again, &b);
	if (strcmp(strbuf_text(&a), strbuf_text(&b)))
		abort();
	literal_release(&again);
	strbuf_release(&a);
	strbuf_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int lenient = 0; lenient < 2; lenient++) {
		struct campaign *c = NULL;
		struct ini *ini = NULL;
		struct err err = { 0 };

		if (ini_parse("fuzz", (const char *)data, size, &ini, &err)) {
			if (!err.text[0])
				abort();
			return 0;
		}
		for (size_t s = 0; s < ini->n; s++)
			for (size_t k = 0; k < ini->section[s].n; k++)
				same_again(&ini->section[s].key[k].value);
		if (campaign_of(ini, &(struct campaign_params){ .lenient = lenient }, &c, &err)) {
			if (!err.text[0])
				abort();
			continue;
		}
		for (size_t t = 0; t < c->n_plans; t++) {
			size_t n = c->plan[t].n_points < 20 ? c->plan[t].n_points : 20;
			double tuned[CAMPAIGN_MAX_AXES] = { 0 };
			struct settings settings;

			for (size_t p = 0; p < n; p++)
				plan_settings(&c->plan[t], p, tuned, &settings, NULL);
		}
		campaign_free(c);
	}
	return 0;
}
