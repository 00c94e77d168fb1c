/* sim/trace and sim/trace_build: opening by name, scaling, and what the builder promises. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/mem.h"
#include "sim/trace/trace.h"
#include "sim/trace/build.h"
#include "sim/trace/names.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

static int disarm(void **state)
{
	(void)state;
	mem_fail_at(0, false);
	io_fail_at(0, 0);
	return 0;
}

static struct trace *open_spec(const char *spec)
{
	struct trace *t = NULL;
	struct err err = { 0 };

	if (trace_open(&(struct trace_source){ .spec = spec, .seed = 7 }, &t, &err))
		fail_msg("refused: %s", err.text);
	return t;
}

static void refuse(const struct trace_source *s, enum err_code code, const char *want)
{
	struct trace *t = NULL;
	struct err err = { 0 };

	assert_int_equal(trace_open(s, &t, &err), -(int)code);
	if (!strstr(err.text, want))
		fail_msg("'%s' is not in '%s'", want, err.text);
	assert_null(t);
}

static const struct trace_kind_text plain = {
	.cpus = 1, .epochs_from = NAN, .epochs_to = NAN, .memory_mb = NAN, .memory_mb_per_record = NAN
};

TEST(test_jobs_that_are_left_out_are_counted_and_kinds_renumbered)
{
	struct trace *t = open_spec("configs/traces/morning.csv");
	size_t all = t->n_jobs, of_first = 0, kinds = t->n_kinds;
	uint64_t before = t->fingerprint;
	struct err err = { 0 };
	bool out[64] = { true };

	assert_in_range(kinds, 2, 64);
	for (size_t i = 0; i < all; i++)
		of_first += !t->job[i].kind;
	assert_int_equal(trace_leave_out(t, out, "batch 7 is not in the table", &err), 0);
	assert_int_equal(t->n_jobs, all - of_first);
	assert_int_equal(t->n_left_out, of_first);
	assert_int_equal(t->n_kinds, kinds - 1);
	for (size_t i = 0; i < t->n_jobs; i++)
		assert_true(t->job[i].kind < t->n_kinds);
	assert_true(t->fingerprint != before);
	assert_int_equal(t->n_notices, 1);
	assert_non_null(strstr(t->notice[0], "of 10 jobs left out"));
	assert_non_null(strstr(t->notice[0], "batch 7 is not in the table"));
	assert_non_null(strstr(t->about, "of 10 jobs left out"));
	memset(out, false, sizeof out);
	assert_int_equal(trace_leave_out(t, out, "", &err), 0);
	assert_int_equal(t->n_notices, 1);
	memset(out, true, sizeof out);
	assert_int_equal(trace_leave_out(t, out, "nothing fits", &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "nothing fits"));
	trace_free(t);
}

static int compare_gaps(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Nothing is made up: each job is one of the trace, and each gap one of its gaps. All jobs come about as
 * often. */
TEST(test_drawn_jobs_and_gaps_are_those_of_the_trace)
{
	enum { N = 4000 };
	struct trace_source s = { .spec = "configs/traces/morning.csv", .seed = 3, .resample = N };
	struct trace *from = open_spec(s.spec), *t = NULL, *again = NULL;
	size_t n = from->n_jobs, times[16] = { 0 };
	int64_t gap[16];

	assert_in_range(n, 4, 16);
	for (size_t i = 1; i < n; i++)
		gap[i - 1] = from->job[i].arrival_ns - from->job[i - 1].arrival_ns;
	qsort(gap, n - 1, sizeof *gap, compare_gaps);
	assert_int_equal(trace_open(&s, &t, NULL), 0);
	assert_int_equal(t->n_jobs, N);
	for (size_t i = 0; i < N; i++) {
		int64_t passed = i ? t->job[i].arrival_ns - t->job[i - 1].arrival_ns : gap[0];
		size_t k = 0;

		assert_int_equal(t->job[i].id, i + 1);
		assert_non_null(bsearch(&passed, gap, n - 1, sizeof *gap, compare_gaps));
		while (k < n && from->job[k].line != t->job[i].line)
			k++;
		assert_true(k < n && !memcmp(&from->job[k].slo_s, &t->job[i].slo_s, sizeof(double)) &&
			    from->job[k].kind == t->job[i].kind);
		times[k]++;
	}
	for (size_t k = 0; k < n; k++) /* 5 deviations of a count of N draws */
		assert_true(fabs((double)times[k] - (double)N / n) < 5.0 * sqrt((double)N / n));
	assert_non_null(strstr(t->about, "drawn from 10 jobs"));
	assert_int_equal(trace_open(&s, &again, NULL), 0);
	assert_true(again->fingerprint == t->fingerprint && t->fingerprint != from->fingerprint);
	trace_free(again);
	s.seed = 4;
	assert_int_equal(trace_open(&s, &again, NULL), 0);
	assert_true(again->fingerprint != t->fingerprint);
	trace_free(again);
	trace_free(t);
	trace_free(from);
}

