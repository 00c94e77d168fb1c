/* What engines ask for and understand (slurm.c, command.c), the hand-over record, and running their programs.
 * With real engines: tests/cli/engine.sh, tests/slurm/. */
#define _GNU_SOURCE
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/io.h"
#include "common/mem.h"
#include "common/text/template.h"
#include "scheduler/engines/errand.h"
#include "scheduler/daemon/exec/handover.h"
#include "scheduler/process/record_format.h"
#include "tests/support/test.h"

#define IDENTITY "0123456789abcdef0123456789abcdef"

static char *const command[] = { "/opt/postrider-supervisor", "--dir=/s/7", "--", "it's", NULL };

static struct engine_task task(void)
{
	return (struct engine_task){ .job = 7,
				     .identity = IDENTITY,
				     .type = "digits",
				     .tenant = "red",
				     .account = "red-account",
				     .gres = "gpu:2",
				     .cpus = 3,
				     .memory_mb = 100.2,
				     .limit_s = 61.0,
				     .report = "/s/50%/7.report",
				     .command = command };
}

static bool has(char **argv, const char *word)
{
	for (size_t i = 0; argv[i]; i++) {
		if (!strcmp(argv[i], word))
			return true;
	}
	return false;
}

static void release(struct engine_call *c)
{
	argv_free(c->argv);
	strbuf_release(&c->input);
}

TEST(test_sbatch_gets_what_the_job_needs)
{
	struct config_engine c = { .kind = ENGINE_SLURM, .bin = "/opt/slurm/bin" };
	char *options[] = { "--qos=short", NULL };
	struct engine_task t = task();
	struct engine_call call = { 0 };

	c.options = (struct engine_command){ .word = options, .n = 1 };
	assert_int_equal(engine_slurm.submit(&c, &t, &call, NULL), 0);
	assert_string_equal(call.argv[0], "/opt/slurm/bin/sbatch");
	assert_true(has(call.argv, "--parsable"));
	assert_true(has(call.argv, "--no-requeue"));
	assert_true(has(call.argv, "--export=ALL")); /* less costs a login shell a job */
	assert_true(has(call.argv, "--comment=postrider:" IDENTITY));
	assert_true(has(call.argv, "--cpus-per-task=3"));
	assert_true(has(call.argv, "--mem=101M"));
	assert_true(
		has(call.argv, "--time=2")); /* minutes, rounded up: a limit is never below what was asked */
	assert_true(has(call.argv, "--gres=gpu:2"));
	assert_true(has(call.argv, "--account=red-account"));
	assert_true(has(call.argv, "--qos=short"));
	assert_true(has(call.argv, "--output=/s/50%%/7.report")); /* sbatch has a meaning for % */
	for (size_t i = 0; call.argv[i]; i++)
		assert_null(strstr(call.argv[i], "--partition"));
	assert_string_equal(call.input.text,
			    "#!/bin/sh\nexec '/opt/postrider-supervisor' '--dir=/s/7' '--' 'it'\\''s'\n");
	release(&call);
}

TEST(test_without_a_bound_slurm_has_its_own_limit)
{
	const struct config_engine c = { .kind = ENGINE_SLURM };
	struct engine_task t = task();
	struct engine_call call = { 0 };

	t.limit_s = t.memory_mb = NAN;
	assert_int_equal(engine_slurm.submit(&c, &t, &call, NULL), 0);
	for (size_t i = 0; call.argv[i]; i++)
		assert_true(!strstr(call.argv[i], "--time") && !strstr(call.argv[i], "--mem"));
	release(&call);
}

TEST(test_answers_of_sbatch)
{
	char out[200];

	assert_int_equal(engine_slurm.answer(0, "1234\n", "", out, sizeof out), ENGINE_YES);
	assert_string_equal(out, "1234");
	assert_int_equal(engine_slurm.answer(0, "77;cluster\n", "", out, sizeof out), ENGINE_YES);
	assert_string_equal(out, "77");
	assert_int_equal(engine_slurm.answer(0, "", "", out, sizeof out), ENGINE_UNSURE);
	assert_int_equal(
		engine_slurm.answer(1, "",
				    "sbatch: error: Batch job submission failed: Unable to contact slurm "
				    "controller (connect failure)",
				    out, sizeof out),
		ENGINE_UNSURE);
	assert_int_equal(
		engine_slurm.answer(1, "", "sbatch: error: invalid partition specified: x", out, sizeof out),
		ENGINE_NO);
	assert_string_equal(out, "sbatch: error: invalid partition specified: x");
}

