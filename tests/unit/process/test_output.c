/* The output of a job as it grows: lines that count are found, everything else is passed over at a bounded
 * cost. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/rng.h"
#include "scheduler/process/output.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

struct log {
	char dir[400];
	int fd;
	struct job_output out;
	char scratch[JOB_OUTPUT_MAX_LINE + 1];
};

static int set_up(void **state)
{
	static unsigned n;
	struct log *l = calloc(1, sizeof *l);
	char path[500];

	assert_non_null(l);
	snprintf(l->dir, sizeof l->dir, "%s/job-%u", support_temp_dir(), n++);
	assert_int_equal(mkdir(l->dir, 0700), 0);
	snprintf(path, sizeof path, "%s/stdout", l->dir);
	l->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(l->fd >= 0);
	assert_int_equal(job_output_init(&l->out, l->dir, NULL, NAN, NULL), 0);
	*state = l;
	return 0;
}

static int tear_down(void **state)
{
	struct log *l = *state;

	mem_fail_at(0, false);
	job_output_release(&l->out);
	close(l->fd);
	free(l);
	return 0;
}

static void put(struct log *l, const char *text)
{
	assert_int_equal(write(l->fd, text, strlen(text)), strlen(text));
}

static void put_many(struct log *l, char c, size_t n)
{
	char *text = malloc(n);

	assert_non_null(text);
	memset(text, c, n);
	assert_int_equal(write(l->fd, text, n), n);
	free(text);
}

/* Until there is nothing more at once; how many turns that took. */
static unsigned read_all(struct log *l, bool ended)
{
	unsigned turns = 0;
	bool more = true;

	while (more) {
		assert_true(job_output_read(&l->out, l->scratch, ended, &more) <= 2 * sizeof l->scratch);
		assert_true(++turns < 1000);
	}
	return turns;
}

TEST_WITH(test_lines_are_read_as_they_come, set_up, tear_down)
{
	struct log *l = *state;

	read_all(l, false);
	assert_true(isnan(l->out.accuracy) && isnan(l->out.epoch) && !l->out.news);
	put(l, "hello\n{\"epoch\":1,\"accuracy\":0.37}\n{\"epo");
	read_all(l, false);
	assert_true(l->out.news && l->out.epoch == 1.0 && l->out.epoch_accuracy == 0.37);
	l->out.news = false;
	put(l, "ch\":2,\"accur");
	read_all(l, false);
	assert_false(l->out.news);
	put(l, "acy\":0.52}\r\n");
	read_all(l, false);
	assert_true(l->out.news && l->out.epoch == 2.0 && l->out.accuracy == 0.52);
}

TEST_WITH(test_nothing_new_costs_no_reading, set_up, tear_down)
{
	struct log *l = *state;
	bool more;

	put(l, "{\"epoch\":1}\nstart of a li");
	read_all(l, false);
	assert_int_equal(job_output_read(&l->out, l->scratch, false, &more), 0);
	put(l, "ne");
	assert_int_equal(job_output_read(&l->out, l->scratch, false, &more), strlen("start of a line"));
	assert_int_equal(job_output_read(&l->out, l->scratch, false, &more), 0);
}

TEST_WITH(test_last_line_needs_no_newline_once_the_job_ended, set_up, tear_down)
{
	struct log *l = *state;

	put(l, "{\"accuracy\":0.37}\n{\"accuracy\":0.625}");
	read_all(l, false);
	assert_true(l->out.accuracy == 0.37);
	read_all(l, true);
	assert_true(l->out.accuracy == 0.625);
	read_all(l, true);
	assert_true(l->out.accuracy == 0.625);
}

TEST_WITH(test_epochs_only_rise_and_may_come_without_accuracy, set_up, tear_down)
{
	struct log *l = *state;

	put(l, "{\"epoch\":3,\"accuracy\":0.3}\n{\"epoch\":2,\"accuracy\":0.2}\n{\"epoch\":3,\"accuracy\":0."
	       "4}\n");
	read_all(l, false);
	assert_true(l->out.epoch == 3.0 && l->out.epoch_accuracy == 0.3 && l->out.accuracy == 0.4);
	put(l,
	    "{\"epoch\":4}\n{\"epoch\":\"5\"}\n{\"epoch\":null}\n{\"accuracy\":\"high\"}\n[{\"epoch\":9}]\n");
	read_all(l, false);
	assert_true(l->out.epoch == 4.0 && isnan(l->out.epoch_accuracy) && l->out.accuracy == 0.4);
}

