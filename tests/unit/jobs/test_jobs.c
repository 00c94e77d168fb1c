/* scheduler/jobs/jobs: found by id and by key, in the right list, forgotten in order. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/jobs/jobs.h"
#include "tests/support/test.h"

static struct job *add(struct jobs *j, uint64_t id, enum job_state state)
{
	struct job_record row = {
		.id = id, .type = "digits", .mode = "run", .params = "{}", .verdict = VERDICT_PROMISED
	};
	struct job *job;

	assert_int_equal(job_new(&j->names, &row, &job, NULL), 0);
	job->row.state = state;
	assert_int_equal(jobs_add(j, job, NULL), 0);
	return job;
}

TEST(test_jobs_are_found_by_id_among_thousands)
{
	struct jobs j;

	assert_int_equal(jobs_init(&j, NULL), 0);
	for (uint64_t id = 1; id <= 5000; id++)
		add(&j, id * 37, id % 3 ? JOB_QUEUED : JOB_DONE);
	for (uint64_t id = 1; id <= 5000; id++)
		assert_int_equal(jobs_find(&j, id * 37)->id, id * 37);
	assert_null(jobs_find(&j, 1));
	assert_null(jobs_find(&j, 0));
	assert_int_equal(j.live.n, 3334);
	assert_int_equal(j.count[JOB_DONE], 1666);
	jobs_release(&j);
}

TEST(test_jobs_change_lists_with_their_state)
{
	struct jobs j;
	struct job *a, *b;

	assert_int_equal(jobs_init(&j, NULL), 0);
	a = add(&j, 1, JOB_QUEUED);
	b = add(&j, 2, JOB_QUEUED);
	assert_ptr_equal(j.live.first, a);
	jobs_set_state(&j, a, JOB_RUNNING);
	assert_ptr_equal(j.live.first, a);
	assert_int_equal(a->row.state, JOB_RUNNING);
	jobs_set_state(&j, a, JOB_LOST);
	assert_ptr_equal(j.live.first, b);
	assert_ptr_equal(j.ended.first, a);
	assert_int_equal(j.count[JOB_LOST], 1);
	jobs_take_out(&j, b);
	assert_null(jobs_find(&j, 2));
	assert_int_equal(j.live.n, 0);
	job_free(b);
	jobs_release(&j);
}

TEST(test_jobs_forget_the_oldest_ended_first_but_none_unsaved)
{
	struct jobs j;

	assert_int_equal(jobs_init(&j, NULL), 0);
	for (uint64_t id = 1; id <= 10; id++)
		add(&j, id, JOB_DONE);
	add(&j, 11, JOB_RUNNING);
	jobs_trim(&j, 6);
	assert_null(jobs_find(&j, 4));
	assert_non_null(jobs_find(&j, 5));
	assert_non_null(jobs_find(&j, 11));
	jobs_find(&j, 5)->unsaved = true;
	jobs_trim(&j, 0);
	assert_int_equal(j.ended.n, 6);
	jobs_find(&j, 5)->unsaved = false;
	jobs_trim(&j, 0);
	assert_int_equal(j.ended.n, 0);
	assert_non_null(jobs_find(&j, 11));
	jobs_release(&j);
}

TEST(test_jobs_keys_belong_to_a_user_and_are_bounded)
{
	struct jobs j;
	char key[32];

	assert_int_equal(jobs_init(&j, NULL), 0);
	assert_int_equal(jobs_key_add(&j, 1000, "nightly", 7, NULL), 0);
	assert_int_equal(jobs_key_add(&j, 1001, "nightly", 8, NULL), 0);
	assert_int_equal(jobs_key_find(&j, 1000, "nightly"), 7);
	assert_int_equal(jobs_key_find(&j, 1001, "nightly"), 8);
	assert_int_equal(jobs_key_find(&j, 1002, "nightly"), 0);
	for (uint64_t i = 0; i < JOBS_MAX_KEYS - 1; i++) {
		snprintf(key, sizeof key, "k%llu", (unsigned long long)i);
		assert_int_equal(jobs_key_add(&j, 5, key, 100 + i, NULL), 0);
	}
	assert_int_equal(jobs_key_find(&j, 1000, "nightly"), 0); /* the oldest had to go */
	assert_int_equal(jobs_key_find(&j, 1001, "nightly"), 8);
	assert_int_equal(jobs_key_find(&j, 5, "k0"), 100);
	assert_int_equal(j.n_keys, JOBS_MAX_KEYS);
	jobs_release(&j);
}

TEST(test_jobs_survive_any_failed_allocation)
{
	for (unsigned long k = 1; k < 40; k++) {
		struct job_record row = {
			.id = 3, .type = "t", .mode = "run", .params = "{}", .tag = "x", .key = "y"
		};
		struct jobs j = { 0 };
		struct job *job = NULL;
		struct err err = { 0 };

		mem_fail_at(k, false);
		if (!jobs_init(&j, &err)) {
			if (!job_new(&j.names, &row, &job, &err) && jobs_add(&j, job, &err))
				job_free(job);
			else if (job)
				jobs_key_add(&j, 1, "y", 3, NULL);
		}
		mem_fail_at(0, false);
		jobs_release(&j);
	}
}

static struct job *add_of_value(struct jobs *j, uint64_t id, const char *tenant, double value)
{
	struct job_record row = { .id = id,
				  .type = "digits",
				  .mode = "run",
				  .params = "{}",
				  .tenant = tenant,
				  .verdict = VERDICT_PROMISED,
				  .value = value };
	struct job *job;

	assert_int_equal(job_new(&j->names, &row, &job, NULL), 0);
	assert_int_equal(jobs_add(j, job, NULL), 0);
	return job;
}

/* What live jobs state above 1 is counted for each tenant, and free again when they have ended. */
TEST(test_jobs_know_what_tenants_claim)
{
	struct jobs j;
	struct job *a, *b;

	assert_int_equal(jobs_init(&j, NULL), 0);
	assert_true(jobs_claimed(&j, "lab") == 0.0 && jobs_claimed(&j, NULL) == 0.0);
	a = add_of_value(&j, 1, "lab", 3.5);
	b = add_of_value(&j, 2, "lab", 1.1);
	add_of_value(&j, 3, "lab", 0.25);
	add_of_value(&j, 4, "lab", NAN);
	add_of_value(&j, 5, NULL, 7.0);
	add_of_value(&j, 6, "home", 2.0);
	assert_float_equal(jobs_claimed(&j, "lab"), 2.6, 1e-9);
	assert_float_equal(jobs_claimed(&j, "home"), 1.0, 1e-9);
	jobs_set_state(&j, a, JOB_RUNNING);
	assert_float_equal(jobs_claimed(&j, "lab"), 2.6, 1e-9);
	jobs_set_state(&j, a, JOB_DONE);
	assert_float_equal(jobs_claimed(&j, "lab"), 0.1, 1e-9);
	jobs_take_out(&j, b);
	job_free(b);
	assert_true(jobs_claimed(&j, "lab") == 0.0);
	jobs_release(&j);
}
