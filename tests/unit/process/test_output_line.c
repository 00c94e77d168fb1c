/* Accuracies and epochs in the lines that training scripts print: their styles, their units, and what only
 * looks like one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "scheduler/process/output_line.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

/* The lines of `text`, one after the other. */
static void feed(struct output_reader *r, const char *text)
{
	struct output_point p;

	while (*text) {
		size_t n = strcspn(text, "\n");

		output_reader_line(r, text, n, &p);
		text += n + (text[n] == '\n');
	}
}

static void expect(const struct output_spec *spec, const char *text, double accuracy, double epoch)
{
	struct output_reader r;

	assert_int_equal(output_reader_init(&r, spec, NULL), 0);
	feed(&r, text);
	if (isnan(accuracy) != isnan(r.accuracy) || fabs(r.accuracy - accuracy) > 1e-12 ||
	    isnan(epoch) != isnan(r.epoch) || fabs(r.epoch - epoch) > 1e-12) {
		print_error("'%s': accuracy %g, epoch %g\n", text, r.accuracy, r.epoch);
		fail();
	}
	output_reader_release(&r);
}

/* Seconds of fetching, computing and waiting; NaN: not told. */
static void expect_phases(const char *text, double fetch_s, double compute_s, double sync_s)
{
	const double want[] = { fetch_s, compute_s, sync_s };
	struct output_reader r;

	assert_int_equal(output_reader_init(&r, NULL, NULL), 0);
	feed(&r, text);
	for (size_t k = 0; k < 3; k++) {
		double got = r.phases.told & 1u << k ? r.phases.s[k] : NAN;

		if (isnan(want[k]) != isnan(got) || fabs(got - want[k]) > 1e-12) {
			print_error("'%s': %s %g\n", text, phase_name[k], got);
			fail();
		}
	}
	output_reader_release(&r);
}

TEST(test_phases_of_epochs_are_added_and_those_of_a_run_replace_them)
{
	expect_phases("hello\nfetch_s is 3\n{\"accuracy\":0.5}\n", NAN, NAN, NAN);
	expect_phases("{\"epoch\":1,\"fetch_s\":0.25,\"compute_s\":2,\"sync_s\":0}\n"
		      "{\"epoch\":2,\"fetch_s\":0.5,\"compute_s\":3,\"sync_s\":0.125}\n",
		      0.75, 5, 0.125);
	expect_phases("{\"epoch\":1,\"fetch_s\":0.25,\"compute_s\":2}\n"
		      "{\"event\":\"result\",\"fetch_s\":0.3,\"compute_s\":2.37}\n",
		      0.3, 2.37, NAN);
	/* the last epoch again is no epoch more */
	expect_phases("epoch 1 fetch_s=1\nepoch 2 fetch_s=2 sync_s: 0.5\n{\"epoch\":2,\"fetch_s\":4}\n", 4,
		      NAN, 0.5);
	expect_phases("fetch_s=-1 compute_s=7\n{\"fetch_s\":\"much\",\"sync_s\":null}\n", NAN, 7, NAN);
}