TEST_WITH(test_paths_of_the_type_are_used, set_up, tear_down)
{
	struct log *l = *state;

	job_output_release(&l->out);
	assert_int_equal(job_output_init(&l->out, l->dir,
					 &(struct output_spec){ .accuracy = "test.top1", .epoch = "at" }, NAN,
					 NULL),
			 0);
	put(l, "{\"at\":7,\"test\":{\"top1\":0.81},\"accuracy\":0.1,\"epoch\":1}\n");
	read_all(l, false);
	assert_true(l->out.epoch == 7.0 && l->out.accuracy == 0.81);
}

TEST_WITH(test_line_is_read_up_to_the_limit_and_passed_over_beyond, set_up, tear_down)
{
	struct log *l = *state;
	const char *head = "{\"accuracy\":0.25,\"x\":\"", *tail = "\"}\n";
	size_t fill = JOB_OUTPUT_MAX_LINE - strlen(head) - (strlen(tail) - 1);

	put(l, head);
	put_many(l, 'x', fill);
	put(l, tail);
	read_all(l, false);
	assert_true(l->out.accuracy == 0.25);
	put(l, "{\"accuracy\":0.75,\"x\":\"");
	put_many(l, 'x', fill + 1);
	read_all(l, false); /* its end comes later */
	put(l, tail);
	put(l, "{\"epoch\":8}\n");
	read_all(l, false);
	assert_true(l->out.accuracy == 0.25 && l->out.epoch == 8.0);
}

TEST_WITH(test_endless_line_and_noise_are_passed_over, set_up, tear_down)
{
	struct log *l = *state;
	struct rng r = rng_stream(3, 1);
	char noise[5000];

	for (int i = 0; i < 60; i++) {
		for (size_t k = 0; k < sizeof noise; k++)
			noise[k] = (char)rng_below(&r, 256);
		noise[0] = i % 2 ? '{' : noise[0];
		assert_int_equal(write(l->fd, noise, sizeof noise), sizeof noise);
		read_all(l, false);
	}
	put_many(l, '{', 700000);
	read_all(l, false);
	put(l, "\n{\"accuracy\":0.5}\n");
	read_all(l, false);
	assert_true(l->out.accuracy == 0.5);
}

TEST_WITH(test_reader_far_behind_goes_to_the_end, set_up, tear_down)
{
	struct log *l = *state;
	unsigned turns;

	put(l, "{\"accuracy\":0.125}\n");
	for (int i = 0; i < 50; i++) {
		put_many(l, 'y', 99999);
		put(l, "\n");
	}
	put(l, "{\"epoch\":6,\"accuracy\":0.25}\n");
	turns = read_all(l, true);
	assert_true(l->out.accuracy == 0.25 && l->out.epoch == 6.0);
	/* A line that did not fit is read a second time, from its start. */
	assert_true(turns <= 2 * (JOB_OUTPUT_MAX_BEHIND / JOB_OUTPUT_MAX_LINE) + 2);
}

TEST_WITH(test_log_that_was_cut_is_read_from_its_start, set_up, tear_down)
{
	struct log *l = *state;

	put(l, "{\"epoch\":1}\nsome more text that will go\n");
	read_all(l, false);
	assert_int_equal(ftruncate(l->fd, 0), 0);
	put(l, "{\"epoch\":2}\n");
	read_all(l, false);
	assert_true(l->out.epoch == 2.0);
}

TEST_WITH(test_time_of_an_epoch_is_that_of_the_file, set_up, tear_down)
{
	struct log *l = *state;
	struct timespec when[2] = { { .tv_sec = 1700000000, .tv_nsec = 5 },
				    { .tv_sec = 1700000000, .tv_nsec = 5 } };

	put(l, "{\"epoch\":1}\n");
	assert_int_equal(futimens(l->fd, when), 0);
	read_all(l, false);
	assert_true(l->out.epoch_ns == INT64_C(1700000000000000005));
}