TEST(test_one_job_has_no_gaps_to_draw_from)
{
	struct trace_source s = { .spec = "gen:poisson,jobs=1,rate=1", .seed = 1, .resample = 5 };

	refuse(&s, ERR_FORMAT, "at least 2 are needed");
	s.spec = "gen:poisson,jobs=2,rate=1";
	s.resample = (uint64_t)TRACE_MAX_JOBS + 1;
	refuse(&s, ERR_ARG, "need 1 to 20000000");
	s.spec = "gen:poisson,jobs=2,rate=1e-9"; /* 30 years between two jobs */
	s.resample = 1000;
	refuse(&s, ERR_ARG, "would arrive over more than");
}

TEST(test_the_name_says_what_it_is)
{
	struct trace *t;

	t = open_spec("configs/traces/morning.csv");
	assert_int_equal(t->n_jobs, 10);
	assert_string_equal(t->about, "10 jobs over 40 s, 2 tenants");
	assert_int_equal(t->n_notices, 0);
	trace_free(t);
	t = open_spec("configs/traces/times.jsonl");
	assert_int_equal(t->n_jobs, 4);
	assert_int_equal(t->job[3].arrival_ns, 4000000000);
	trace_free(t);
	t = open_spec("configs/traces/small.swf");
	assert_int_equal(t->n_jobs, 9);
	trace_free(t);
	t = open_spec("gen:poisson,jobs=1234");
	assert_int_equal(t->n_jobs, 1234);
	assert_non_null(strstr(t->about, "1,234 jobs over "));
	assert_non_null(strstr(t->about, "generated: poisson,jobs=1234 (seed 7)"));
	trace_free(t);
}

TEST(test_what_is_no_trace_is_refused)
{
	const char *odd = support_path(support_temp_dir(), "trace.txt"),
		   *packed = support_path(support_temp_dir(), "log.swf.gz");
	struct err err = { 0 };

	assert_int_equal(io_write_file(odd, "x", 1, &err), 0);
	assert_int_equal(io_write_file(packed, "x", 1, &err), 0);
	refuse(&(struct trace_source){ .spec = "nowhere.csv" }, ERR_NOTFOUND, "nowhere.csv");
	refuse(&(struct trace_source){ .spec = "nowhere" }, ERR_NOTFOUND, "no such trace");
	refuse(&(struct trace_source){ .spec = "nowhere", .history = true }, ERR_NOTFOUND,
	       "no such file or folder");
	refuse(&(struct trace_source){ .spec = odd }, ERR_ARG, "must end in .csv, .jsonl, .swf or .db");
	refuse(&(struct trace_source){ .spec = packed }, ERR_ARG, "gunzip");
	refuse(&(struct trace_source){ .spec = "a.csv", .map = "m.json" }, ERR_ARG,
	       "a mapping is for traces in SWF");
	refuse(&(struct trace_source){ .spec = "gen:nothing" }, ERR_ARG, "no such generator");
}