TEST(test_the_usual_styles_are_read_without_being_told)
{
	static const struct {
		const char *text;
		double accuracy, epoch;
	} style[] = {
		{ "val_acc=0.93", 0.93, NAN },
		{ "accuracy: 93.1%", 0.931, NAN },
		{ "Accuracy: 93.1 %", 0.931, NAN },
		{ "Test accuracy: 0.9312", 0.9312, NAN },
		{ "Validation Accuracy = 0.5", 0.5, NAN },
		{ "final acc 0.875 after 12 s", 0.875, NAN },
		{ "epoch 3/10 loss=0.31 val_acc=0.93", 0.93, 3 },
		{ "Epoch [3/10], Loss: 0.31, Acc: 0.5", 0.5, 3 },
		{ "epoch=7 acc=.5", 0.5, 7 },
		{ "{'eval_loss': 0.3, 'eval_accuracy': 0.91, 'epoch': 2.0}", 0.91, 2 },
		{ "[INFO] 12:30:01 train.py:33 - epoch: 4 - accuracy: 0.75", 0.75, 4 },
		{ "Acc@1 78.25 Acc@5 94.5", 0.7825, NAN },
		{ "testAccuracy=0.25", 0.25, NAN },
		{ "Test set: Average loss: 0.0512, Accuracy: 9830/10000 (98%)", 0.983, NAN },
		{ "Epoch 1/3\n1875/1875 [====] - 2s - loss: 0.29 - accuracy: 0.91 - val_accuracy: 0.95", 0.95,
		  1 },
		{ "Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.3\nTrain Epoch: 1 [6400/60000]\tLoss: 1.1", NAN,
		  NAN },
		{ "Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.3\nAccuracy: 90/100 (90%)\nTrain Epoch: 2 [0/6] "
		  "Loss: 1",
		  0.9, 1 },
		{ "epoch 0 acc=0.5\nepoch 1 acc=0.6", 0.6, 2 }, /* counted from 0 */
		{ "Epoch 1\nEpoch 2\nEpoch 3", NAN, 2 }, /* the third goes on */
		{ "10%|#   | 1/10\racc=0.1\r20%|##  | 2/10\racc=0.2", 0.2, NAN },
		{ "Epoch 3:  45%|####  | 844/1875 [00:10<00:12, acc=0.5]", 0.5, 2 }, /* the third goes on */
		{ "Epoch 3: 100%|######| 5/5 [00:10<00:00, acc=0.5]", 0.5, 3 },
		{ "Epoch 3/14: 100%|######| 5/5 [00:10<00:00, loss=0.5]\nval_acc=0.9", 0.9, 3 },
		{ "Epoch 2/3\n 9/18 [==>..] - ETA: 2s - accuracy: 0.91", 0.91, 1 },
		{ "\033[1m18/18\033[0m \033[32mEpoch 2 acc=0.25\033[0m", 0.25, 2 },
		{ "[3/14] loss 0.3 val_acc=0.93", 0.93, 3 },
		{ "[10/1875] loss 0.3", NAN, NAN }, /* of batches, as far as anybody knows */
		{ "Epoch 1\n[3/14] acc=0.5", 0.5, 1 },
		{ " 21%|##   | 3/14 [00:30<01:50, 10.0s/it]", NAN, NAN },
		{ "{\"epoch\":2,\"accuracy\":0.4}", 0.4, 2 },
		{ "{\"epoch\":2,\"acc\":0.9,\"val_acc\":0.4}", 0.4, 2 },
		{ "{\"epoch\":2,\"train_accuracy\":0.9}", NAN, 2 },
		{ "accuracy: 0.93.", 0.93, NAN },
		{ "accuracy=9.3e-1", 0.93, NAN },
	};

	for (size_t i = 0; i < sizeof style / sizeof *style; i++)
		expect(NULL, style[i].text, style[i].accuracy, style[i].epoch);
}

/* `epochs`: how many the owner knows of, NaN for none. */
static void expect_of(double epochs, const char *text, double epoch, double told)
{
	struct output_reader r;

	assert_int_equal(output_reader_init(&r, NULL, NULL), 0);
	r.epochs = epochs;
	feed(&r, text);
	if (isnan(epoch) != isnan(r.epoch) || fabs(r.epoch - epoch) > 1e-12 || isnan(told) != isnan(r.told) ||
	    fabs(r.told - told) > 1e-12) {
		print_error("'%s': epoch %g of %g\n", text, r.epoch, r.told);
		fail();
	}
	output_reader_release(&r);
}

