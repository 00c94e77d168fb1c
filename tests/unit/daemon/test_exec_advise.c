/* The table of executors, and the advising one: it knows which jobs there are, and nothing more. */
#define _GNU_SOURCE
#include "tests/support/test.h"
#include "tests/unit/daemon/test_exec_harness.h"

static int set_up(void **state)
{
	*state = world_new("advise");
	return 0;
}

static int tear_down(void **state)
{
	mem_fail_at(0, false);
	world_free(*state);
	return 0;
}

static int stop(struct world *w, uint64_t id, struct err *err)
{
	int rc;

	w->inside = true;
	rc = w->ops->stop(w->self, id, 1.0, err);
	w->inside = false;
	return rc;
}

TEST_WITH(test_table_finds_executors_by_their_mode, set_up, tear_down)
{
	assert_string_equal(executor_find("run")->name, "run");
	assert_string_equal(executor_find("advise")->name, "advise");
	assert_null(executor_find("walk"));
	for (size_t i = 0; executor_all[i]; i++)
		assert_ptr_equal(executor_find(executor_all[i]->name),
				 executor_all[i]->no_mode ? NULL : executor_all[i]);
	assert_null(executor_find("engine")); /* a type has an engine; a client can not ask for it */
}

TEST_WITH(test_destroying_nothing_is_allowed, set_up, tear_down)
{
	for (size_t i = 0; executor_all[i]; i++)
		executor_all[i]->destroy(NULL);
}

TEST_WITH(test_creation_survives_every_failing_allocation, set_up, tear_down)
{
	struct world *w = *state;
	struct executor_sink sink = { 0 };

	for (size_t i = 0; executor_all[i]; i++) {
		bool failed = true;

		for (unsigned long k = 1; failed; k++) {
			struct err err = { 0 };
			void *self = NULL;
			int rc;

			mem_fail_at(k, false);
			rc = executor_all[i]->create(w->base, &sink, &self, &err);
			failed = mem_failed();
			mem_fail_at(0, false);
			assert_int_equal(rc, failed ? -ERR_NOMEM : 0);
			executor_all[i]->destroy(self);
		}
	}
}

TEST_WITH(test_missing_supervisor_is_said_at_creation, set_up, tear_down)
{
	struct world *w = *state;
	struct executor_sink sink = { 0 };
	struct err err = { 0 };
	void *self;

	setenv("POSTRIDER_SUPERVISOR", "/nowhere/postrider-supervisor", 1);
	assert_int_equal(executor_find("run")->create(w->base, &sink, &self, &err), -ERR_NOTFOUND);
	assert_non_null(strstr(err.text, "/nowhere/postrider-supervisor"));
	support_find_supervisor();
}

TEST_WITH(test_advised_job_runs_nothing, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();

	start_script(w, jobs, 1, "touch made");
	assert_int_equal(w->ops->running(w->self), 1);
	turn(w, 0.05);
	assert_int_equal(w->n_started + w->n_finished, 0);
	assert_int_not_equal(access(in_job(jobs, 1, ""), F_OK), 0);
}

TEST_WITH(test_stopped_advised_job_is_told_of_from_the_loop, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	struct err err = { 0 };

	for (uint64_t id = 1; id <= 5; id++)
		start_script(w, jobs, id, "");
	assert_int_equal(stop(w, 2, &err), 0);
	assert_int_equal(stop(w, 5, &err), 0);
	assert_int_equal(stop(w, 5, &err), 0);
	assert_int_equal(stop(w, 9, &err), -ERR_NOTFOUND);
	assert_int_equal(w->n_finished, 0);
	wait_finished(w, 2);
	assert_int_equal(w->ops->running(w->self), 3);
	assert_int_equal(told_of(w, 2)->n_finished, 1);
	assert_int_equal(told_of(w, 5)->n_finished, 1);
	assert_false(told_of(w, 5)->outcome.lost);
	assert_int_equal(told_of(w, 5)->outcome.exit_code, -1);
	assert_int_equal(told_of(w, 5)->outcome.started_ns, 0);
	assert_true(told_of(w, 5)->outcome.ended_ns > 0);
	assert_true(isnan(told_of(w, 5)->outcome.run_s) && isnan(told_of(w, 5)->outcome.accuracy));
	assert_int_equal(stop(w, 2, &err), -ERR_NOTFOUND);
}

TEST_WITH(test_adopted_advised_job_is_known_again, set_up, tear_down)
{
	struct world *w = *state;

	must_adopt(w, jobs_dir(), 7);
	assert_int_equal(w->ops->running(w->self), 1);
	turn(w, 0.02);
	assert_int_equal(w->n_started + w->n_finished, 0);
}

TEST_WITH(test_forgotten_advised_job_is_not_told_of, set_up, tear_down)
{
	struct world *w = *state;
	struct err err = { 0 };

	start_script(w, jobs_dir(), 1, "");
	start_script(w, jobs_dir(), 2, "");
	assert_int_equal(stop(w, 1, &err), 0);
	w->ops->forget(w->self, 1);
	w->ops->forget(w->self, 3);
	assert_int_equal(w->ops->running(w->self), 1);
	turn(w, 0.02);
	assert_int_equal(w->n_finished, 0);
}

TEST_WITH(test_same_advised_job_twice_is_refused, set_up, tear_down)
{
	struct world *w = *state;
	struct job_spec s = spec_of("/", 1, "");
	struct err err = { 0 };

	assert_int_equal(start_spec(w, &s, &err), 0);
	assert_int_equal(start_spec(w, &s, &err), -ERR_BUSY);
	s.job.id = 2;
	mem_fail_at(1, true);
	for (; s.job.id < 100 && !mem_failed(); s.job.id++)
		start_spec(w, &s, &err);
	assert_int_equal(err.code, ERR_NOMEM);
	mem_fail_at(0, false);
	assert_int_equal(start_spec(w, &s, &err), 0);
}
