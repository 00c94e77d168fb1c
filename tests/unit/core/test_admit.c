/* scheduler/core/admit: what jobs may be promised, and which batches they may have, by what ended jobs
 * left. */
#include <math.h>
#include <signal.h>
#include <string.h>

#include "scheduler/core/admit/admit.h"
#include "tests/unit/core/sched_bed.h"
#include "tests/support/test.h"

#define DAY_S 86400

/* ---- batches that fail ---- */

/* One failure that speaks of memory, or two of any kind, count for their user; for others those of two users
 * do. A day later, after one that ended well, and with another command the batch is a candidate again. */
TEST(test_whose_failures_leave_a_batch_out)
{
	static const struct failing_who mine = { 1, 1000, 7 }, other = { 1, 1001, 7 }, third = { 1, 1002, 7 };
	static const struct failing_who changed = { 1, 1000, 8 }, type = { 2, 1000, 7 };
	struct failing_batches f = { 0 };

	failing_add(&f, mine, 16, "exit code 1", 0);
	assert_false(failing_has(&f, mine, 16, 0));
	failing_add(&f, mine, 16, "exit code 1", 0);
	assert_true(failing_has(&f, mine, 16, 0));
	assert_false(failing_has(&f, mine, 8, 0) || failing_has(&f, other, 16, 0));
	assert_false(failing_has(&f, changed, 16, 0) || failing_has(&f, type, 16, 0));
	failing_add(&f, other, 16, "RuntimeError: CUDA Out Of Memory. Tried to allocate 2 GiB", 0);
	assert_true(failing_has(&f, other, 16, 0));
	assert_true(failing_has(&f, third, 16, 0)); /* several have found that out */
	failing_ended_well(&f, mine, 16, 0);
	assert_false(failing_has(&f, mine, 16, 0) || failing_has(&f, third, 16, 0));
	assert_true(failing_has(&f, other, 16, (DAY_S - 1) * S));
	assert_false(failing_has(&f, other, 16, (DAY_S + 1) * S));
	failing_add(&f, other, 16, "exit code 1", (DAY_S + 1) * S); /* what was a day ago does not count */
	assert_false(failing_has(&f, other, 16, (DAY_S + 1) * S));
	failing_add(&f, third, NAN, "out of memory", 0); /* it never had a batch */
	assert_int_equal(f.n, 1);
	failing_release(&f);
}

/* What several found out is no rule for a user whose runs end well, nor where more users' do. */
TEST(test_runs_that_end_well_count_against_the_failures_of_others)
{
	static const struct failing_who bad[] = { { 1, 1000, 7 }, { 1, 1001, 7 } };
	static const struct failing_who good = { 1, 1002, 7 }, good_too = { 1, 1003, 7 },
					fresh = { 1, 1004, 7 };
	struct failing_batches f = { 0 };

	failing_ended_well(&f, good, 16, 0);
	for (int i = 0; i < 2; i++)
		failing_add(&f, bad[i], 16, "MemoryError", S);
	assert_true(failing_has(&f, fresh, 16, 2 * S));
	assert_false(failing_has(&f, good, 16, 2 * S));
	failing_ended_well(&f, good_too, 16, 2 * S);
	assert_false(failing_has(&f, fresh, 16, 2 * S));
	assert_true(failing_has(&f, bad[0], 16, 2 * S));
	failing_add(&f, good, 16, "MemoryError", 3 * S); /* it ended well before */
	assert_true(failing_has(&f, good, 16, 3 * S) && failing_has(&f, fresh, 16, 3 * S));
	failing_release(&f);
}

TEST(test_only_failures_that_are_the_runs_own_count)
{
	assert_true(failing_counts(true, 0, false, "ended with exit code 1"));
	assert_true(failing_counts(true, SIGSEGV, false, "ended by signal 11"));
	assert_false(failing_counts(true, SIGTERM, false, "ended by signal 15"));
	assert_false(failing_counts(true, SIGKILL, false, "ended by signal 9"));
	assert_true(failing_counts(true, SIGKILL, true, "ended by signal 9")); /* by the kernel, for memory */
	assert_true(failing_counts(false, 0, false, "out of memory, says slurm"));
	assert_false(failing_counts(false, 0, false, "could not be started"));
	assert_false(failing_counts(true, 0, false, "ended with exit code 1: No space left on device"));
	assert_false(failing_counts(true, 0, false, "OSError: [Errno 122] Disk quota exceeded"));
	assert_true(failing_counts(true, 0, false, NULL));
}

