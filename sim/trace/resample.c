/* More jobs of the same kind (a bootstrap): jobs and gaps between arrivals are drawn from a trace, with
 * replacement and independently of each other. A dozen jobs are played in one order that is chance; drawn
 * anew in every replication, they also show how much of a difference between policies is chance. */
#include <stdlib.h>

#include "common/mem.h"
#include "common/rng.h"
#include "sim/trace/build.h"

enum { STREAM_JOBS = 21, STREAM_GAPS };

static int check(const struct trace *t, size_t n, struct err *err)
{
	if (n < 1 || n > TRACE_MAX_JOBS)
		return err_fail(err, ERR_ARG, "%zu jobs drawn: need 1 to %d", n, TRACE_MAX_JOBS);
	if (t->n_jobs < 2)
		return err_fail(err, ERR_FORMAT,
				"%s: one job: at least 2 are needed to draw jobs and gaps from", t->name);
	return 0;
}

static int draw(const struct trace *t, size_t n, uint64_t seed, struct trace_job *out, struct err *err)
{
	struct rng jobs = rng_stream(seed, STREAM_JOBS), gaps = rng_stream(seed, STREAM_GAPS);
	int64_t at_ns = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t gap = rng_below(&gaps, (uint32_t)t->n_jobs - 1);

		out[i] = t->job[rng_below(&jobs, (uint32_t)t->n_jobs)];
		out[i].id = i + 1;
		out[i].arrival_ns = at_ns;
		if (1e-9 * (double)at_ns > TRACE_MAX_ARRIVAL_S)
			return err_fail(err, ERR_ARG, "%zu jobs drawn: they would arrive over more than %g s",
					n, TRACE_MAX_ARRIVAL_S);
		at_ns += t->job[gap + 1].arrival_ns - t->job[gap].arrival_ns;
	}
	return 0;
}

int trace_resample(struct trace *t, size_t n, uint64_t seed, struct err *err)
{
	int rc = check(t, n, err);
	struct trace_job *job = rc ? NULL : mem_array(n, sizeof *job);
	struct strbuf source = { 0 };
	char *about = NULL;

	if (!rc)
		rc = job ? draw(t, n, seed, job, err) : err_nomem(err, "%zu jobs", n);
	if (rc) {
		free(job);
		return rc;
	}
	strbuf_printf(&source, "drawn from %s (seed %llu)", t->about, (unsigned long long)seed);
	free(t->job);
	t->job = job;
	t->n_jobs = n;
	about = source.failed ? NULL : trace_about(t, source.text);
	strbuf_release(&source);
	if (!about)
		return err_nomem(err, "a drawn trace");
	free(t->about);
	t->about = about;
	t->fingerprint = trace_fingerprint(t);
	return 0;
}