TEST(test_a_count_is_one_of_epochs_where_there_are_as_many)
{
	expect_of(NAN, "Epoch 3/14 loss=0.5", 3, 14);
	expect_of(NAN, "Epoch [3/14] Loss: 0.5", 3, 14);
	expect_of(NAN, "epoch 3 acc=0.5", 3, NAN);
	expect_of(NAN, "[3/14] val_acc=0.5", 3, 14);
	expect_of(14, "[3/14]", 3, 14);
	expect_of(14, "12:30:01 [3/14] loss 0.3", 3, 14);
	expect_of(14, "[  3/1875] loss 0.3 acc=0.5", NAN, NAN);
	expect_of(14, "[3/14", NAN, NAN);
	expect_of(14, "[3.5/14] [15/14]", NAN, NAN);
	expect_of(14, "  0%|      | 0/14 [00:00<?, ?it/s]\r  7%|#     | 1/14 [00:30<01:50, acc=0.5]\r", 1,
		  14);
	expect_of(14, "  7%|#     | 1/375 [00:30<01:50, acc=0.5]\r", NAN, NAN);
	expect_of(14, "Epoch 1: 100%|#####| 14/14 [00:30<00:00]", NAN, NAN); /* of its batches */
}

TEST(test_what_only_looks_like_an_accuracy_is_left_alone)
{
	static const char *const line[] = {
		"train_acc=0.99",
		"training accuracy: 99%",
		"target accuracy: 0.9",
		"top5 accuracy: 0.99",
		"acc@5=0.99",
		"accuracy 3 of 5 runs",
		"accuracy: high",
		"accuracy=nan",
		"accuracy=0x10",
		"macc=0.5",
		"accuracy",
		"accuracy=",
		"account=0.5",
		"0.93",
		"loss: 0.4",
		"accuracy: 12/10",
		"accuracy_loss=0.5",
		"acc=1e999",
		"accuracy=0.5abc",
		"epochs: 10",
		"best epoch: 3",
		"epoch time: 3.5",
		"minimum accuracy 0.5",
		"",
		"%",
		"/",
	};

	for (size_t i = 0; i < sizeof line / sizeof *line; i++)
		expect(NULL, line[i], NAN, NAN);
}

TEST(test_the_held_out_accuracy_counts_whatever_comes_after_it)
{
	expect(NULL, "acc=0.5\nval_acc=0.4\nacc=0.6\nbest val_acc=0.45", 0.4, NAN);
	expect(NULL, "val_acc=0.4\ntest accuracy: 0.38\nval_acc=0.41", 0.38, NAN);
	expect(NULL, "best acc: 0.7", 0.7, NAN); /* better than nothing */
}

TEST(test_percent_is_a_share_and_is_said)
{
	struct output_spec fraction = { .scale = OUTPUT_FRACTION }, percent = { .scale = OUTPUT_PERCENT };
	struct output_reader r;

	assert_int_equal(output_reader_init(&r, NULL, NULL), 0);
	feed(&r, "acc=0.8%");
	assert_true(fabs(r.accuracy - 0.008) < 1e-12 && !r.percent);
	feed(&r, "acc=93.5");
	assert_true(fabs(r.accuracy - 0.935) < 1e-12 && r.percent);
	feed(&r, "acc=0.9"); /* the command's numbers are percent: this one, too */
	assert_true(fabs(r.accuracy - 0.009) < 1e-12);
	feed(&r, "acc=1234"); /* is none, and is not made one */
	assert_true(r.accuracy == 1234.0);
	output_reader_release(&r);
	expect(&fraction, "acc=93.5", 93.5, NAN);
	expect(&fraction, "acc=93.5%", 0.935, NAN);
	expect(&percent, "acc=0.9", 0.009, NAN);
	expect(&percent, "acc=0.9%", 0.009, NAN);
	expect(NULL, "acc=1", 1.0, NAN);
	expect(NULL, "{\"accuracy\":87.5}", 0.875, NAN);
}

TEST(test_a_name_of_the_user_is_the_only_one)
{
	struct output_spec spec = { .accuracy = "f1", .epoch = "round" };

	expect(&spec, "round=3 accuracy=0.9 f1=0.7", 0.7, 3);
	expect(&spec, "Round 3 F1: 0.7", NAN, NAN);
	expect(&spec, "{\"f1\":0.25,\"round\":2}", 0.25, 2);
}

