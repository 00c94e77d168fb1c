/* scheduler/daemon/store and kill -9: whatever the moment, what was confirmed is there, and each commit is
 * whole or absent. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>

#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#include "common/rng.h"

#define KILLS 60
#define ROWS_PER_COMMIT 3

/* Commits for ever, and writes the id of the last job of every confirmed ticket to the pipe. */
static void commit_for_ever(const char *dir, int confirmed)
{
	struct store *s = NULL;
	struct err err = { 0 };
	uint64_t id, told = 0, last_of[4096] = { 0 };

	if (store_open(&(struct store_params){ .dir = dir }, &s, &err))
		_exit(2);
	id = store_last_id(s);
	for (;;) {
		struct pollfd p = { store_fd(s), POLLIN, 0 };
		uint64_t t;

		for (int i = 0; i < ROWS_PER_COMMIT; i++) {
			struct job_record j = plain_job(++id);

			if (store_add_job(s, &j, &err) ||
			    store_add_decision(s, id, NOON, "arrival", "{}", &err))
				_exit(3);
		}
		t = store_commit(s);
		if (t >= 4096)
			_exit(4);
		last_of[t] = id;
		/* at times without waiting, so that batches merge */
		if (poll(&p, 1, t % 4 ? 1000 : 0) > 0)
			store_dispatch(s);
		if (store_failed(s, NULL))
			_exit(5);
		while (told < store_durable(s)) {
			told++;
			if (write(confirmed, &last_of[told], sizeof last_of[told]) != sizeof last_of[told])
				_exit(6);
		}
	}
}

/* The highest id confirmed by a child that is killed after `after_us`, counted from its start or, with
 * `commits`, from the first commit that it confirms: on a busy machine to open a store takes long. */
static uint64_t run_and_kill(const char *dir, unsigned after_us, bool commits)
{
	struct pollfd first;
	uint64_t id, highest = 0;
	int fd[2], status;
	pid_t child;

	assert_int_equal(pipe(fd), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(fd[0]);
		commit_for_ever(dir, fd[1]);
	}
	close(fd[1]);
	first = (struct pollfd){ fd[0], POLLIN, 0 };
	if (commits)
		assert_int_equal(poll(&first, 1, 60000), 1);
	usleep(after_us);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status)); /* it had not left by itself */
	while (read(fd[0], &id, sizeof id) == sizeof id) {
		assert_true(id > highest);
		highest = id;
	}
	close(fd[0]);
	return highest;
}

TEST(test_confirmed_rows_survive_kill_at_any_moment)
{
	char dir[128];
	struct rng rng = rng_stream(17, 0);
	uint64_t confirmed = 0;
	long long in_file = 0;
	int with_progress = 0;

	snprintf(dir, sizeof dir, "%s", fresh_dir());
	for (int i = 0; i < KILLS; i++) {
		/* from within the opening to well within the commits */
		uint64_t highest = run_and_kill(dir, 200 + rng_below(&rng, 60000), i % 2);
		struct store *s = open_store(dir);
		sqlite3 *db = NULL;

		if (highest > confirmed)
			confirmed = highest;
		with_progress += highest > 0;
		assert_true(store_last_id(s) >= confirmed);
		store_close(s);
		assert_int_equal(sqlite3_open(support_path(dir, "postrider.db"), &db), SQLITE_OK);
		assert_int_equal(number_of(db, NOT_OK), 0);
		in_file = number_of(db, "SELECT count(*) FROM jobs");
		assert_true(in_file >= (long long)confirmed);
		assert_int_equal(number_of(db, "SELECT ifnull(max(id),0) FROM jobs"), in_file); /* no gap */
		assert_int_equal(in_file % ROWS_PER_COMMIT, 0); /* commits are whole */
		assert_int_equal(number_of(db, "SELECT count(*) FROM decisions"), in_file);
		assert_int_equal(number_of(db, "SELECT count(DISTINCT job) FROM decisions"), in_file);
		assert_int_equal(number_of(db, "SELECT value FROM meta WHERE name='last_id'"), in_file);
		sqlite3_close(db);
	}
	print_message(
		"%d kills, %d of them after a confirmed commit; %llu rows confirmed, %lld in the file\n",
		KILLS, with_progress, (unsigned long long)confirmed, in_file);
	assert_true(with_progress >= KILLS / 2);
}