TEST_WITH(test_scaling_changes_objectives_and_gaps_alone, NULL, disarm)
{
	struct trace *t = open_spec("configs/traces/morning.csv"),
		     *half = open_spec("configs/traces/morning.csv");
	struct err err = { 0 };

	assert_int_equal(trace_scale(half, 1.0, 1.0, &err), 0);
	assert_true(half->fingerprint == t->fingerprint);
	assert_int_equal(trace_scale(half, 0.5, 2.0, &err), 0);
	for (size_t i = 0; i < t->n_jobs; i++) {
		assert_int_equal(half->job[i].arrival_ns, t->job[i].arrival_ns / 2);
		assert_true(isnan(t->job[i].slo_s) ? isnan(half->job[i].slo_s)
						   : half->job[i].slo_s == 0.5 * t->job[i].slo_s);
		assert_int_equal(half->job[i].kind, t->job[i].kind);
	}
	assert_true(half->fingerprint != t->fingerprint);
	assert_non_null(strstr(half->about, "limits x 0.5, load x 2"));
	assert_int_equal(trace_scale(t, 0.0, 1.0, &err), -ERR_ARG);
	assert_int_equal(trace_scale(t, 1.0, NAN, &err), -ERR_ARG);
	assert_int_equal(trace_scale(t, INFINITY, 1.0, &err), -ERR_ARG);
	assert_int_equal(trace_scale(t, 1e12, 1.0, &err), -ERR_ARG); /* beyond a hundred years */
	assert_int_equal(trace_scale(half, 1.0, 1e-12, &err), -ERR_ARG);
	mem_fail_at(1, false);
	assert_int_equal(trace_scale(half, 2.0, 2.0, &err), -ERR_NOMEM);
	mem_fail_at(0, false);
	trace_free(half);
	trace_free(t);
}

/* ---- the builder ---- */

TEST(test_numbers_follow_first_use)
{
	struct trace_build *b = NULL;
	struct trace *t = NULL;
	struct trace_kind_text k = plain;
	struct trace_job j = { .slo_s = NAN, .confidence = NAN, .type = -1 };
	uint32_t kind[3], tenant[3];
	struct err err = { 0 };

	assert_int_equal(trace_build_new("t", NULL, 0, &b, &err), 0);
	for (uint32_t i = 0; i < 3; i++) {
		static const char *const name[] = { "a", "b", "c" };

		k.cpus = i + 1;
		assert_int_equal(trace_build_kind(b, &k, &kind[i], &err), 0);
		assert_int_equal(trace_build_tenant(b, name[i], NAN, &tenant[i], &err), 0);
	}
	j.kind = kind[2], j.tenant = tenant[2], j.arrival_ns = 9000000000;
	assert_int_equal(trace_build_job(b, &j, &err), 0);
	j.kind = kind[1], j.tenant = tenant[1], j.arrival_ns = 3000000000;
	assert_int_equal(trace_build_job(b, &j, &err), 0);
	assert_int_equal(trace_build_done(b, "by hand", &t, &err), 0);
	assert_int_equal(t->n_kinds, 2); /* the first was never used */
	assert_int_equal(t->kind[0].cpus, 2);
	assert_string_equal(t->tenant[0], "b");
	assert_string_equal(t->tenant[1], "c");
	assert_int_equal(t->job[0].id, 2);
	assert_string_equal(t->about, "2 jobs over 6 s, 2 tenants, by hand");
	trace_free(t);
	trace_build_free(b);
}

TEST(test_kinds_that_differ_in_a_number_are_two_and_an_empty_value_is_none)
{
	const char *const column[] = { "epochs" }, *value[1] = { NULL };
	struct trace_build *b = NULL;
	struct trace_kind_text k = plain;
	uint32_t first, at;
	struct err err = { 0 };

	assert_int_equal(trace_build_new("t", column, 1, &b, &err), 0);
	k.value = value;
	assert_int_equal(trace_build_kind(b, &k, &first, &err), 0);
	value[0] = "";
	assert_int_equal(trace_build_kind(b, &k, &at, &err), 0);
	assert_int_equal(at, first);
	for (int i = 0; i < 4; i++) {
		double *number[] = { &k.memory_mb, &k.memory_mb_per_record, &k.epochs_from, &k.epochs_to };
		struct trace_kind_text other;
		uint32_t again;

		k = plain;
		k.value = value;
		k.epochs_from = k.epochs_to = i < 2 ? NAN : 5.0;
		*number[i] = 3.0 + (i == 3) * 3.0;
		other = k;
		assert_int_equal(trace_build_kind(b, &k, &at, &err), 0);
		assert_int_equal(trace_build_kind(b, &other, &again, &err), 0);
		assert_int_equal(again, at);
		*number[i] += 1.0;
		assert_int_equal(trace_build_kind(b, &k, &again, &err), 0);
		assert_int_not_equal(again, at);
	}
	trace_build_free(b);
}