/* ---- batches of jobs without a model ---- */

static double choose(const struct first_batches *f, double *guess_s)
{
	static const double batch[] = { 16, 32, 64 };

	return first_choose(f, 1, batch, 3, guess_s);
}

TEST(test_jobs_without_a_model_take_all_batches_in_turn)
{
	struct first_batches f = { 0 };
	double guess_s;

	assert_true(choose(&f, &guess_s) == 32.0 && isnan(guess_s)); /* the middle first */
	first_taken(&f, 1, 32);
	first_taken(&f, 2, 64); /* of another type */
	assert_true(choose(&f, &guess_s) == 16.0);
	first_taken(&f, 1, 16);
	first_took(&f, 1, 32, 100.0);
	assert_true(choose(&f, &guess_s) == 64.0);
	assert_true(fabs(guess_s - 100.0) < 1e-9); /* of the others, as none had this one */
	first_taken(&f, 1, 64);
	first_failed(&f, 1, 64); /* counts as four */
	first_cancelled(&f, 1, 16);
	assert_true(choose(&f, &guess_s) == 16.0);
	first_taken(&f, 1, 0.0); /* no batch */
	first_taken(&f, 1, NAN);
	assert_true(choose(&f, &guess_s) == 16.0);
	first_release(&f);
}

/* ---- terms ---- */

static struct admit_terms terms(struct bed *b, const struct admit_memory *m, struct admit_job j)
{
	struct admit_terms t;
	struct err err = { 0 };

	if (admit_terms(b->s, 0, m, &j, &b->d, &t, &err))
		fail_msg("%s", err.text);
	return t;
}

TEST(test_a_known_job_has_what_it_asks_for)
{
	struct bed b;
	struct strangers none = { 0 };
	struct admit_memory m = { .strangers = &none, .predicts = true, .adapt = true, .promise_after = 9 };
	struct sched_request r, q;
	struct admit_terms t;

	make(&b, "postrider", 4);
	assert_int_equal(job_values_parse(&b.values, b.m->schema, "cpus=2", NULL), 0);
	r = job(&b, 1, 100);
	t = terms(&b, &m, (struct admit_job){ .request = &r, .model = b.m });
	assert_string_equal(t.why, "");
	assert_true(t.promise && !t.n_batches);
	q = admit_request(&t, &r);
	assert_memory_equal(&q, &r, sizeof q);
	drop(&b);
}

TEST(test_a_batch_that_fails_is_no_candidate_unless_it_is_named_or_the_last)
{
	static const double two[] = { 64, 128 };
	struct bed b;
	struct strangers none = { 0 };
	struct failing_batches f = { 0 };
	struct admit_memory m = { .strangers = &none, .failing = &f, .predicts = true, .adapt = true };
	struct sched_request r;
	struct admit_terms t;

	make(&b, "postrider", 4);
	r = job(&b, 1, 100);
	r.batch = two;
	r.n_batches = 2;
	failing_add(&f, (struct failing_who){ r.type, r.user, 5 }, 64, "MemoryError", 0);
	t = terms(&b, &m, (struct admit_job){ .request = &r, .model = b.m, .command = 5 });
	assert_true(t.n_batches == 1 && t.batch[0] == 128.0);
	assert_true(admit_request(&t, &r).batch == t.batch);
	t = terms(&b, &m, (struct admit_job){ .request = &r, .model = b.m, .command = 5, .named = true });
	assert_true(t.n_batches == 0);
	r.n_batches = 1;
	t = terms(&b, &m, (struct admit_job){ .request = &r, .model = b.m, .command = 5 });
	assert_true(t.n_batches == 0);
	failing_release(&f);
	drop(&b);
}

