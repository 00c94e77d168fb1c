/* The verbs that talk to the daemon, against one that answers from a script: what is asked, what is printed,
 * with which exit code. tests/cli/submit.sh and daemon_verbs.sh do the same with the real one. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scheduler/cli/cli.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/cli/fake_daemon.h"

#define STEPS(...) ((const struct fake_step[]){ SAY(FAKE_GREETING), __VA_ARGS__, END })
#define OK(id, rest) "{\"v\":1,\"id\":" #id ",\"ok\":true," rest "}\n"
#define NO(id, code, text)                                                                                   \
	"{\"v\":1,\"id\":" #id ",\"ok\":false,\"error\":{\"code\":\"" code "\",\"message\":\"" text "\"}}\n"
#define JOB(id, state, rest) "{\"job\":\"" id "\",\"state\":\"" state "\"" rest "}"

static char out[1 << 16], err[1 << 16];

static void read_back(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	text[fread(text, 1, size - 1, f)] = '\0';
	fclose(f);
}

static int redirect(int fd, const char *path, int flags)
{
	int before = dup(fd), to = open(path, flags, 0600);

	assert_true(before >= 0 && to >= 0);
	dup2(to, fd);
	close(to);
	return before;
}

static void restore(int fd, int before)
{
	dup2(before, fd);
	close(before);
}

/* Runs a verb with its words in `line`, separated by blanks; "@" stands for the fake's socket. */
static int run(int (*verb)(int, char **), const struct fake_step *step, const char *line)
{
	const char *out_path = support_path(support_temp_dir(), "out"),
		   *err_path = support_path(support_temp_dir(), "err");
	struct fake_daemon *d = step ? fake_start(step) : NULL;
	char words[1024], *argv[64] = { (char[]){ "verb" } }, path[128];
	int argc = 1, code, old_out, old_err;
	const char *complaint = "";

	snprintf(words, sizeof words, "%s", line);
	for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
		argv[argc++] = w;
	if (d) {
		snprintf(path, sizeof path, "--socket=%s", d->path);
		argv[argc++] = path;
	}
	fflush(stdout);
	fflush(stderr);
	old_out = redirect(STDOUT_FILENO, out_path, O_WRONLY | O_CREAT | O_TRUNC);
	old_err = redirect(STDERR_FILENO, err_path, O_WRONLY | O_CREAT | O_TRUNC);
	code = verb(argc, argv);
	fflush(stdout);
	fflush(stderr);
	restore(STDOUT_FILENO, old_out);
	restore(STDERR_FILENO, old_err);
	read_back(out_path, out, sizeof out);
	read_back(err_path, err, sizeof err);
	if (d)
		complaint = fake_stop(d);
	if (complaint[0])
		fail_msg("%s: %s (stderr: %s)", line, complaint, err);
	return code;
}

static void expect(int code, int want, const char *line)
{
	if (code != want)
		fail_msg("%s: exit code %d, not %d; stdout: %s stderr: %s", line, code, want, out, err);
}
#define RUN(want, verb, step, line) expect(run(verb, step, line), want, line)

static void has(const char *text, const char *want)
{
	if (!strstr(text, want))
		fail_msg("'%s' is not in:\n%s", want, text);
}

/* ---- usage ---- */

TEST(test_usage_errors_of_submit)
{
	static const char *const bad[] = {
		"",
		"digits --slo 5m --deadline 2026-11-16T10:00:00Z",
		"digits --deadline tomorrow",
		"digits --slo 0",
		"digits --set network",
		"digits --set =x",
		"digits --set network=",
		"digits --set a=1,a=2",
		"digits --set a=1 --set a=2",
		"digits --mode walk",
		"digits --batches 64,,128",
		"digits --batches -64",
		"digits --batches x",
		"digits --confidence 1",
		"digits --epochs 3..",
		"digits --epochs ..3",
		"digits --epochs 20..3",
		"digits --epochs 0..3",
		"digits --epochs 3..4.5",
		"digits --epochs 1.5",
		"digits --epochs 0",
		"digits --epochs 3,4",
		"digits --epochs many",
		"digits --epochs inf",
		"digits --epochs 1..inf",
		"digits --priority high",
		"digits --priority 1.5",
		"digits --priority 101",
		"digits --priority=-101",
		"digits --dry-run --wait",
		"digits more",
		"--file a --jsonl b",
		"--jsonl a --wait",
		"--jsonl a --key k",
		"digits --slow 5",
	};

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		RUN(2, verb_submit, NULL, bad[i]);
		assert_string_equal(out, "");
		has(err, "Try 'postrider submit --help'");
	}
}

TEST(test_usage_errors_of_the_others)
{
	RUN(2, verb_status, NULL, "");
	RUN(2, verb_status, NULL, "twelve");
	has(err, "'twelve' is not a job id");
	RUN(2, verb_status, NULL, "1 2");
	RUN(2, verb_status, NULL, "--timeout 0 1");
	RUN(2, verb_explain, NULL, "x");
	RUN(2, verb_cancel, NULL, "");
	RUN(2, verb_cancel, NULL, "1 x");
	RUN(2, verb_cancel, NULL, "1 --all");
	RUN(2, verb_types, NULL, "a b");
	RUN(2, verb_logs, NULL, "");
	RUN(2, verb_logs, NULL, "x");
	RUN(2, verb_drain, NULL, "--off --stop");
	RUN(2, verb_list, NULL, "--since never");
	RUN(2, verb_list, NULL, "--csv --json");
	RUN(2, verb_list, NULL, "--user nobody-of-that-name");
	RUN(2, verb_wait, NULL, "1 -2");
	RUN(2, verb_watch, NULL, "1 2");
	RUN(2, verb_watch, NULL, "x");
	RUN(2, verb_stats, NULL, "1");
	RUN(2, verb_model, NULL, "");
	RUN(2, verb_model, NULL, "lst");
	has(err, "did you mean 'list'?");
	RUN(2, verb_model, NULL, "list 1");
	RUN(2, verb_model, NULL, "retrain now");
	RUN(2, verb_model, NULL, "rollback");
	RUN(2, verb_model, NULL, "rollback 1 2");
	RUN(2, verb_model, NULL, "rollback x");
	has(err, "'x' is not a version");
	RUN(2, verb_model, NULL, "rollback 1000000000");
	RUN(2, verb_model, NULL, "show");
	RUN(2, verb_model, NULL, "diff a");
	RUN(2, verb_list, NULL, "x");
	RUN(2, verb_list, NULL, "--state runing");
	has(err, "did you mean 'running'?");
	RUN(2, verb_list, NULL, "--state done,");
	RUN(2, verb_list, NULL, "--limit 0");
	RUN(2, verb_list, NULL, "--limit 100 --all");
	has(err, "--limit and --all: give one of them");
	RUN(2, verb_list, NULL, "--mine --user root");
	has(err, "--mine and --user: give one of them");
	RUN(2, verb_list, NULL, "--json --jsonl");
}

