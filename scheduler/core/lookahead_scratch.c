/* The memory of a look-ahead, all of it taken at the beginning. */
#include <stdlib.h>

#include "common/mem.h"
#include "scheduler/core/decide_internal.h"

int decide_scratch_new(size_t max_jobs, struct decide_scratch **out, struct err *err)
{
	struct decide_scratch *w = mem_calloc(1, sizeof *w);
	int rc = 0;

	if (w) {
		w->max_jobs = max_jobs;
		w->without = mem_array(max_jobs + 1, sizeof *w->without);
		w->with = mem_array(max_jobs + 1, sizeof *w->with);
		w->wanted = mem_array(max_jobs + 1, sizeof *w->wanted);
	}
	if (!w || !w->without || !w->with || !w->wanted || heap_reserve(&w->ends, max_jobs + 1))
		rc = err_nomem(err, "a look-ahead over %zu jobs", max_jobs);
	if (!rc)
		rc = fluid_workspace_new(max_jobs + 1, &w->workspace, err);
	if (rc)
		decide_scratch_free(w);
	else
		*out = w;
	return rc;
}

void decide_scratch_free(struct decide_scratch *w)
{
	if (!w)
		return;
	fluid_workspace_free(w->workspace);
	heap_release(&w->ends);
	free(w->without);
	free(w->with);
	free(w->wanted);
	free(w);
}

int decide_play(struct decide_scratch *w, const struct fluid_scene *f, const struct fluid_times **out,
		struct err *err)
{
	int status = fluid_play(f, NULL, w->workspace, w->without, err);

	if (!status)
		*out = w->without;
	return status;
}