TEST(test_a_regular_expression_finds_what_has_no_name)
{
	struct output_spec spec = { .regex = "score <([0-9.]+%?)>", .epoch_regex = "^#([0-9]+) " };

	expect(&spec, "accuracy=0.9", NAN, NAN);
	expect(&spec, "#4 score <0.25>", 0.25, 4);
	expect(&spec, "score <1> score <55%>", 0.55, NAN);
	spec.epoch_regex = NULL; /* epochs are found by themselves then */
	expect(&spec, "epoch 4 score <0.25>", 0.25, 4);
}

TEST(test_a_regular_expression_sees_lines_of_a_bounded_length)
{
	struct output_spec spec = { .regex = "acc ([0-9.]+)" };
	struct output_reader r;
	struct output_point p;
	char *line = malloc(OUTPUT_MAX_REGEX_LINE + 1);

	assert_non_null(line);
	memset(line, ' ', OUTPUT_MAX_REGEX_LINE + 1);
	memcpy(line, "acc 0.5", 7);
	assert_int_equal(output_reader_init(&r, &spec, NULL), 0);
	assert_false(output_reader_line(&r, line, OUTPUT_MAX_REGEX_LINE + 1, &p));
	assert_true(output_reader_line(&r, line, OUTPUT_MAX_REGEX_LINE, &p));
	assert_true(p.accuracy == 0.5);
	output_reader_release(&r);
	free(line);
}

TEST(test_regular_expressions_that_cannot_work_are_refused)
{
	char long_one[OUTPUT_MAX_REGEX + 4];
	struct err err = { 0 };

	memset(long_one, 'a', sizeof long_one);
	memcpy(long_one, "(.)", 3);
	long_one[sizeof long_one - 1] = '\0';
	assert_int_equal(output_regex_check("acc ([0-9", &err), -ERR_ARG);
	assert_int_equal(output_regex_check("acc [0-9]", &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "no (group)"));
	assert_int_equal(output_regex_check(long_one, &err), -ERR_ARG);
	assert_int_equal(output_regex_check("acc=([0-9]+)", NULL), 0);
}

TEST(test_the_place_of_the_accuracy_is_remembered)
{
	struct output_reader r;

	assert_int_equal(output_reader_init(&r, NULL, NULL), 0);
	assert_string_equal(r.found, "");
	feed(&r, "acc=0.5");
	assert_string_equal(r.found, "acc");
	feed(&r, "{\"val_accuracy\":0.5}");
	assert_string_equal(r.found, "JSON val_accuracy");
	output_reader_release(&r);
}

/* Anything may be printed. */
TEST(test_random_lines_are_survived)
{
	static const char piece[][12] = { "acc",  "=",    ":", " ",  "0.5", "%",  "epoch", "/",         "{",
					  "}",    "\"",   "[", "\r", "-",   "e",  "1",     "999999999", ".",
					  "val_", "\xff", "@", "'",  "(",   "\t", "1e5" };
	struct rng rng = rng_stream(7, 0);

	for (int i = 0; i < 20000; i++) {
		size_t n = rng_below(&rng, 12);
		struct output_reader r;
		struct output_point p;
		char *line, text[200] = "";

		for (size_t k = 0; k < n; k++)
			strcat(text, piece[rng_below(&rng, sizeof piece / sizeof *piece)]);
		line = malloc(strlen(text) + 1); /* so that a sanitizer sees a step beyond the end */
		assert_non_null(line);
		memcpy(line, text, strlen(text));
		assert_int_equal(output_reader_init(&r, NULL, NULL), 0);
		output_reader_line(&r, line, strlen(text), &p);
		assert_true(isnan(r.accuracy) || isfinite(r.accuracy));
		output_reader_release(&r);
		free(line);
	}
}