TEST(test_without_a_daemon_all_say_so_with_5)
{
	static const struct {
		int (*verb)(int, char **);
		const char *words;
	} all[] = { { verb_submit, "digits" }, { verb_status, "1" },        { verb_list, "" },
		    { verb_cancel, "1" },      { verb_wait, "1" },          { verb_watch, "" },
		    { verb_explain, "1" },     { verb_stats, "" },          { verb_model, "list" },
		    { verb_model, "retrain" }, { verb_model, "rollback 1" } };

	setenv("POSTRIDER_SOCKET", support_path(support_temp_dir(), "none.sock"), 1);
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		RUN(5, all[i].verb, NULL, all[i].words);
		assert_string_equal(out, "");
		has(err, "none.sock");
		has(err, "start postriderd");
	}
	unsetenv("POSTRIDER_SOCKET");
}

/* ---- submit ---- */

#define TAKEN                                                                                                \
	"\"verdict\":\"promised\",\"job\":" JOB(                                                             \
		"12", "queued",                                                                              \
		",\"slo_s\":60,\"confidence\":0.9,\"batch\":128") ",\"decision\":{\"confidence\":0.9,\"slo_" \
								  "s\":60,\"chosen\":0,\"candidates\":[{"    \
								  "\"batch\":128,\"lr\":0.02,"               \
								  "\"wait_s\":2,\"wait_upper_s\":3,\"time_"  \
								  "s\":41,\"upper_s\":52,\"accuracy\":0.94," \
								  "\"headroom_s\":5,\"reasons\":[]}]}"
#define TURNED_DOWN                                                                                          \
	"\"verdict\":\"rejected\",\"job\":" JOB(                                                             \
		"13", "rejected",                                                                            \
		",\"slo_s\":20,\"confidence\":0.9") ",\"decision\":{\"confidence\":0.9,\"slo_s\":20,"        \
						    "\"chosen\":null,\"smallest_slo_s\":37.5,"               \
						    "\"candidates\":[]}"

TEST(test_submit_asks_and_shows_the_decision)
{
	RUN(0, verb_submit,
	    STEPS(HEAR("\"op\":\"submit\",\"id\":1,\"type\":\"digits\",\"slo_s\":60,\"confidence\":0.9,"
		       "\"cpus\":2,"
		       "\"max_memory_mb\":4000,\"best_effort\":true,\"mode\":\"run\",\"key\":\"k\",\"tag\":"
		       "\"t\","
		       "\"batches\":[64,128],\"params\":{\"network\":\"lenet5\",\"epochs\":\"4\"}}\n"),
		  SAY(OK(1, TAKEN)), STAY),
	    "digits --set network=lenet5 --set epochs=4 --slo 1m --confidence 90% --cpus 2 --max-memory 4000 "
	    "--best-effort "
	    "--mode run --key k --tag t --batches 64,128");
	has(out, "job 12 admitted: 60 s at 90 % is promised\n");
	has(out, "batch      128, learning rate 0.02\n");
	has(out, "start      in 2 s\n");
	has(out, "end        in 43 s, at most 55 s\n");
	has(out, "headroom   5 s\n");
	assert_string_equal(err, "");
	RUN(0, verb_submit, STEPS(HEAR("\"type\":\"digits\"}\n"), SAY(OK(1, TAKEN)), STAY), "digits -q");
	assert_string_equal(out, "12\n");
	RUN(0, verb_submit, STEPS(HEAR(NULL), SAY(OK(1, TAKEN)), STAY), "digits --json");
	has(out, "\"verdict\": \"promised\"");
	assert_null(strstr(out, "\"ok\""));
}

/* The most accurate one that lost by its price is named; what lost for another reason is not. */
TEST(test_submit_says_what_was_passed_over_for_others)
{
	RUN(0, verb_submit,
	    STEPS(HEAR(NULL),
		  SAY(OK(1,
			 "\"verdict\":\"promised\",\"job\":" JOB("12", "queued",
								 ",\"slo_s\":10,\"confidence\":0.9,\"batch\":"
								 "256") ","
									"\"decision\":{\"chosen\":0,"
									"\"passed_over\":{\"batch\":16,"
									"\"epochs\":4,\"accuracy\":0.92,"
									"\"why\":\"price\",\"cost\":0.5},"
									"\"with_more_time\":{\"batch\":8,"
									"\"epochs\":1,\"accuracy\":0.95,"
									"\"needs_s\":28.04},"
									"\"candidates\":["
									"{\"batch\":256,\"accuracy\":0.86,"
									"\"reasons\":[]}]}")),
		  STAY),
	    "digits");
	has(out, "passed     16 x 4 epochs, accuracy 0.9200: to leave room for other jobs, which would lose "
		 "0.5 of "
		 "accuracy\n");
	has(out, "more time  with 28.1 s: 8 x 1 epoch, accuracy 0.9500\n");
	RUN(0, verb_submit, STEPS(HEAR(NULL), SAY(OK(1, TAKEN)), STAY), "digits");
	assert_null(strstr(out, "passed"));
}

#define PAIR                                                                                                 \
	"\"verdict\":\"promised\",\"job\":" JOB("12", "queued",                                              \
						",\"slo_s\":60,\"confidence\":0.9,\"batch\":128,\"epochs\":" \
						"12") ",\"decision\":{\"chosen\":0,"                         \
						      "\"candidates\":[{"                                    \
						      "\"batch\":128,"                                       \
						      "\"epochs\":12}]}"