TEST_WITH(test_bar_that_writes_over_itself_is_read_as_it_is_drawn, set_up, tear_down)
{
	struct log *l = *state;

	job_output_release(&l->out);
	assert_int_equal(job_output_init(&l->out, l->dir, NULL, 14.0, NULL), 0);
	put(l, "\r  0%|      | 0/14 [00:00<?, ?it/s]");
	read_all(l, false);
	assert_true(isnan(l->out.epoch));
	put(l, "\r  7%|#     | 1/14 [00:30<01:50, acc=0.5");
	read_all(l, false);
	assert_true(isnan(l->out.epoch)); /* it may go on: 0.52 */
	put(l, "2]");
	read_all(l, false);
	assert_true(l->out.epoch == 1.0 && l->out.accuracy == 0.52 && l->out.news && l->out.told == 14.0);
	put(l, "\r 14%|##    | 2/14 [00:30<01:50, acc=0.625]\n");
	read_all(l, false);
	assert_true(l->out.epoch == 2.0 && l->out.accuracy == 0.625);
}

TEST_WITH(test_standard_error_counts_where_standard_output_says_nothing, set_up, tear_down)
{
	struct log *l = *state;
	char path[500];
	int out = l->fd, talk;

	snprintf(path, sizeof path, "%s/stderr", l->dir);
	talk = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(talk >= 0);
	l->fd = talk;
	put(l, "INFO: epoch 1 loss=0.5\nINFO: epoch 2 acc=0.25\n");
	l->fd = out;
	read_all(l, false);
	assert_true(l->out.epoch == 2.0 && l->out.accuracy == 0.25);
	put(l, "epoch 3 acc=0.75\n");
	read_all(l, false);
	assert_true(l->out.epoch == 3.0 && l->out.accuracy == 0.75);
	l->out.news = false;
	l->fd = talk;
	put(l, "INFO: epoch 4 acc=0.125\n");
	l->fd = out;
	read_all(l, false);
	assert_true(l->out.epoch == 3.0 && l->out.accuracy == 0.75 && !l->out.news);
	close(talk);
}

/* In place of the log. */
static void expect_nothing(struct log *l)
{
	struct job_output o;
	bool more = true;

	assert_int_equal(job_output_init(&o, l->dir, NULL, NAN, NULL), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(job_output_read(&o, l->scratch, i == 2, &more), 0);
		assert_false(more);
	}
	assert_true(isnan(o.accuracy));
	job_output_release(&o);
}

TEST_WITH(test_log_that_is_no_file_is_left_alone, set_up, tear_down)
{
	struct log *l = *state;
	char path[500], secret[500];

	snprintf(path, sizeof path, "%s/stdout", l->dir);
	snprintf(secret, sizeof secret, "%s/secret", l->dir);
	assert_int_equal(rename(path, secret), 0);
	put(l, "{\"accuracy\":0.5}\n");
	expect_nothing(l); /* there is none */
	assert_int_equal(symlink(secret, path), 0);
	expect_nothing(l);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0); /* without a writer: opening it must not wait for one */
	expect_nothing(l);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	expect_nothing(l);
}

TEST_WITH(test_failing_allocations_lose_a_line_at_most, set_up, tear_down)
{
	struct log *l = *state;
	struct output_spec spec = { .accuracy = "a", .epoch = "b" };
	struct job_output o;
	bool failed = true;

	for (unsigned long k = 1; k <= 3; k++) {
		mem_fail_at(k, false);
		assert_int_equal(job_output_init(&o, l->dir, &spec, NAN, NULL), -ERR_NOMEM);
	}
	for (unsigned long k = 1; failed; k++) {
		put(l, "{\"accuracy\":0.5}\n");
		mem_fail_at(k, false);
		read_all(l, false);
		failed = mem_failed();
		mem_fail_at(0, false);
		assert_true(k < 100);
	}
	assert_true(l->out.accuracy == 0.5);
}

TEST_WITH(test_last_words_are_the_last_line_made_fit_to_show, set_up, tear_down)
{
	static const struct {
		const char *said, *shown;
	} known[] = {
		{ "", "" },
		{ "\n \n", "" },
		{ "first\nno such file: x\n\n", "no such file: x" },
		{ "only", "only" },
		{ "a\n\033[31mred\n", "\\x1b[31mred" },
	};
	struct log *l = *state;
	char path[500], out[160];

	assert_string_equal(job_last_words(l->dir, out, sizeof out), ""); /* there is none yet */
	snprintf(path, sizeof path, "%s/stderr", l->dir);
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		FILE *f = fopen(path, "w");

		assert_non_null(f);
		for (int k = 0; i == 2 && k < 1000; k++)
			fputs("long before\n", f);
		fputs(known[i].said, f);
		fclose(f);
		assert_string_equal(job_last_words(l->dir, out, sizeof out), known[i].shown);
	}
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0); /* must not hang */
	assert_string_equal(job_last_words(l->dir, out, sizeof out), "");
}

