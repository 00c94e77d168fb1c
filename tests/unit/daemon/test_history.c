/* scheduler/daemon/history: bins and intervals worked out by hand. */
#include <math.h>
#include <string.h>

#include "scheduler/daemon/history.h"
#include "tests/support/test.h"

#define MINUTE 60000000000LL

static struct history h;

static struct job_record ended(int64_t at_ns, enum slo_outcome outcome)
{
	return (struct job_record){ .verdict = VERDICT_PROMISED, .slo_outcome = outcome, .ended_ns = at_ns };
}

static const struct json *told(int64_t now_ns, struct json **root)
{
	struct strbuf text = { 0 };
	struct json_writer w;

	json_begin(&w, &text, false);
	json_open(&w, '{');
	history_json(&h, now_ns, &w);
	json_close(&w, '}');
	assert_int_equal(json_parse("history", text.text, text.len, root, NULL), 0);
	strbuf_release(&text);
	return json_get(*root, "history");
}

TEST(test_promises_fall_into_their_minute_and_age_out)
{
	int64_t now = 30000000 * MINUTE + 5; /* minute 0 of a quarter of an hour */
	struct job_record row[] = { ended(now - 2 * MINUTE, SLO_MET), ended(now - 2 * MINUTE, SLO_MISSED),
				    ended(now - 90 * MINUTE, SLO_MET), ended(now - 1500 * MINUTE, SLO_MET),
				    ended(now + MINUTE, SLO_MET) };
	const struct json *v, *bin;
	struct json *root;

	memset(&h, 0, sizeof h);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		history_ended(&h, &row[i], now);
	history_load(&h, now, 3.0, NAN);
	history_load(&h, now, 1.0, 2.0);
	v = told(now, &root);
	assert_int_equal(json_size(json_get(v, "hour")), 2); /* the promises, and the load of this minute */
	bin = json_at(json_get(v, "hour"), 0);
	assert_true(json_number(json_get(bin, "met"), NAN) == 1.0);
	assert_true(json_number(json_get(bin, "share"), NAN) == 0.5);
	/* Wilson's interval of 1 in 2: (0.5 + z2/4 -+ z sqrt(1/8 + z2/16)) / (1 + z2/2), z2 = 3.841459 */
	assert_true(fabs(json_number(json_get(bin, "low"), NAN) - 0.094531) < 1e-5);
	assert_true(fabs(json_number(json_get(bin, "high"), NAN) - 0.905469) < 1e-5);
	assert_true(isnan(json_number(json_get(bin, "slots_used"), NAN)));
	bin = json_at(json_get(v, "hour"), 1);
	assert_true(json_number(json_get(bin, "slots_used"), NAN) == 2.0);
	assert_true(json_number(json_get(bin, "other_load"), NAN) == 1.0);
	assert_true(isnan(json_number(json_get(bin, "share"), NAN)));
	assert_int_equal(json_size(json_get(v, "day")), 3);
	json_free(root);
}

TEST(test_a_place_of_yesterday_is_used_anew)
{
	int64_t now = 30000000 * MINUTE;
	struct job_record old = ended(now, SLO_MISSED), fresh = ended(now + 1440 * MINUTE, SLO_MET);
	struct json *root;
	const struct json *v;

	memset(&h, 0, sizeof h);
	history_ended(&h, &old, now);
	history_ended(&h, &fresh, now + 1440 * MINUTE);
	v = told(now + 1440 * MINUTE, &root);
	assert_int_equal(json_size(json_get(v, "hour")), 1);
	assert_true(json_number(json_get(json_at(json_get(v, "hour"), 0), "missed"), NAN) == 0.0);
	json_free(root);
}