TEST(test_lines_of_squeue)
{
	struct engine_line l;

	assert_true(engine_slurm.line("12|PENDING|postrider:" IDENTITY "||Resources", &l));
	assert_string_equal(l.identity, IDENTITY);
	assert_string_equal(l.id, "12");
	assert_int_equal(l.word, ENGINE_WAITS);
	assert_false(l.placed);
	assert_string_equal(l.said, "PENDING, Resources");
	assert_true(engine_slurm.line("12|NODE_FAIL|postrider:" IDENTITY "|n[1-2]|None", &l));
	assert_int_equal(l.word, ENGINE_NODE);
	assert_true(l.placed);
	assert_string_equal(l.said, "NODE_FAIL");
	assert_true(engine_slurm.line("12|COMPLETING|postrider:" IDENTITY "|n1|None", &l));
	assert_int_equal(l.word, ENGINE_RUNS);
	assert_false(engine_slurm.line("12|PENDING|(null)||Resources", &l));
	assert_false(engine_slurm.line("12|PENDING|postrider:" IDENTITY "0||x", &l)); /* too long */
	assert_false(engine_slurm.line("12|PENDING|postrider:0123||x", &l));
	assert_false(engine_slurm.line("12|PENDING|postrider:" IDENTITY "|n1", &l)); /* torn */
	assert_false(engine_slurm.line("", &l));
}

TEST(test_lines_of_sacct)
{
	struct engine_past p;

	assert_true(engine_slurm.past_line("12|COMPLETED|0:0|1700000000|1700000009", &p));
	assert_int_equal(p.word, ENGINE_ENDED);
	assert_int_equal(p.exit_code, 0);
	assert_int_equal(p.exit_signal, 0);
	assert_int_equal(p.started_s, 1700000000);
	assert_int_equal(p.ended_s, 1700000009);
	assert_true(engine_slurm.past_line("12|FAILED|37:0|1700000000|1700000009", &p));
	assert_int_equal(p.word, ENGINE_FAILED);
	assert_int_equal(p.exit_code, 37);
	assert_true(engine_slurm.past_line("12|CANCELLED by 0|0:15|None|1700000009", &p));
	assert_int_equal(p.word, ENGINE_CANCELLED);
	assert_string_equal(p.said, "CANCELLED by 0");
	assert_int_equal(p.exit_code, -1);
	assert_int_equal(p.exit_signal, 15);
	assert_int_equal(p.ended_s, 0);
	assert_true(engine_slurm.past_line("12|OUT_OF_MEMORY|0:125|1700000000|1700000009", &p));
	assert_int_equal(p.word, ENGINE_MEMORY);
	assert_true(engine_slurm.past_line("12|TIMEOUT|0:0|1700000000|1700000009", &p));
	assert_int_equal(p.word, ENGINE_TIME_LIMIT);
	assert_false(engine_slurm.past_line("12|RUNNING|0:0|1700000000|Unknown", &p)); /* it has not ended */
	assert_false(engine_slurm.past_line("12|COMPLETED|999:0|1700000000|1700000009", &p));
	assert_false(engine_slurm.past_line("12|COMPLETED", &p));
	assert_false(engine_slurm.past_line("", &p));
}

