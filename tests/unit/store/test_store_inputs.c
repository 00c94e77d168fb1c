/* What decisions were made from (table inputs): kept in the order in which it came, read by a visitor, and
 * forgotten with the oldest jobs. */
#define _GNU_SOURCE
#include "tests/unit/store/store_fixture.h"

static void add_one(struct store *s, int64_t at_ns, const char *what, uint64_t job, double number,
		    const char *text)
{
	struct store_input in = { at_ns, what, job, number, text };
	struct err err = { 0 };

	if (store_add_input(s, &in, &err))
		fail_msg("%s", err.text);
}

static void add_job(struct store *s, uint64_t id)
{
	struct job_record r = plain_job(id);
	struct err err = { 0 };

	r.state = JOB_DONE;
	r.ended_ns = r.submitted_ns + 1;
	assert_int_equal(store_add_job(s, &r, &err), 0);
}

static int no_begin(void *owner, const char *path, struct err *err)
{
	(void)path;
	(void)err;
	strbuf_reset(owner);
	return 0;
}

static int see_job(void *owner, const struct job_record *j, struct err *err)
{
	(void)err;
	strbuf_printf(owner, "job %llu;", (unsigned long long)j->id);
	return 0;
}

static int see_input(void *owner, const struct store_input *in, struct err *err)
{
	(void)err;
	strbuf_printf(owner, "%s %llu %g %s;", in->what, (unsigned long long)in->job, in->number,
		      in->text ? in->text : "-");
	return 0;
}

static int see_decision(void *owner, uint64_t job, int64_t at_ns, const char *moment, const char *json,
			struct err *err)
{
	(void)at_ns;
	(void)err;
	strbuf_printf(owner, "%s of %llu %s;", moment, (unsigned long long)job, json);
	return 0;
}

static const char *visited(const char *dir)
{
	static struct strbuf out;
	const struct store_visitor v = { no_begin, see_job, see_input, see_decision, &out };
	struct err err = { 0 };

	if (store_visit(dir, &v, &err))
		fail_msg("%s", err.text);
	return strbuf_text(&out);
}

TEST(test_inputs_and_decisions_come_behind_the_jobs_in_their_order)
{
	const char *dir = memory_dir();
	struct store *s = open_store(dir);

	add_job(s, 7);
	add_one(s, NOON + 9, "ended", 7, NAN, "{}");
	add_one(s, NOON + 5, "began", 0, NAN, NULL); /* the clock does not matter */
	assert_int_equal(store_add_decision(s, 7, NOON, "arrival", "{\"a\":1}", NULL), 0);
	add_one(s, NOON + 6, "started", 7, -0.25, NULL);
	commit_all(s);
	assert_string_equal(visited(dir), "job 7;ended 7 nan {};began 0 nan -;started 7 -0.25 -;"
					  "arrival of 7 {\"a\":1};");
	store_close(s);
	assert_string_equal(visited(dir), "job 7;ended 7 nan {};began 0 nan -;started 7 -0.25 -;"
					  "arrival of 7 {\"a\":1};");
}

TEST(test_inputs_from_before_the_oldest_job_are_forgotten_with_the_one_before)
{
	const char *dir = memory_dir();
	struct store *s = open_store(dir);
	struct store_expired first = { .job = 1 };

	add_job(s, 1);
	add_one(s, NOON - 1, "began", 0, NAN, NULL);
	add_one(s, NOON + 1, "ended", 1, NAN, "{}");
	add_one(s, NOON + 3, "started", 2, NAN, NULL);
	add_job(s, 2); /* at NOON + 2 */
	commit_all(s);
	assert_int_equal(store_forget(s, &first, NULL), 0);
	commit_all(s);
	assert_string_equal(visited(dir), "job 2;started 2 nan -;");
	store_close(s);
}

/* A file that no daemon of this version has opened yet. */
TEST(test_a_file_of_version_9_has_no_inputs)
{
	const char *dir = memory_dir();
	struct store *s = open_store(dir);

	add_job(s, 3);
	commit_all(s);
	store_close(s);
	sql_run(dir, "ALTER TABLE jobs DROP COLUMN steered; ALTER TABLE jobs DROP COLUMN steer_kept; "
		     "DROP TABLE inputs; UPDATE meta SET value=9 WHERE name='schema_version'; PRAGMA "
		     "user_version=9");
	assert_string_equal(visited(dir), "job 3;");
	s = open_store(dir);
	add_one(s, NOON, "began", 0, NAN, NULL);
	commit_all(s);
	store_close(s);
	assert_string_equal(visited(dir), "job 3;began 0 nan -;");
}