static size_t curve_of(struct log *l, struct output_curve *curve)
{
	assert_int_equal(output_curve_read(&l->out, curve, NULL), 0);
	return curve->n;
}

TEST_WITH(test_a_curve_has_what_each_epoch_told, set_up, tear_down)
{
	struct output_curve curve = { 0 };
	struct log *l = *state;

	put(l, "{\"epoch\":1,\"accuracy\":0.5,\"loss\":1.25,\"elapsed_s\":2}\nwords\n"
	       "{\"epoch\":2,\"accuracy\":0.75}\n{\"epoch\":3,\"loss\":0.5}");
	assert_int_equal(curve_of(l, &curve), 3);
	assert_true(curve.point[0].epoch == 1.0 && curve.point[0].accuracy == 0.5);
	assert_true(curve.point[0].loss == 1.25 && curve.point[0].elapsed_s == 2.0);
	assert_true(curve.point[1].accuracy == 0.75 && isnan(curve.point[1].loss));
	assert_true(curve.point[2].epoch == 3.0 && isnan(curve.point[2].accuracy) &&
		    curve.point[2].loss == 0.5);
	output_curve_release(&curve);
}

TEST_WITH(test_a_long_curve_keeps_its_shape_in_bounded_room, set_up, tear_down)
{
	struct output_curve curve = { 0 };
	struct log *l = *state;
	char line[64];

	for (int i = 1; i <= 5000; i++) {
		snprintf(line, sizeof line, "{\"epoch\":%d,\"accuracy\":0.5}\n", i);
		put(l, line);
	}
	assert_in_range(curve_of(l, &curve), OUTPUT_MAX_POINTS / 2, OUTPUT_MAX_POINTS);
	assert_true(curve.point[0].epoch == 1.0);
	assert_true(curve.point[curve.n - 1].epoch > 4980.0);
	for (size_t i = 1; i < curve.n; i++) /* evenly */
		assert_true(curve.point[i].epoch - curve.point[i - 1].epoch == 8.0);
	output_curve_release(&curve);
}

TEST_WITH(test_a_curve_without_memory_is_an_error, set_up, tear_down)
{
	bool failed = true;
	int errors = 0;
	struct output_curve curve = { 0 };
	struct log *l = *state;

	for (unsigned long k = 1; failed; k++) { /* a line that was not understood is passed over */
		char line[64];

		snprintf(line, sizeof line, "{\"epoch\":%lu,\"accuracy\":0.5}\n", k);
		put(l, line);
		mem_fail_at(k, false);
		errors += output_curve_read(&l->out, &curve, NULL) == -ERR_NOMEM;
		failed = mem_failed();
		mem_fail_at(0, false);
		output_curve_release(&curve);
		assert_true(k < 100);
	}
	assert_true(errors >= 2); /* no room to read into, and none for the epoch */
	output_curve_release(&curve);
}

TEST_WITH(test_a_tail_starts_with_a_line_and_shows_no_foreign_file, set_up, tear_down)
{
	struct strbuf text = { 0 };
	struct log *l = *state;
	char path[500], other[520];

	output_tail(l->dir, "nothing", 100, &text);
	assert_int_equal(text.len, 0);
	put(l, "first\nsecond\nthird");
	output_tail(l->dir, "stdout", 100, &text);
	assert_string_equal(text.text, "first\nsecond\nthird");
	strbuf_reset(&text);
	output_tail(l->dir, "stdout", 9, &text);
	assert_string_equal(text.text, "third");
	strbuf_reset(&text);
	assert_int_equal(write(l->fd, "\0!", 2), 2);
	output_tail(l->dir, "stdout", 100, &text);
	assert_string_equal(text.text, "first\nsecond\nthird !");
	strbuf_reset(&text);
	snprintf(path, sizeof path, "%s/stdout", l->dir);
	snprintf(other, sizeof other, "%s-too", path);
	assert_int_equal(link(path, other), 0); /* a second name */
	output_tail(l->dir, "stdout", 100, &text);
	assert_int_equal(text.len, 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(other, path), 0);
	output_tail(l->dir, "stdout", 100, &text);
	assert_int_equal(text.len, 0);
	strbuf_release(&text);
}