TEST(test_what_sacct_is_asked)
{
	static const char *const expected[] = { "env",
						"SLURM_TIME_FORMAT=%s",
						"/opt/slurm/sacct",
						"--noheader",
						"--parsable2",
						"--allocations",
						"--name=postrider-7-01234567",
						"--jobs=12",
						"--format=JobIDRaw,State,ExitCode,Start,End" };
	const struct config_engine c = { .bin = "/opt/slurm" };
	struct engine_call call = { 0 };

	assert_int_equal(engine_slurm.past(&c, 7, "0123456789abcdef0123456789abcdef", "12", &call, NULL), 0);
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
		assert_string_equal(call.argv[i], expected[i]);
	assert_null(call.argv[sizeof expected / sizeof *expected]);
	argv_free(call.argv);
}

/* A node of two partitions counts once, one of another partition not at all. */
TEST(test_what_sinfo_says)
{
	struct cluster c = { 0 };
	static const char *const line[] = {
		"n1|near*|mixed|5/3/0/8|gpu:2(S:0-1)",
		"n1|far|mixed|5/3/0/8|gpu:2(S:0-1)",
		"n2|near*|draining|6/0/2/8|gpu:a100:4",
		"n3|far|idle|0/8/0/8|(null)",
		"n4|near*|idle*|0/8/0/8|(null)",
		"n5|near*|idle~|0/16/0/16|gpu:a100:4,mps:100,gpu:1",
		"n6|near*|down",
		"",
	};

	for (size_t i = 0; i < sizeof line / sizeof *line; i++)
		engine_slurm.look_line(CLUSTER_NODES, line[i], ",*,", &c);
	assert_int_equal(c.nodes, 4);
	assert_int_equal(c.nodes_away, 2);
	assert_int_equal(c.cpus, 24);
	assert_int_equal(c.cpus_leaving, 6);
	assert_int_equal(c.gpus, 7);
	c = (struct cluster){ 0 };
	for (size_t i = 0; i < sizeof line / sizeof *line; i++)
		engine_slurm.look_line(CLUSTER_NODES, line[i], ",far,x,", &c);
	assert_int_equal(c.nodes, 2);
	assert_int_equal(c.cpus, 16);
}

TEST(test_what_squeue_says_of_others)
{
	struct cluster *c = mem_calloc(1, sizeof *c + 8 * sizeof c->guest[0]);
	char own[200];

	assert_non_null(c);
	c->cap = 8;
	snprintf(c->home, sizeof c->home, "near");
	snprintf(own, sizeof own, "7|RUNNING|near|1794929978|N/A|1|%u|postrider:" IDENTITY,
		 (unsigned)geteuid());
	engine_slurm.look_line(CLUSTER_JOBS, own, ",*,", c);
	snprintf(own, sizeof own, "7|RUNNING|near|1794929978|N/A|1|%u|postrider:" IDENTITY,
		 (unsigned)geteuid() + 1); /* says that it is ours */
	engine_slurm.look_line(CLUSTER_JOBS, own, ",*,", c);
	engine_slurm.look_line(CLUSTER_JOBS, "2|RUNNING|near|NOT_SET|gres:gpu:2|3|60001|a|b|c", ",*,", c);
	engine_slurm.look_line(CLUSTER_JOBS, "4|PENDING|far,near|N/A|gres:gpu:1|1|60001|(null)", ",*,", c);
	engine_slurm.look_line(CLUSTER_JOBS, "4|RUNNING|far|1794929978|N/A|1|60001|(null)", ",*,", c);
	engine_slurm.look_line(CLUSTER_JOBS, "0|RUNNING|near|1794929978|N/A|1|60001|(null)", ",*,", c);
	engine_slurm.look_line(CLUSTER_JOBS, "x|RUNNING", ",*,", c);
	assert_int_equal(c->own_cpus, 7);
	assert_int_equal(c->others, 2);
	assert_int_equal(c->others_cpus, 9);
	assert_int_equal(c->others_waiting, 1);
	assert_int_equal(c->others_waiting_cpus, 4);
	assert_int_equal(c->gpus_taken, 6);
	assert_int_equal(c->n_guests, 2);
	assert_true(c->guest[0].cpus == 7 && c->guest[0].end_s == 1794929978);
	assert_true(c->guest[1].cpus == 2 && c->guest[1].end_s == 0);
	free(c);
}