/* It keeps what is left of its limit, is never refused, and gets the next smaller batch. */
TEST(test_a_run_that_failed_is_repeated_with_what_is_left)
{
	static const double three[] = { 32, 64, 128 };
	struct bed b;
	struct strangers none = { 0 };
	struct failing_batches f = { 0 };
	struct admit_memory m = { .strangers = &none, .failing = &f, .predicts = true, .adapt = true };
	struct admit_job j = { .command = 5,
			       .again = true,
			       .promised = true,
			       .failed_batch = 128,
			       .waited_s = 30,
			       .all = three,
			       .n_all = 3 };
	struct sched_request r, q;
	struct admit_terms t;

	make(&b, "postrider", 4);
	r = job(&b, 1, 100);
	r.batch = three + 2; /* what it was narrowed to */
	r.n_batches = 1;
	j.request = &r;
	j.model = b.m;
	t = terms(&b, &m, j);
	assert_true(t.n_batches == 0); /* one failure says little */
	failing_add(&f, (struct failing_who){ r.type, r.user, 5 }, 128, "MemoryError", 0);
	t = terms(&b, &m, j);
	q = admit_request(&t, &r);
	assert_true(q.n_batches == 1 && q.batch[0] == 64.0);
	assert_true(q.slo_s == 70.0 && q.best_effort && q.chance == 0.0);
	j.promised = false;
	assert_true(isnan(terms(&b, &m, j).slo_s));
	j.promised = true;
	j.waited_s = 200;
	assert_true(isnan(terms(&b, &m, j).slo_s));
	failing_release(&f);
	drop(&b);
}

/* It takes what the model would promise, and nothing is promised until three of its kind have ended. */
TEST(test_a_job_of_a_kind_never_seen_takes_the_best_guess)
{
	struct bed b;
	struct strangers seen = { 0 };
	struct admit_memory m = { .strangers = &seen, .predicts = true, .adapt = true, .promise_after = 3 };
	struct admit_job j;
	struct sched_request r;
	struct admit_terms t;

	make(&b, "postrider", 4); /* the values do not say the cpus, by which the model tells jobs apart */
	r = job(&b, 1, 100);
	j = (struct admit_job){ .request = &r, .model = b.m };
	t = terms(&b, &m, j);
	assert_true(!t.promise && isnan(t.slo_s));
	assert_true(t.n_batches == 1 && t.batch[0] == 128.0); /* 60 s at most; 64 has 120 */
	assert_non_null(strstr(t.why, "as 0 such jobs have ended and 3 are needed"));
	for (int i = 0; i < 3; i++)
		strangers_count(&seen, r.type, "the model tells jobs apart by cpus");
	assert_true(terms(&b, &m, j).promise);
	strangers_count(&seen, r.type, ""); /* among others what they took does not reach their bounds */
	assert_false(terms(&b, &m, j).promise);
	strangers_release(&seen);
	drop(&b);
}

TEST(test_without_a_model_nothing_is_promised)
{
	static const double two[] = { 64, 128 };
	struct bed b;
	struct strangers none = { 0 };
	struct first_batches first = { 0 };
	struct admit_memory m = { .strangers = &none, .first = &first, .predicts = true, .first_after = 6 };
	struct sched_request r;
	struct admit_terms t;

	make(&b, "postrider", 4);
	r = job(&b, 1, 100);
	r.batch = two;
	r.n_batches = 2;
	first_taken(&first, r.type, 128);
	first_took(&first, r.type, 128, 40.0);
	m.ended = 1;
	t = terms(&b, &m, (struct admit_job){ .request = &r });
	assert_true(!t.promise && isnan(t.slo_s));
	assert_true(t.n_batches == 1 && t.batch[0] == 64.0 && fabs(t.guess_s - 40.0) < 1e-9);
	assert_non_null(strstr(t.why, "trained after 6 of them, and 1 have ended"));
	m.predicts = false; /* a policy that wants none */
	assert_true(terms(&b, &m, (struct admit_job){ .request = &r }).promise);
	first_release(&first);
	drop(&b);
}

TEST(test_strangers_are_counted_by_type_and_kind)
{
	struct strangers s = { 0 };
	size_t alike, others;

	strangers_count(&s, 1, "network 'x'");
	strangers_count(&s, 1, "network 'x'");
	strangers_count(&s, 1, "");
	strangers_count(&s, 2, "network 'x'");
	strangers_ended(&s, 1, "network 'x'", &alike, &others);
	assert_true(alike == 2 && others == 1);
	strangers_ended(&s, 3, "", &alike, &others);
	assert_true(alike == 0 && others == 0);
	strangers_release(&s);
}