TEST(test_submit_leaves_epochs_open)
{
	static const char *const words[][2] = {
		{ "digits --epochs 3..20", "\"type\":\"digits\",\"epochs\":\"3..20\"}\n" },
		{ "digits --epochs 10", "\"epochs\":10}\n" },
		{ "digits --priority 7 --may-stop", "\"priority\":7,\"may_stop\":true}\n" },
		{ "digits --value 2.5", "\"value\":2.5" },
		{ "digits --priority=-7", "\"priority\":-7}\n" },
		{ "digits --priority -7", "\"priority\":-7}\n" },
	};

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		RUN(0, verb_submit, STEPS(HEAR(words[i][1]), SAY(OK(1, PAIR)), STAY), words[i][0]);
		has(out, "batch      128\n");
		has(out, "epochs     12\n");
	}
	RUN(7, verb_submit, STEPS(HEAR(NULL), SAY(NO(1, "not_permitted", "only admins")), STAY),
	    "digits --priority 7");
}

TEST(test_submit_says_that_a_job_is_learned_from)
{
	RUN(9, verb_submit,
	    STEPS(HEAR(NULL),
		  SAY(OK(1, "\"verdict\":\"best_effort\",\"job\":" JOB(
				    "4", "queued",
				    ",\"slo_s\":60,\"confidence\":0.9,\"reason\":\"network=new is not "
				    "known\"") ",\"decision\":null")),
		  STAY),
	    "digits --slo 60");
	assert_string_equal(out, "job 4 admitted as best effort, without a promise of 60 s at 90 %\n"
				 "  note       network=new is not known\n");
}

TEST(test_submit_of_a_rejected_job_leaves_with_3)
{
	RUN(3, verb_submit, STEPS(HEAR(NULL), SAY(OK(1, TURNED_DOWN)), STAY), "digits --slo 20");
	has(out, "job 13 rejected: no batch meets 20 s at 90 %\n");
	has(out, "could be promised: 37.5 s\n");
	has(out, "postrider explain 13");
	RUN(3, verb_submit, STEPS(HEAR("\"watch\":true"), SAY(OK(1, TURNED_DOWN)), STAY),
	    "digits --slo 20 --wait -q");
	assert_string_equal(out, "13\n");
}

#define UNSTABLE "{\"batch\":64,\"time_s\":null,\"feasible\":false,\"reasons\":[\"unstable\"]}"

/* No limit, and no word of one: nothing could be promised, and nothing would help. */
TEST(test_submit_says_why_no_batch_can_be_run)
{
	RUN(3, verb_submit,
	    STEPS(HEAR(NULL),
		  SAY(OK(1, "\"verdict\":\"rejected\",\"job\":" JOB(
				    "13", "rejected",
				    ",\"reason\":\"its queue grows\"") ",\"decision\":{\"chosen\":null,"
								       "\"slo_s\":null,\"candidates\":"
								       "[" UNSTABLE "]}")),
		  STAY),
	    "digits");
	assert_string_equal(out, "job 13 rejected: its queue grows\n"
				 "  'postrider explain 13' shows why no batch size was chosen\n");
	RUN(3, verb_submit,
	    STEPS(HEAR("\"dry_run\":true"),
		  SAY(OK(1,
			 "\"verdict\":\"rejected\",\"job\":null,\"decision\":{\"chosen\":null,\"slo_s\":null,"
			 "\"candidates\":[" UNSTABLE "]}")),
		  STAY),
	    "digits -n");
	has(out, "it would be rejected: no batch can be run\n");
	assert_null(strstr(out, "--best-effort"));
}

#define CANDIDATE                                                                                            \
	"{\"batch\":128,\"epochs\":null,\"lr\":null,\"wait_s\":0,\"wait_upper_s\":0,\"time_s\":18,"          \
	"\"upper_s\":25,\"accuracy\":0.8,\"chance\":0.629,\"feasible\":false,\"reasons\":[\"slo_exceeded\"]" \
	"}"

TEST(test_submit_tells_the_chance_of_a_rejected_job)
{
	const struct fake_step *step =
		STEPS(HEAR(NULL),
		      SAY(OK(1, "\"verdict\":\"rejected\",\"job\":" JOB(
					"13", "rejected",
					",\"slo_s\":20,"
					"\"confidence\":0.9") ","
							      "\"decision\":{\"chosen\":null,\"slo_s\":20,"
							      "\"confidence\":0.9,"
							      "\"smallest_slo_s\":25,\"offer\":{\"batch\":"
							      "128,\"epochs\":null,"
							      "\"chance\":0.629,\"accuracy\":0.8,\"time_s\":"
							      "18},\"candidates\":[" CANDIDATE "]}")),
		      STAY);

	RUN(3, verb_submit, step, "digits --slo 20");
	has(out,
	    "  without a promise: 62 % chance with batch 128, accuracy 0.8000; --chance 0.6 accepts it\n");
}

TEST(test_submit_by_chance)
{
	const struct fake_step *step =
		STEPS(HEAR("\"chance\":0.5"),
		      SAY(OK(1, "\"verdict\":\"chance\",\"job\":" JOB(
					"14", "queued",
					",\"slo_s\":20,"
					"\"confidence\":0.9") ","
							      "\"decision\":{\"chosen\":0,\"slo_s\":20,"
							      "\"confidence\":0.9,"
							      "\"smallest_slo_s\":25,\"offer\":null,"
							      "\"candidates\":[" CANDIDATE "]}")),
		      STAY);

	RUN(0, verb_submit, step, "digits --slo 20 --chance 50%");
	has(out, "job 14 admitted by chance: 20 s at 90 % cannot be promised\n");
	has(out, "  chance     62 % to be in time\n");
	RUN(2, verb_submit, STEPS(STAY), "digits --slo 20 --chance 2");
}

TEST(test_submit_maps_errors)
{
	RUN(8, verb_submit, STEPS(HEAR(NULL), SAY(NO(1, "queue_full", "1000 jobs are queued")), STAY),
	    "digits");
	has(err, "postrider: 1000 jobs are queued\n");
	RUN(4, verb_submit, STEPS(HEAR(NULL), SAY(NO(1, "unknown_type", "no digit")), STAY), "digit");
	RUN(1, verb_submit, STEPS(HEAR(NULL), SAY(OK(1, "\"verdict\":\"perhaps\"")), STAY), "digits");
	has(err, "not what the protocol promises");
	RUN(1, verb_submit, STEPS(HEAR(NULL), SAY(OK(1, "\"verdict\":\"promised\",\"job\":null")), STAY),
	    "digits");
	RUN(1, verb_submit,
	    STEPS(HEAR(NULL),
		  SAY(OK(1, "\"verdict\":\"promised\",\"job\":" JOB("1", "queued",
								    "") ",\"decision\":{\"chosen\":3}")),
		  STAY),
	    "digits");
	RUN(124, verb_submit, STEPS(HEAR(NULL), STAY), "digits --timeout 0.1");
}

