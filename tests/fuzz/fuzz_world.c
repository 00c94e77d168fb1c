/* Files of worlds: what is taken can be described, and gives a job work that is a number. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/world/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int claim, const char *what)
{
	if (claim)
		return;
	fprintf(stderr, "fuzz_world: %s\n", what);
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct world_value *value[WORLD_FILE_MAX_CATEGORIES] = { NULL };
	struct world_file *f = NULL;
	struct strbuf out = { 0 };
	struct json_writer w;
	struct world_work work;
	struct err err = { 0 };

	if (world_file_parse("fuzz", (const char *)data, size, &f, &err)) {
		must(err.text[0] != 0, "a refusal without a reason");
		return 0;
	}
	for (size_t i = 0; i < f->n_categories; i++)
		value[i] = &f->category[i].value[0];
	work = world_file_work(f, value, 1.0, 1.0, f->batch.n ? f->batch.v[0] : 64.0, f->samples, f->epochs);
	must(work.iterations >= 1.0 && isfinite(work.iterations) && work.compute_s >= 0.0 &&
		     isfinite(work.compute_s) && work.disk_s >= 0.0 && isfinite(work.disk_s),
	     "work that is no number");
	json_begin(&w, &out, false);
	json_open(&w, '{');
	world_file_describe(f, &w);
	json_close(&w, '}');
	strbuf_release(&out);
	world_file_free(f);
	return 0;
}