TEST(test_command_fills_in_its_words)
{
	char *words[] = { "q", "-n", "{cpus}", "-p", "{partition}", "{command}", "-t", "{time_s}", NULL };
	const struct config_engine c = { .submit = { words, 8 } };
	static const char *const expected[] = { "q",          "-n", "3",    "/opt/postrider-supervisor",
						"--dir=/s/7", "--", "it's", "-t",
						"61" };
	struct engine_task t = task();
	struct engine_call call = { 0 };

	assert_int_equal(engine_command.submit(&c, &t, &call, NULL), 0);
	for (size_t i = 0; i < 9; i++)
		assert_string_equal(call.argv[i], expected[i]);
	assert_null(call.argv[9]);
	release(&call);
}

/* A variable of 4,096 bytes is within the limits of a type, and its word has the name as well. */
TEST(test_a_long_word_of_the_job_is_not_cut)
{
	char *submit[] = { "queue", "{command}", NULL };
	struct config_engine c = { .kind = ENGINE_COMMAND, .submit = { .word = submit, .n = 2 } };
	struct engine_task t = task();
	struct engine_call call = { 0 };
	char word[9000];

	memset(word, 'x', sizeof word - 1);
	word[sizeof word - 1] = '\0';
	t.command = (char *[]){ "supervisor", "--env", word, NULL };
	assert_int_equal(engine_command.submit(&c, &t, &call, NULL), 0);
	assert_true(has(call.argv, word));
	release(&call);
}

TEST(test_answers_and_lines_of_a_command)
{
	struct engine_line l;
	char out[200];

	assert_int_equal(engine_command.answer(0, "j-9\nmore", "", out, sizeof out), ENGINE_YES);
	assert_string_equal(out, "j-9");
	assert_int_equal(engine_command.answer(0, "\n", "", out, sizeof out), ENGINE_UNSURE);
	assert_int_equal(engine_command.answer(75, "", "busy", out, sizeof out), ENGINE_UNSURE);
	assert_int_equal(engine_command.answer(1, "", "no queue", out, sizeof out), ENGINE_NO);
	assert_string_equal(out, "exit code 1 of submit: no queue");
	assert_true(engine_command.line(IDENTITY " 5 memory killed by the kernel", &l));
	assert_int_equal(l.word, ENGINE_MEMORY);
	assert_string_equal(l.said, "killed by the kernel");
	assert_false(engine_command.line(IDENTITY " 5 asleep", &l));
	assert_false(engine_command.line("ID State", &l));
}

/* ---- the record ---- */

TEST(test_hand_over_record_comes_back)
{
	char record[] = "/tmp/postrider-XXXXXX", path[64];
	int fd = mkstemp(record);
	struct strbuf text = { 0 };
	struct handover h;

	assert_true(fd >= 0);
	close(fd);
	snprintf(path, sizeof path, "%s" RECORD_ENGINE, record);
	assert_int_equal(handover_read(record, IDENTITY, &h, NULL), -ERR_NOTFOUND);
	handover_put(&text, IDENTITY, "slurm", "");
	assert_int_equal(io_write_file(path, text.text, text.len, NULL), 0);
	assert_int_equal(handover_read(record, IDENTITY, &h, NULL), 0);
	assert_string_equal(h.engine, "slurm");
	assert_string_equal(h.id, "");
	strbuf_reset(&text);
	handover_put(&text, IDENTITY, "slurm", "12");
	assert_int_equal(io_write_file(path, text.text, text.len, NULL), 0);
	assert_int_equal(handover_read(record, IDENTITY, &h, NULL), 0);
	assert_string_equal(h.id, "12");
	assert_int_equal(handover_read(record, "another", &h, NULL), -ERR_FORMAT);
	for (size_t cut = 0; cut + 1 < text.len; cut++) { /* the last newline may be missing */
		assert_int_equal(io_write_file(path, text.text, cut, NULL), 0);
		assert_int_equal(handover_read(record, IDENTITY, &h, NULL), -ERR_FORMAT);
	}
	strbuf_release(&text);
	unlink(path);
	unlink(record);
}

/* ---- programs ---- */