TEST(test_submit_dry_run_keeps_nothing_and_shows_all)
{
	RUN(0, verb_submit,
	    STEPS(HEAR("\"dry_run\":true"),
		  SAY(OK(1, "\"verdict\":\"promised\",\"job\":null,\"decision\":{\"confidence\":0.9,\"slo_"
			    "s\":60,\"chosen\":0,"
			    "\"candidates\":[{\"batch\":128,\"time_s\":41,\"upper_s\":52,\"reasons\":[]}]}")),
		  STAY),
	    "digits --slo 60 -n");
	has(out, "it would be admitted: 60 s at 90 % is promised\n");
	has(out, "chosen");
}

TEST(test_submit_wait_returns_the_jobs_exit_code)
{
	/* Its events may overtake the reply, and those of others come along. */
	RUN(7, verb_submit,
	    STEPS(HEAR("\"watch\":true"),
		  SAY("{\"v\":1,\"event\":\"started\",\"job\":" JOB("12", "running", "") "}\n"),
		  SAY(OK(1, TAKEN)),
		  SAY("{\"v\":1,\"event\":\"finished\",\"job\":" JOB("11", "done", "") "}\n"),
		  SAY("{\"v\":1,\"event\":\"draining\"}\n"),
		  SAY("{\"v\":1,\"event\":\"finished\",\"job\":" JOB("12", "failed",
								     ",\"exit_code\":7") "}\n"),
		  STAY),
	    "digits --wait");
	has(out, "job 12 failed, exit code 7\n");
	RUN(5, verb_submit, STEPS(HEAR(NULL), SAY(OK(1, TAKEN))), "digits --wait -q");
	assert_string_equal(out, "12\n"); /* the id is out, whatever happens later */
	has(err, "went away");
	RUN(124, verb_submit, STEPS(HEAR(NULL), SAY(OK(1, TAKEN)), STAY), "digits --wait --timeout 0.2");
	has(err, "job 12 has not ended");
	RUN(0, verb_submit,
	    STEPS(HEAR(NULL), SAY(OK(1, TAKEN)),
		  SAY("{\"v\":1,\"event\":\"finished\",\"job\":" JOB("12", "done", ",\"exit_code\":0") "}\n"),
		  STAY),
	    "digits --wait --json");
	has(out, "\"state\": \"done\"");
}

TEST(test_submit_wait_for_a_job_that_is_there_already_watches_it)
{
	RUN(0, verb_submit,
	    STEPS(HEAR("\"key\":\"k\""), SAY(OK(1, "\"duplicate\":true," TAKEN)),
		  HEAR("\"op\":\"watch\",\"id\":2,\"job\":\"12\""),
		  SAY(OK(2, "\"watching\":true,\"jobs\":[" JOB("12", "done", ",\"exit_code\":0") "]")), STAY),
	    "digits --wait --key k");
	has(out, "job 12 exists already under this key");
	has(out, "job 12 done, exit code 0, no accuracy found in its output\n");
}

