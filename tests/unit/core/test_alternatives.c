/* What an answer says beside the choice: found in a decision, written as JSON and in words, read again. */
#include <math.h>
#include <string.h>

#include "scheduler/core/alternatives.h"
#include "tests/support/test.h"

static struct decision d;

static struct candidate *add(double batch, double accuracy, double guard_s, unsigned reasons)
{
	struct candidate *c = &d.candidate[d.n_candidates++];

	*c = (struct candidate){ .decision = batch,
				 .epochs = NAN,
				 .accuracy = accuracy,
				 .time_s = 0.8 * guard_s,
				 .guard_s = guard_s,
				 .reasons = reasons,
				 .feasible = !(reasons & ~(unsigned)(REASON_PRICE | REASON_LOWER_ACCURACY)) };
	return c;
}

/* A limit of 10 s: 128 is chosen, 64 is in time but for others, 32 and 16 need more. */
static void decide_by_hand(void)
{
	d = (struct decision){ .chosen = 1, .by_bounds = true };
	add(256, 0.80, 4, REASON_LOWER_ACCURACY);
	add(128, 0.90, 6, 0);
	add(64, 0.93, 9, REASON_BREAKS_PROMISE)->breaks = 12;
	add(32, 0.95, 28.04, REASON_SLO_EXCEEDED);
	add(16, 0.96, 50, REASON_SLO_EXCEEDED);
}

static const char *words(const struct alternatives *a)
{
	static struct strbuf out;

	strbuf_release(&out);
	out = (struct strbuf){ 0 };
	alternatives_text(a, "  ", &out);
	return strbuf_text(&out);
}

TEST(test_the_best_that_others_kept_from_the_job_and_the_next_that_time_would_bring_are_named)
{
	struct alternatives a;

	decide_by_hand();
	alternatives_find(&d, 3, &a);
	assert_string_equal(words(&a),
			    "  passed     64 x 3 epochs, accuracy 0.9300: job 12 would miss its promise\n"
			    "  more time  with 28.1 s: 32 x 3 epochs, accuracy 0.9500\n");
	d.candidate[2] = d.candidate[1];
	d.candidate[2].decision = 64;
	d.candidate[2].accuracy = 0.93;
	d.candidate[2].cost = 0.021;
	d.candidate[2].reasons = REASON_PRICE;
	alternatives_find(&d, NAN, &a);
	assert_string_equal(
		words(&a),
		"  passed     64, accuracy 0.9300: to leave room for other jobs, which would lose 0.021 of "
		"accuracy\n"
		"  more time  with 28.1 s: 32, accuracy 0.9500\n");
}

TEST(test_where_the_best_is_chosen_there_is_nothing_to_say)
{
	struct alternatives a;

	decide_by_hand();
	d.n_candidates = 2;
	alternatives_find(&d, 3, &a);
	assert_string_equal(words(&a), "");
	d.chosen = -1; /* refused: the shortest limit is said elsewhere */
	alternatives_find(&d, 3, &a);
	assert_string_equal(words(&a), "");
	assert_true(isnan(alternative_shorter(&d).batch));
}

TEST(test_fewer_epochs_that_are_in_time_are_named)
{
	struct alternatives a = { alternative_none, alternative_none, alternative_none };

	decide_by_hand();
	d.candidate[1].epochs = 1;
	a.shorter = alternative_shorter(&d);
	assert_string_equal(words(&a),
			    "  shorter    in time with 128 x 1 epoch, accuracy 0.9000, at most 6 s\n");
}

TEST(test_json_says_the_same)
{
	struct alternatives a, back;
	struct strbuf out = { 0 };
	struct json_writer w;
	struct json *v = NULL;
	char before[512];

	decide_by_hand();
	alternatives_find(&d, 3, &a);
	a.shorter = alternative_shorter(&d);
	json_begin(&w, &out, false);
	json_open(&w, '{');
	alternatives_json(&w, &a);
	json_close(&w, '}');
	assert_int_equal(json_parse("it", strbuf_text(&out), out.len, &v, NULL), 0);
	alternatives_read(v, &back);
	assert_true(strlen(words(&a)) < sizeof before);
	strcpy(before, words(&a));
	assert_string_equal(words(&back), before);
	assert_string_equal(json_string(json_path(v, "passed_over.text"), ""),
			    "64 x 3 epochs, accuracy 0.9300: job 12 would miss its promise");
	json_free(v);
	/* of a daemon that says nothing of it */
	assert_int_equal(json_parse("it", "{}", 2, &v, NULL), 0);
	alternatives_read(v, &back);
	assert_string_equal(words(&back), "");
	json_free(v);
	strbuf_release(&out);
}