/* Kinds are looked up by a hash. With 438 cpus this memory hashes to what no memory does. */
TEST(test_kinds_that_hash_alike_are_still_two)
{
	struct trace_kind_text k = plain;
	double memory_mb = 0x1.e4a0b1396957cp+12;
	struct trace_build *b = NULL;
	uint32_t without, with;
	struct err err = { 0 };

	assert_true(trace_hash(438 + 2, &memory_mb, sizeof memory_mb) == 438);
	assert_int_equal(trace_build_new("t", NULL, 0, &b, &err), 0);
	k.cpus = 438;
	assert_int_equal(trace_build_kind(b, &k, &without, &err), 0);
	k.memory_mb = memory_mb;
	assert_int_equal(trace_build_kind(b, &k, &with, &err), 0);
	assert_int_not_equal(with, without);
	trace_build_free(b);
}

TEST(test_ids_are_found_again_in_any_order)
{
	struct trace_build *b = NULL;
	struct trace_job j = { .slo_s = NAN, .confidence = NAN, .type = -1 };
	struct err err = { 0 };

	assert_int_equal(trace_build_new("t", NULL, 0, &b, &err), 0);
	assert_int_equal(trace_build_kind(b, &plain, &j.kind, &err), 0);
	for (uint64_t i = 0; i < 2000; i++) {
		j.id = (i * 7919) % 2003 + 1; /* a permutation */
		assert_int_equal(trace_build_job(b, &j, &err), 0);
	}
	for (uint64_t i = 0; i < 2000; i += 37) {
		j.id = (i * 7919) % 2003 + 1;
		assert_int_equal(trace_build_job(b, &j, &err), -ERR_FORMAT);
	}
	assert_int_equal(trace_build_jobs(b), 2000);
	trace_build_free(b);
}

TEST(test_the_builder_refuses_what_would_not_read_back)
{
	const char *const column[] = { "epochs", "network" }, *value[2] = { NULL, "x" };
	const double batch[] = { 64.0, 32.0 };
	struct trace_build *b = NULL;
	struct trace_kind_text k = plain;
	struct trace_job j = { .slo_s = NAN, .confidence = NAN, .type = -1 };
	uint32_t at = 0;
	struct err err = { 0 };

	assert_int_equal(trace_build_new("t", (const char *const[]){ "cpus" }, 1, &b, &err), -ERR_FORMAT);
	assert_string_equal(err.text, "t: 'cpus' is a field of the job, not a column of values");
	assert_int_equal(trace_build_new("t", column, 2, &b, &err), 0);
	k.value = value;
	k.cpus = 0;
	assert_int_equal(trace_build_kind(b, &k, &at, &err), -ERR_FORMAT);
	k.cpus = TRACE_MAX_CPUS + 1;
	assert_int_equal(trace_build_kind(b, &k, &at, &err), -ERR_FORMAT);
	k.cpus = TRACE_MAX_CPUS;
	k.batch = batch;
	k.n_batches = 2;
	assert_int_equal(trace_build_kind(b, &k, &at, &err), -ERR_FORMAT);
	k.n_batches = 1;
	assert_int_equal(trace_build_kind(b, &k, &at, &err), 0);
	value[0] = "4";
	k.epochs_from = 1.0, k.epochs_to = 4.0;
	assert_int_equal(trace_build_kind(b, &k, &at, &err), -ERR_ARG); /* open, and fixed too */
	k.epochs_to = NAN;
	assert_int_equal(trace_build_kind(b, &k, &at, &err), -ERR_FORMAT);
	assert_int_equal(trace_build_tenant(b, "", NAN, &at, &err), -ERR_FORMAT);
	assert_int_equal(trace_build_tenant(b, "x", -1.0, &at, &err), -ERR_FORMAT);
	j.kind = 1;
	assert_int_equal(trace_build_job(b, &j, &err), -ERR_ARG); /* no such kind */
	j.kind = 0;
	j.arrival_ns = -1;
	assert_int_equal(trace_build_job(b, &j, &err), -ERR_FORMAT);
	assert_string_equal(err.text, "t: job 1: field arrival_s: -1e-09 is not between 0 and 3.2e+09 s");
	trace_build_free(b);
	trace_build_free(NULL);
	trace_free(NULL);
}