static const char *file_with(const char *name, const char *text)
{
	const char *path = support_path(support_temp_dir(), name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return path;
}

TEST(test_submit_takes_a_file_and_options_win_over_it)
{
	char line[256];

	snprintf(
		line, sizeof line, "--file %s --slo 30 --set epochs=9",
		file_with("job.json",
			  "{\"type\":\"digits\",\"deadline\":\"2026-11-16T10:00:00Z\",\"cpus\":2,\"params\":{"
			  "\"network\":\"lenet5\",\"epochs\":4}}"));
	RUN(0, verb_submit,
	    STEPS(HEAR("\"slo_s\":30,\"params\":{\"network\":\"lenet5\",\"epochs\":\"9\"},\"type\":"
		       "\"digits\",\"cpus\":2}\n"),
		  SAY(OK(1, TAKEN)), STAY),
	    line);
	snprintf(line, sizeof line, "--file %s", file_with("job.json", "{\"type\":\"digits\",\"slo\":4}"));
	RUN(6, verb_submit, NULL, line);
	has(err, "slo_s");
	snprintf(line, sizeof line, "--file %s", file_with("job.json", "{\"type\":"));
	RUN(6, verb_submit, NULL, line);
	snprintf(line, sizeof line, "--file %s", file_with("job.json", "[]"));
	RUN(6, verb_submit, NULL, line);
	RUN(4, verb_submit, NULL, "--file nowhere.json");
}

#define MANY                                                                                                 \
	"{\"type\":\"a\"}\n\nnot "                                                                           \
	"json\n{\"type\":\"b\",\"slo_s\":20}\r\n{\"typ\":\"c\"}\n{\"type\":\"nope\"}\n{\"type\":\"d\"}"

static const struct fake_step many_steps[] = {
	SAY(FAKE_GREETING),
	HEAR("\"id\":1,\"type\":\"a\"}\n"),
	HEAR("\"id\":2,\"type\":\"b\",\"slo_s\":20}\n"),
	HEAR("\"id\":3,\"type\":\"nope\"}\n"),
	HEAR("\"id\":4,\"type\":\"d\"}\n"),
	SAY(OK(1, TAKEN)),
	SAY(OK(2, TURNED_DOWN)),
	SAY(NO(3, "unknown_type", "there is no job type 'nope'")),
	SAY(OK(4, "\"duplicate\":true,\"job\":" JOB("9", "done",
						    ",\"verdict\":\"best_effort\"") ",\"decision\":null")),
	STAY,
	END,
};

TEST(test_submit_of_many_goes_on_after_a_bad_line)
{
	char line[256];
	const char *path = file_with("many.jsonl", MANY);

	snprintf(line, sizeof line, "--jsonl %s", path);
	RUN(3, verb_submit, many_steps, line);
	has(out, "line 1: promised: job 12 queued");
	has(out, "line 4: rejected: job 13 rejected; could be promised: 37.5 s\n");
	has(out, "line 7: best effort before: job 9 done, no accuracy found in its output\n");
	has(err, "many.jsonl:3: ");
	has(err, "many.jsonl:5: ");
	has(err, "many.jsonl:6: there is no job type 'nope'");
	has(err, "6 jobs: 1 promised, 1 best effort, 1 rejected, 3 failed; 1 existed before\n");
	snprintf(line, sizeof line, "--jsonl %s -q", path);
	RUN(3, verb_submit, many_steps, line);
	assert_string_equal(out, "12\n13\n9\n");
	snprintf(line, sizeof line, "--jsonl %s --json", path);
	RUN(3, verb_submit, many_steps, line);
	has(out, "{\"line\":1,\"verdict\":\"promised\",");
	has(out, "{\"line\":3,\"error\":{\"code\":\"bad_line\"");
	has(out, "{\"line\":6,\"error\":{\"code\":\"unknown_type\"");
}

TEST(test_submit_of_many_leaves_with_the_first_error)
{
	char line[256];

	snprintf(line, sizeof line, "--jsonl %s -q",
		 file_with("many.jsonl", "{\"type\":\"a\"}\n{\"type\":\"nope\"}\n{\n"));
	RUN(6, verb_submit,
	    STEPS(HEAR(NULL), HEAR(NULL), SAY(OK(1, TAKEN)), SAY(NO(2, "unknown_type", "no")), STAY), line);
	snprintf(line, sizeof line, "--jsonl %s -q", file_with("many.jsonl", "{\"type\":\"nope\"}\n"));
	RUN(4, verb_submit, STEPS(HEAR(NULL), SAY(NO(1, "unknown_type", "no")), STAY), line);
	snprintf(line, sizeof line, "--jsonl %s", file_with("many.jsonl", ""));
	RUN(0, verb_submit, STEPS(STAY), line);
	has(err, "0 jobs");
	RUN(4, verb_submit, STEPS(STAY), "--jsonl nowhere.jsonl");
	snprintf(line, sizeof line, "--jsonl %s",
		 file_with("many.jsonl", "{\"type\":\"a\"}\n{\"type\":\"b\"}\n"));
	RUN(1, verb_submit, STEPS(HEAR(NULL), HEAR(NULL), SAY(OK(1, TAKEN))), line);
	has(err, "may have accepted them");
}

TEST(test_submit_of_many_skips_a_line_that_is_too_long)
{
	char *text = malloc(300000), line[256];
	size_t n = 0;

	n += (size_t)sprintf(text, "{\"type\":\"");
	memset(text + n, 'x', 200000);
	sprintf(text + n + 200000, "\"}\n{\"type\":\"b\"}\n");
	snprintf(line, sizeof line, "--jsonl %s -q", file_with("long.jsonl", text));
	RUN(2, verb_submit, STEPS(HEAR("\"type\":\"b\""), SAY(OK(1, TAKEN)), STAY), line);
	assert_string_equal(out, "12\n");
	has(err, "long.jsonl:1: longer than the 65536 bytes");
	free(text);
}

/* More lines than may be under way: every one is answered, in order. */
TEST(test_submit_of_many_keeps_the_order_over_more_lines_than_fly)
{
	enum { N = 150 };
	static struct fake_step step[2 * N + 3];
	static char text[N * 32], reply[N][200];
	char line[256], want[N * 8] = "";
	size_t n = 0;

	step[0] = (struct fake_step)SAY(FAKE_GREETING);
	for (size_t i = 0; i < N; i++) {
		n += (size_t)sprintf(text + n, "{\"type\":\"t%zu\"}\n", i);
		sprintf(reply[i],
			"{\"v\":1,\"id\":%zu,\"ok\":true,\"verdict\":\"best_effort\",\"job\":{\"job\":\"%"
			"zu\",\"state\":"
			"\"queued\"},\"decision\":null}\n",
			i + 1, 1000 + i);
		step[1 + 2 * i] = (struct fake_step)HEAR("submit");
		step[2 + 2 * i] = (struct fake_step)SAY(reply[i]);
		sprintf(want + strlen(want), "%zu\n", 1000 + i);
	}
	step[2 * N + 1] = (struct fake_step)STAY;
	step[2 * N + 2] = (struct fake_step)END;
	snprintf(line, sizeof line, "--jsonl %s -q", file_with("order.jsonl", text));
	RUN(0, verb_submit, step, line);
	assert_string_equal(out, want);
}

/* ---- the others ---- */

TEST(test_status)
{
	RUN(0, verb_status,
	    STEPS(HEAR("\"job\":\"12\""), SAY(OK(1, "\"job\":" JOB("12", "running", ""))), STAY), "12");
	has(out, "job 12: running\n");
	RUN(0, verb_status, STEPS(HEAR(NULL), SAY(OK(1, "\"job\":" JOB("12", "running", ""))), STAY),
	    "12 -q");
	assert_string_equal(out, "running\n");
	RUN(0, verb_status,
	    STEPS(HEAR(NULL), SAY(OK(1, "\"job\":" JOB("12", "running", ",\"lr\":0.5"))), STAY), "12 --json");
	assert_string_equal(out, "{\n  \"job\": \"12\",\n  \"state\": \"running\",\n  \"lr\": 0.5\n}\n");
	RUN(4, verb_status, STEPS(HEAR(NULL), SAY(NO(1, "unknown_job", "there is no job 12")), STAY), "12");
	RUN(1, verb_status, STEPS(HEAR(NULL), SAY(OK(1, "\"job\":[]")), STAY), "12");
}

TEST(test_list_reads_page_after_page)
{
	RUN(0, verb_list,
	    STEPS(HEAR("\"state\":[\"queued\",\"done\",\"lost\"],\"type\":\"digits\",\"mine\":true,\"limit\":"
		       "3}\n"),
		  SAY(OK(1, "\"jobs\":[" JOB("9", "queued", "") "," JOB("8", "done", "") "],\"more\":true")),
		  HEAR("\"limit\":1,\"before\":\"8\"}\n"),
		  SAY(OK(2, "\"jobs\":[" JOB("7", "lost", "") "],\"more\":true")), STAY),
	    "--state queued,done --state lost --type digits --mine --limit 3");
	has(out, "job  state");
	has(out, "  7  lost");
	has(err, "there are more");
	RUN(0, verb_list,
	    STEPS(HEAR("\"limit\":50}\n"), SAY(OK(1, "\"jobs\":[" JOB("9", "queued", "") "],\"more\":true")),
		  HEAR("\"before\":\"9\""), SAY(OK(2, "\"jobs\":[],\"more\":true")), STAY),
	    "--all -q"); /* an empty page ends it, whatever it says */
	assert_string_equal(out, "9\n");
	RUN(0, verb_list,
	    STEPS(HEAR(NULL), SAY(OK(1, "\"jobs\":[" JOB("9", "queued", "") "],\"more\":false")), STAY),
	    "--jsonl");
	assert_string_equal(out, "{\"job\":\"9\",\"state\":\"queued\"}\n");
	RUN(0, verb_list, STEPS(HEAR(NULL), SAY(OK(1, "\"jobs\":[],\"more\":false")), STAY), "--json");
	has(out, "\"more\": false");
	RUN(0, verb_list, STEPS(HEAR(NULL), SAY(OK(1, "\"jobs\":[]")), STAY), "");
	has(err, "no jobs");
	RUN(1, verb_list, STEPS(HEAR(NULL), SAY(OK(1, "\"jobs\":[7]")), STAY), "");
	assert_string_equal(out, "");
	RUN(1, verb_list, STEPS(HEAR(NULL), SAY(OK(1, "\"jobs\":{}")), STAY), "");
}

TEST(test_cancel_tries_each)
{
	const struct fake_step *step =
		STEPS(HEAR("\"job\":\"1\""), SAY(OK(1, "\"job\":" JOB("1", "cancelled", ""))), HEAR(NULL),
		      SAY(NO(2, "not_permitted", "job 2 belongs to uid 5")), HEAR(NULL),
		      SAY(OK(3, "\"job\":" JOB("3", "running", ""))), STAY);

	RUN(7, verb_cancel, step, "1 2 3");
	has(out, "job 1 cancelled\njob 3 was asked to stop");
	has(err, "belongs to uid 5");
	RUN(7, verb_cancel,
	    STEPS(HEAR(NULL), SAY(NO(1, "not_permitted", "no")), HEAR(NULL),
		  SAY(NO(2, "wrong_state", "has ended")), STAY),
	    "1 2 --json");
	has(out, "\"code\": \"not_permitted\"");
	RUN(1, verb_cancel, STEPS(HEAR(NULL)), "1 2"); /* hung up: the second has no chance */
}

TEST(test_wait_returns_the_first_exit_code_that_is_not_0)
{
	RUN(7, verb_wait,
	    STEPS(HEAR("\"op\":\"watch\",\"id\":1,\"job\":\"1\""),
		  SAY(OK(1, "\"watching\":true,\"jobs\":[" JOB("1", "running", "") "]")),
		  SAY("{\"v\":1,\"event\":\"progress\",\"job\":" JOB("1", "running", "") "}\n"),
		  SAY("{\"v\":1,\"event\":\"finished\",\"job\":" JOB("1", "done", ",\"exit_code\":0") "}\n"),
		  HEAR("\"op\":\"unwatch\""), SAY("{\"v\":1,\"id\":2,\"ok\":true}\n"), HEAR("\"job\":\"2\""),
		  SAY(OK(3, "\"jobs\":[" JOB("2", "failed", ",\"exit_code\":7") "]")),
		  HEAR("\"op\":\"unwatch\""), SAY("{\"v\":1,\"id\":4,\"ok\":true}\n"), HEAR("\"job\":\"3\""),
		  SAY(OK(5, "\"jobs\":[" JOB("3", "failed", ",\"exit_code\":9") "]")),
		  HEAR("\"op\":\"unwatch\""), SAY("{\"v\":1,\"id\":6,\"ok\":true}\n"), STAY),
	    "1 2 3");
	assert_string_equal(
		out, "job 1 done, exit code 0, no accuracy found in its output\njob 2 failed, exit code 7\n"
		     "job 3 failed, exit code 9\n");
	RUN(4, verb_wait, STEPS(HEAR(NULL), SAY(NO(1, "unknown_job", "there is no job 1")), STAY), "1");
	RUN(5, verb_wait, STEPS(HEAR(NULL), SAY(OK(1, "\"jobs\":[" JOB("1", "running", "") "]"))), "1");
	has(err, "went away");
	RUN(124, verb_wait, STEPS(HEAR(NULL), SAY(OK(1, "\"jobs\":[" JOB("1", "queued", "") "]")), STAY),
	    "1 --timeout 0.1");
	has(err, "job 1 is still queued");
	RUN(1, verb_wait, STEPS(HEAR(NULL), SAY(OK(1, "\"jobs\":[" JOB("2", "queued", "") "]")), STAY), "1");
}

TEST(test_watch_prints_a_line_an_event)
{
	const struct fake_step *step =
		STEPS(HEAR("\"op\":\"watch\",\"id\":1,\"job\":\"1\"}\n"),
		      SAY(OK(1, "\"jobs\":[" JOB("1", "queued", "") "]")),
		      SAY("{\"v\":1,\"event\":\"reloaded\",\"at\":\"2026-11-16T10:00:00Z\"}\n"),
		      SAY("{\"v\":1,\"event\":\"started\",\"at\":\"2026-11-16T10:00:01Z\",\"job\":" JOB(
			      "1", "running", "") "}\n"),
		      SAY("{\"v\":1,\"event\":\"finished\",\"at\":\"t\\u001b\",\"job\":" JOB("1", "done",
											     "") "}\n"),
		      STAY);

	RUN(0, verb_watch, step, "1");
	has(out, "now: job 1 queued");
	has(out, "2026-11-16T10:00:00Z reloaded\n");
	has(out, "2026-11-16T10:00:01Z started: job 1 running");
	has(out, "t\\x1b finished: job 1 done, no accuracy found in its output\n");
	RUN(124, verb_watch,
	    STEPS(HEAR(NULL), SAY(OK(1, "\"jobs\":[]")),
		  SAY("{\"v\":1,\"event\":\"drift\",\"at\":\"t\",\"message\":\"times are 20 %\\u001b "
		      "longer\"}\n"),
		  STAY),
	    "--timeout 0.3");
	has(out, "t drift: times are 20 %\\x1b longer\n");
	RUN(0, verb_watch, step, "1 --jsonl");
	has(out, "{\"event\":\"current\",\"job\":{\"job\":\"1\",\"state\":\"queued\"}}\n");
	has(out, "{\"event\":\"started\",\"at\":\"2026-11-16T10:00:01Z\",\"job\":{\"job\":\"1\",\"state\":"
		 "\"running\"}}\n");
	RUN(5, verb_watch, STEPS(HEAR(NULL), SAY(OK(1, "\"jobs\":[]"))), "");
	RUN(124, verb_watch, STEPS(HEAR(NULL), SAY(OK(1, "\"jobs\":[]")), STAY), "--timeout 0.1");
	RUN(1, verb_watch, STEPS(HEAR(NULL), SAY(OK(1, "\"watching\":true")), STAY), "");
	RUN(1, verb_watch, STEPS(HEAR(NULL), SAY(OK(1, "\"jobs\":[]")), SAY("garbage\n"), STAY), "");
}

TEST(test_explain_shows_decisions_and_estimates)
{
	const struct fake_step *step = STEPS(
		HEAR(NULL),
		SAY(OK(1, "\"job\":" JOB(
				  "5", "rejected",
				  ",\"verdict\":\"rejected\"") ",\"decisions\":[{\"when\":\"arrival\",\"at\":"
							       "\"2026-11-16T10:00:00Z\",\"policy\":"
							       "\"postrider\",\"slo_s\":60,\"confidence\":0."
							       "9,\"chosen\":null,"
							       "\"smallest_slo_s\":88,\"took_us\":12.4,"
							       "\"price\":0.000325,"
							       "\"candidates\":[{\"batch\":64,\"cost\":0."
							       "0217,\"wait_upper_"
							       "s\":0,\"upper_s\":88,"
							       "\"reasons\":[\"slo_exceeded\"]}]}],"
							       "\"estimates\":[{\"at\":\"2026-11-16T10:00:"
							       "00Z\",\"start_s\":0,"
							       "\"end_s\":20,\"end_low_s\":17,\"end_high_s\":"
							       "24,\"why\":\"submitted\"},{\"at\":\"2026-11-"
							       "16T10:00:10Z\","
							       "\"end_s\":13,\"why\":\"started\"}]")),
		STAY);

	RUN(0, verb_explain, step, "5");
	has(out, "decided at arrival, ");
	has(out, "bound 88 s is over the limit of 60 s");
	has(out, "capacity costs 0.000325 of accuracy a process-second");
	has(out, "costs others");
	has(out, "0.0217");
	has(out, "could have been promised: 88 s\n");
	has(out, "how the estimate moved\n");
	has(out, "+3 s");
	RUN(0, verb_explain, step, "5 --json");
	has(out, "\"decisions\": [");
	RUN(1, verb_explain,
	    STEPS(HEAR(NULL), SAY(OK(1, "\"job\":" JOB("5", "done", "") ",\"decisions\":[{}]")), STAY), "5");
	assert_string_equal(out, "");
}

TEST(test_stats_show_tenants_and_learning)
{
	const struct fake_step *step = STEPS(
		HEAR(NULL),
		SAY(OK(1,
		       "\"slo\":{},\"queue\":{\"slots\":4},\"outside\":{\"processes\":2.04},\"tenants\":["
		       "{\"tenant\":\"research\",\"weight\":2,\"queued\":3,\"running\":1,\"cpus\":2,"
		       "\"usage_cpu_s\":640.2,\"standing\":5000.4}],\"learning\":{\"adapt\":true,\"kept\":["
		       "{\"confidence\":0.9,\"n\":40,\"kept\":36,\"share\":0.9,\"recent_share\":0.875}],"
		       "\"drift\":{\"alarm\":true,\"slower\":true,\"jobs\":40,\"since\":12,\"shift_percent\":"
		       "21.4,"
		       "\"statistic\":9,\"threshold\":8},\"types\":[{\"type\":\"digits\",\"drift\":{"
		       "\"alarm\":"
		       "false}},{\"type\":\"fast\",\"drift\":{\"alarm\":true,\"slower\":false,\"jobs\":9,"
		       "\"since\":"
		       "4,\"shift_percent\":-30}}],\"since_training\":12,\"retrain_after\":200,\"last\":"
		       "\"version 3 "
		       "is in use\",\"last_took_s\":6.5}")),
		STAY);

	RUN(0, verb_stats, step, "");
	has(out, "other load   2.04 processes of other programs");
	has(out,
	    "learning     bounds follow the latest jobs; another model is trained after 188 more jobs\n");
	has(out, "             last training: version 3 is in use (6.5 s)\n");
	has(out, "drift        all jobs together take 21.4 % longer than predicted, for 12 of 40 jobs\n");
	has(out, "drift        jobs of type fast take 30.0 % less than predicted, for 4 of 9 jobs\n");
	assert_null(strstr(out, "type digits"));
	has(out, "    90.0 %    40            36  90.0 %  87.5 %\n");
	has(out, "standing (cpu s / weight)");
	has(out, "research       2       3        1            2          640                       5000\n");
	/* What has the wrong type is nothing. */
	RUN(0, verb_stats,
	    STEPS(HEAR(NULL),
		  SAY(OK(1, "\"slo\":{},\"tenants\":{},\"outside\":3,\"learning\":{\"kept\":3,\"types\":[3],"
			    "\"drift\":[]}")),
		  STAY),
	    "");
	RUN(0, verb_stats, STEPS(HEAR(NULL), SAY(OK(1, "\"slo\":{},\"learning\":7,\"tenants\":[7]")), STAY),
	    "");
	assert_null(strstr(out, "learning"));
}

TEST(test_stats)
{
	const struct fake_step *step =
		STEPS(HEAR("\"op\":\"stats\""),
		      SAY(OK(1, "\"jobs\":{\"queued\":3,\"running\":0,\"done\":40},\"submissions\":{"
				"\"promised\":40,\"best_effort\":2,\"chance\":5},"
				"\"by_chance\":{\"ended\":5,\"met\":3,\"missed\":2},"
				"\"slo\":{\"promised\":40,\"met\":38,\"missed\":2,\"attainment\":0.95},"
				"\"coverage\":[{\"confidence\":0.9,"
				"\"n\":40,\"inside\":37,\"share\":0.925}],\"types\":[{\"type\":\"digits\","
				"\"n\":40,\"mape\":0.05,\"bias\":-0.01,"
				"\"attainment\":0.95,\"mean_accuracy\":0.93}],\"queue\":{\"length\":3,"
				"\"running\":2,\"slots\":4,"
				"\"slots_used\":4,\"utilisation\":0.8},\"wait\":{\"mean_s\":1.5,\"p95_s\":4},"
				"\"decision\":{\"n\":42,"
				"\"mean_us\":12,\"p99_us\":40},\"store\":{\"failed\":true,\"pending\":3,"
				"\"commits\":9,\"mean_commit_ms\":2,"
				"\"max_commit_ms\":11},\"loop\":{\"max_block_ms\":3},\"connections\":2,"
				"\"uptime_s\":3600,\"rss_mb\":20,"
				"\"policy\":\"postrider\",\"model\":\"9f2c\"")),
		      STAY);

	RUN(0, verb_stats, step, "");
	has(out, "3 queued, 40 done\n");
	has(out, "40 promised, 2 best effort, 5 by chance\n");
	has(out, "by chance    3 of 5 met, without a promise\n");
	has(out, "promises     38 of 40 kept: 95.0 %\n");
	assert_true(strstr(out, "promises ") == out);
	has(out, "4 of 4 cpus in use, 2 running; used so far: 80.0 %\n");
	has(out, "waiting      3");
	has(out, "FAILED: no job is accepted until it is repaired");
	has(out, "90.0 %    40            37  92.5 %\n");
	has(out, "digits    40         5.0 %  -1.0 %");
	RUN(0, verb_stats, step, "--json");
	has(out, "\"attainment\": 0.95");
	RUN(0, verb_stats, STEPS(HEAR(NULL), SAY(OK(1, "\"slo\":{}")), STAY), "");
	has(out, "no promised job has ended yet\n");
	RUN(1, verb_stats, STEPS(HEAR(NULL), SAY("{\"v\":1,\"id\":1,\"ok\":true}\n"), STAY), "");
}

#define VERSION(n) "{\"version\":" #n ",\"created\":\"2026-11-16T10:00:00Z\""
#define TAKEN_VERSION                                                                                        \
	VERSION(1)                                                                                           \
	",\"reason\":\"200 jobs\",\"accepted\":true,\"kept\":true,\"rows\":848,\"observations\":200,"        \
	"\"tested\":100,\"old_error\":0.112,\"new_error\":0.051,\"p\":0.0031,\"message\":\"better\"}"
#define REFUSED_VERSION                                                                                      \
	VERSION(2)                                                                                           \
	",\"reason\":\"drift\",\"accepted\":false,\"rows\":1048,\"p\":0.4,\"message\":\"not "                \
	"\\u001bbetter\"}"
#define ROLLBACK_VERSION                                                                                     \
	VERSION(3) ",\"reason\":\"asked for\",\"rolled_back_to\":1,\"accepted\":false,\"rows\":0}"

TEST(test_model_list_shows_versions_and_the_one_in_use)
{
	const struct fake_step *step =
		STEPS(HEAR("\"op\":\"models\",\"id\":1}\n"),
		      SAY(OK(1, "\"current\":1,\"training\":true,\"models\":[" TAKEN_VERSION
				"," REFUSED_VERSION "," ROLLBACK_VERSION "]")),
		      STAY);

	RUN(0, verb_model, step, "list");
	has(out, "*        1 ");
	has(out, "  200 jobs ");
	has(out, "11.2 %");
	has(out, "5.1 %");
	has(out, "0.0031");
	has(out, "not taken");
	has(out, "not \\x1bbetter");
	has(out, "went back");
	has(out, "  taken  ");
	has(out, "version 1 is in use\nanother one is being trained\n");
	RUN(0, verb_model, step, "list --json");
	has(out, "\"current\": 1");
	RUN(0, verb_model,
	    STEPS(HEAR(NULL), SAY(OK(1, "\"current\":0,\"training\":false,\"models\":[]")), STAY), "list");
	assert_string_equal(out, "the daemon has trained no model yet\n"
				 "the configuration's model (version 0) is in use\n");
	RUN(1, verb_model, STEPS(HEAR(NULL), SAY(OK(1, "\"current\":1")), STAY), "list");
	has(err, "it has no \"models\"");
	RUN(2, verb_model, STEPS(HEAR(NULL), SAY(NO(1, "unknown_op", "no op 'models'")), STAY), "list");
}

TEST(test_model_retrain_and_rollback_ask_the_daemon)
{
	RUN(0, verb_model,
	    STEPS(HEAR("\"op\":\"retrain\",\"id\":1}\n"), SAY(OK(1, "\"training\":true")), STAY), "retrain");
	has(out, "training has begun");
	RUN(0, verb_model,
	    STEPS(HEAR("\"op\":\"rollback\",\"id\":1,\"version\":3}\n"),
		  SAY(OK(1, "\"reloaded\":true,\"version\":3")), STAY),
	    "rollback 3");
	assert_string_equal(out, "version 3 is in use again\n");
	RUN(0, verb_model,
	    STEPS(HEAR("\"version\":0}\n"), SAY(OK(1, "\"reloaded\":true,\"version\":0")), STAY),
	    "rollback 0");
	assert_string_equal(out, "the configuration's model is in use again\n");
	RUN(0, verb_model, STEPS(HEAR(NULL), SAY(OK(1, "\"reloaded\":true,\"version\":0")), STAY),
	    "rollback 0 --json");
	has(out, "\"version\": 0");
	RUN(0, verb_model, STEPS(HEAR(NULL), SAY(OK(1, "\"reloaded\":true,\"version\":0")), STAY),
	    "rollback 0 -q");
	assert_string_equal(out, "");
	RUN(7, verb_model, STEPS(HEAR(NULL), SAY(NO(1, "not_permitted", "only admins may do that")), STAY),
	    "rollback 3");
	has(err, "only admins may do that");
	RUN(1, verb_model, STEPS(HEAR(NULL), SAY(NO(1, "wrong_state", "one is under way")), STAY), "retrain");
}