static struct errand *carried_out(const char *script, const char *input, double timeout_s)
{
	static char *const environment[] = { "PATH=/usr/bin:/bin", NULL };
	struct errand *e = mem_calloc(1, sizeof *e);
	struct errands *s;
	struct pollfd p = { .events = POLLIN };

	assert_int_equal(errands_new(environment, &s, NULL), 0);
	assert_true(engine_word_add(&e->argv, "sh") && engine_word_add(&e->argv, "-c") &&
		    engine_word_add(&e->argv, "%s", script));
	strbuf_puts(&e->input, input);
	e->timeout_s = timeout_s;
	e->max_output = 1000;
	p.fd = orders_fd(errands_orders(s));
	orders_add(errands_orders(s), &e->order);
	assert_int_equal(poll(&p, 1, 10000), 1);
	e = (struct errand *)orders_returned(errands_orders(s));
	assert_non_null(e);
	errands_free(s);
	return e;
}

TEST(test_a_program_gets_its_input_and_its_words_come_back)
{
	struct errand *e = carried_out("tr a-z A-Z; echo why >&2; echo more >&2; exit 3", "hello", 5.0);

	assert_true(e->ran);
	assert_int_equal(e->err.code, 0);
	assert_int_equal(e->exit_code, 3);
	assert_string_equal(strbuf_text(&e->output), "HELLO");
	assert_string_equal(e->said, "why");
	errand_free(e);
}

TEST(test_a_program_that_hangs_is_killed_with_its_children)
{
	int64_t began_ns = clock_monotonic_ns();
	struct errand *e = carried_out("sleep 60 & echo $!; wait", "", 0.4);
	char path[64];

	assert_true(clock_monotonic_ns() - began_ns < INT64_C(8000000000));
	assert_true(e->ran);
	assert_int_equal(e->err.code, ERR_BUSY);
	assert_int_equal(e->exit_code, -1);
	snprintf(path, sizeof path, "/proc/%d/exe", atoi(strbuf_text(&e->output)));
	for (int i = 0; i < 50 && !access(path, F_OK); i++)
		usleep(20000);
	assert_int_not_equal(access(path, F_OK), 0);
	errand_free(e);
}

TEST(test_a_program_that_leaves_a_child_with_its_streams_is_not_waited_for)
{
	int64_t began_ns = clock_monotonic_ns();
	struct errand *e = carried_out("sleep 4 & echo 12", "", 30.0);

	assert_true(clock_monotonic_ns() - began_ns < INT64_C(3000000000));
	assert_int_equal(e->exit_code, 0);
	assert_string_equal(strbuf_text(&e->output), "12\n");
	errand_free(e);
}

TEST(test_the_word_of_a_child_that_it_leaves_is_heard)
{
	struct errand *e = carried_out("(sleep 0.2; echo 7; sleep 2) & exit 0", "", 30.0);

	assert_int_equal(e->exit_code, 0);
	assert_string_equal(strbuf_text(&e->output), "7\n");
	errand_free(e);
}

TEST(test_a_program_that_says_too_much_is_stopped)
{
	struct errand *e = carried_out("yes", "", 20.0);

	assert_int_equal(e->err.code, ERR_FORMAT);
	errand_free(e);
}

TEST(test_a_program_that_is_not_there_was_not_run)
{
	static char *const environment[] = { "PATH=/nowhere", NULL };
	struct errand *e = mem_calloc(1, sizeof *e);
	struct errands *s;
	struct pollfd p = { .events = POLLIN };

	assert_int_equal(errands_new(environment, &s, NULL), 0);
	assert_true(engine_word_add(&e->argv, "/nowhere/sbatch"));
	p.fd = orders_fd(errands_orders(s));
	orders_add(errands_orders(s), &e->order);
	assert_int_equal(poll(&p, 1, 10000), 1);
	e = (struct errand *)orders_returned(errands_orders(s));
	assert_false(e->ran);
	assert_int_equal(e->err.code, ERR_IO);
	assert_non_null(strstr(e->err.text, "/nowhere/sbatch"));
	errand_free(e);
	errands_free(s);
}
