/* sim/report: the page says what the folder says, stands alone, and does not break on odd folders. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/io.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "sim/compare/metrics.h"
#include "sim/report/report.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

#define FIXTURE "tests/report/fixture"
#define PERCENT "\xc2\xa0%" /* does not break from its number */

/* ---- folders ---- */

static void write_text(const char *dir, const char *name, const char *text)
{
	struct err err = { 0 };

	assert_int_equal(io_write_file(support_path(dir, name), text, strlen(text), &err), 0);
}

static char *read_text(const char *dir, const char *name)
{
	struct err err = { 0 };
	char *text = NULL;
	size_t len;

	assert_int_equal(io_read_file(support_path(dir, name), (size_t)64 << 20, &text, &len, &err), 0);
	return text;
}

static const char *new_folder(void)
{
	static char path[16][256];
	static unsigned n;
	char *p = path[n % 16];

	snprintf(p, sizeof path[0], "%s/folder%u", support_temp_dir(), n++);
	assert_int_equal(mkdir(p, 0700), 0);
	return p;
}

/* The text with the first `from` replaced; to be freed. */
static char *changed(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	struct strbuf b = { 0 };

	assert_non_null(at);
	strbuf_add(&b, text, (size_t)(at - text));
	strbuf_puts(&b, to);
	strbuf_puts(&b, at + strlen(from));
	assert_false(b.failed);
	return b.text;
}

/* A copy of the fixture's compare.json with a change, alone in a folder. */
static const char *folder_with(const char *from, const char *to)
{
	const char *dir = new_folder();
	char *text = read_text(FIXTURE, "compare.json"), *other = changed(text, from, to);

	write_text(dir, "compare.json", other);
	free(other);
	free(text);
	return dir;
}

static void copy_text(const char *dir, const char *name, size_t lines)
{
	char *text = read_text(FIXTURE, name), *end = text;

	while (lines-- && strchr(end, '\n'))
		end = strchr(end, '\n') + 1;
	*end = '\0';
	write_text(dir, name, text);
	free(text);
}

/* The fixture with fewer jobs, for what is done hundreds of times. */
static const char *short_folder(void)
{
	const char *dir = new_folder();

	copy_text(dir, "compare.json", SIZE_MAX);
	copy_text(dir, "timing.json", SIZE_MAX);
	copy_text(dir, "training.csv", 150);
	copy_text(dir, "jobs.csv", 100);
	return dir;
}

static const char *const small_compare =
	"{\"kind\":\"replay\",\"seed\":7,\"replications\":1,\"policies\":[{\"name\":\"%s\",\"jobs\":2,"
	"\"attainment\":0.5,\"attainment_ci\":[0.1,0.9],\"attainment_all\":0.25,\"accuracy_met\":0.875}]}";

static const char *small_folder(const char *policy)
{
	const char *dir = new_folder();
	char text[512];

	snprintf(text, sizeof text, small_compare, policy);
	write_text(dir, "compare.json", text);
	return dir;
}

static char *page_of(const char *dir)
{
	struct strbuf out = { 0 };
	struct err err = { 0 };

	if (report_make(dir, &out, &err))
		fail_msg("%s", err.text);
	return out.text;
}

static enum err_code refusal_of(const char *dir, const char *says)
{
	struct strbuf out = { 0 };
	struct err err = { 0 };
	int rc = report_make(dir, &out, &err);

	strbuf_release(&out);
	assert_int_equal(rc, -(int)err.code);
	if (err.code && !strstr(err.text, says))
		fail_msg("no '%s' in '%s'", says, err.text);
	return err.code;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		n++;
	return n;
}

/* ---- the numbers ---- */

/* The value of an attribute within the tag that starts at `tag`; buf of 128 bytes. */
static const char *attribute(const char *tag, const char *name, char *buf)
{
	const char *end = strchr(tag, '>'), *at;
	char look[64];

	snprintf(look, sizeof look, " %s=\"", name);
	at = strstr(tag, look);
	assert_non_null(at);
	assert_true(at < end);
	at += strlen(look);
	snprintf(buf, 128, "%.*s", (int)strcspn(at, "\""), at);
	return buf;
}

static void assert_attribute(const char *tag, const char *name, const struct json *v)
{
	char buf[128], number[32];

	attribute(tag, name, buf);
	if (json_type(v) == JSON_NUMBER)
		assert_string_equal(buf, text_shortest(json_number(v, NAN), number));
	else
		assert_string_equal(buf, "null");
}

static const struct json *policy_named(const struct json *compare, const char *name)
{
	for (const struct json *p = json_first(json_get(compare, "policies")); p; p = json_next(p))
		if (!strcmp(json_string(json_get(p, "name"), ""), name))
			return p;
	return NULL;
}

static size_t metric_named(const char *name)
{
	for (size_t m = 0; m < METRICS; m++)
		if (!strcmp(metric_info[m].name, name))
			return m;
	fail_msg("no metric %s", name);
	return 0;
}

static void check_cell(const char *tag, const struct json *compare, size_t *seen)
{
	char name[128], metric[128], ci[160];
	const struct json *p = policy_named(compare, attribute(tag, "data-policy", name));
	const struct json *interval;

	assert_non_null(p);
	seen[metric_named(attribute(tag, "data-metric", metric))]++;
	assert_attribute(tag, "data-value", json_get(p, metric));
	snprintf(ci, sizeof ci, "%s_ci", metric);
	interval = json_get(p, ci);
	assert_attribute(tag, "data-low", json_at(interval, 0));
	assert_attribute(tag, "data-high", json_at(interval, 1));
}

TEST(test_every_number_of_the_table_is_that_of_compare_json)
{
	char *page = page_of(FIXTURE);
	struct json *compare = NULL;
	size_t seen[METRICS] = { 0 }, n_policies;
	struct err err = { 0 };

	assert_int_equal(json_read_file(FIXTURE "/compare.json", (size_t)64 << 20, &compare, &err), 0);
	n_policies = json_size(json_get(compare, "policies"));
	assert_true(n_policies > 1);
	for (const char *tag = strstr(page, " data-policy="); tag; tag = strstr(tag + 1, " data-policy="))
		check_cell(tag, compare, seen);
	for (size_t m = 0; m < METRICS; m++) /* in the table of all, and the main ones once more */
		assert_true(seen[m] == n_policies || seen[m] == 2 * n_policies ||
			    (!seen[m] && metric_info[m].rare));
	assert_int_equal(seen[METRIC_ATTAINMENT], 2 * n_policies);
	json_free(compare);
	free(page);
}

TEST(test_shown_numbers_are_the_values_rounded)
{
	char *page = page_of(small_folder("p"));

	assert_non_null(strstr(page, "data-metric=\"attainment\" data-value=\"0.5\" data-low=\"0.1\" "
				     "data-high=\"0.9\">50.0" PERCENT "<small>10.0\xe2\x80\x93"
				     "90.0" PERCENT "</small>"));
	assert_non_null(strstr(page, "data-metric=\"accuracy_met\" data-value=\"0.875\" data-low=\"null\" "
				     "data-high=\"null\">0.8750<"));
	assert_non_null(strstr(page, "data-metric=\"regret\" data-value=\"null\""));
	free(page);
}

/* ---- the page ---- */

static bool is_void(const char *name, size_t len)
{
	return len == 4 && !strncmp(name, "meta", 4);
}

/* Every tag is closed by its own end, in order. */
static void assert_well_formed(const char *page)
{
	const char *open[64];
	size_t depth = 0;

	for (const char *at = strchr(page, '<'); at; at = strchr(at + 1, '<')) {
		const char *end = strchr(at, '>');
		size_t len;

		assert_non_null(end);
		if (at[1] == '!')
			continue;
		if (at[1] == '/') {
			len = (size_t)(end - at) - 2;
			assert_true(depth > 0);
			depth--;
			if (strncmp(open[depth], at + 2, len) || strcspn(open[depth], " >\n") != len)
				fail_msg("<%.*s> is closed by </%.*s>", (int)strcspn(open[depth], " >\n"),
					 open[depth], (int)len, at + 2);
			continue;
		}
		len = strcspn(at + 1, " >/\n");
		if (end[-1] == '/' || is_void(at + 1, len))
			continue;
		assert_true(depth < sizeof open / sizeof *open);
		open[depth++] = at + 1;
	}
	assert_int_equal(depth, 0);
}

static void assert_stands_alone(const char *page)
{
	static const char *const never[] = { "<script", "javascript:", " src=",    "@import", "url(",
					     "<link",   "<iframe",     " onload=", "<object", "<embed" };

	for (size_t i = 0; i < sizeof never / sizeof *never; i++)
		if (strstr(page, never[i]))
			fail_msg("there is %s", never[i]);
	/* the name of the SVG language is no address: nothing is loaded from it */
	assert_int_equal(count(page, "http"), count(page, "xmlns=\"http://www.w3.org/2000/svg\""));
	for (const char *at = strstr(page, "href=\""); at; at = strstr(at + 1, "href=\""))
		assert_true(!strncmp(at, "href=\"data:text/csv;charset=utf-8,", 34) ||
			    !strncmp(at, "href=\"#run\"", 11));
	assert_int_equal(count(page, "id=\"run\""), 1);
}

TEST(test_the_page_is_well_formed_and_stands_alone)
{
	char *page = page_of(FIXTURE);

	assert_int_equal(strncmp(page, "<!DOCTYPE html>\n<html lang=\"en\">", 31), 0);
	assert_well_formed(page);
	assert_stands_alone(page);
	free(page);
}

TEST(test_every_figure_has_a_sentence_drawings_and_data)
{
	static const char *const id[] = { "attainment", "tradeoff", "predicted",   "residuals", "importances",
					  "anova",      "timeline", "calibration", "coverage" };
	char *page = page_of(FIXTURE), look[64];

	for (size_t i = 0; i < sizeof id / sizeof *id; i++) {
		const char *at, *end;

		snprintf(look, sizeof look, "<figure id=\"%s\">", id[i]);
		at = strstr(page, look);
		if (!at)
			fail_msg("no figure %s", id[i]);
		end = strstr(at, "</figure>");
		assert_true(strstr(at, "<p class=\"see\">") < end);
		assert_true(strstr(at, "<svg class=\"chart wide\"") < end);
		assert_true(strstr(at, "<svg class=\"chart narrow\"") < end);
		assert_true(strstr(at, "<title>") < end && strstr(at, "<desc>") < end);
		snprintf(look, sizeof look, "<a download=\"%s.csv\"", id[i]);
		assert_true(strstr(at, look) && strstr(at, look) < end);
	}
	assert_int_equal(count(page, "<figure "), sizeof id / sizeof *id); /* no sweep: no word about it */
	free(page);
}

TEST(test_the_page_says_how_it_was_made)
{
	static const char *const fact[] = { "<dt>seed</dt>",    "<dt>program</dt>",
					    "<dt>command</dt>", "<dt>machine</dt>",
					    "<dt>world</dt>",   "<dt>learnt from, happens</dt>",
					    "<dt>trace</dt>",   "<dt>cluster</dt>" };
	char *page = page_of(FIXTURE);

	for (size_t i = 0; i < sizeof fact / sizeof *fact; i++)
		if (!strstr(page, fact[i]))
			fail_msg("no %s", fact[i]);
	free(page);
}

TEST(test_headings_go_down_one_step_at_a_time)
{
	char *page = page_of(FIXTURE);
	int level = 0;

	for (const char *at = strstr(page, "<h"); at; at = strstr(at + 1, "<h"))
		if (at[2] >= '1' && at[2] <= '6' && at[3] == '>') {
			assert_true(at[2] - '0' <= level + 1);
			level = at[2] - '0';
		}
	assert_int_equal(count(page, "<h1>"), 1);
	free(page);
}

TEST(test_names_from_outside_are_text)
{
	char *page = page_of(small_folder("<script>alert(1)</script>&'\\\"x"));

	assert_well_formed(page);
	assert_stands_alone(page);
	assert_non_null(
		strstr(page, "data-policy=\"&lt;script&gt;alert(1)&lt;/script&gt;&amp;&apos;&quot;x\""));
	free(page);
}

TEST(test_the_same_folder_gives_the_same_bytes)
{
	char *a = page_of(FIXTURE), *b = page_of(FIXTURE);

	assert_string_equal(a, b);
	free(a);
	free(b);
}

/* ---- sentences ---- */

static const char *const two =
	"{\"baseline\":\"a\",\"replications\":5,\"policies\":["
	"{\"name\":\"a\",\"attainment_all\":%g,\"accuracy_met\":0.9,\"accuracy_zero\":0.7},"
	"{\"name\":\"b\",\"attainment_all\":%g,\"accuracy_met\":0.8,\"accuracy_zero\":0.6,"
	"\"versus\":{\"attainment_all\":{\"difference\":%g,\"low\":0,\"high\":0,\"p\":%g}}}]}";

static char *page_of_two(double a, double b, double p)
{
	const char *dir = new_folder();
	char text[1024];

	snprintf(text, sizeof text, two, a, b, b - a, p);
	write_text(dir, "compare.json", text);
	return page_of(dir);
}

TEST(test_sentences_follow_the_data)
{
	char *page = page_of_two(0.5, 0.75, 0.001);

	assert_non_null(strstr(page, "b meets most, with 75.0" PERCENT ", 25 points ahead of a."));
	assert_non_null(strstr(
		page, "Against the baseline a, b is better in limits met of all (+25.0 points, p 0.001)"));
	assert_non_null(strstr(page, "No other policy is better in both: a (50.0" PERCENT
				     " met, accuracy 0.9000), b (75.0" PERCENT " met"));
	free(page);
	page = page_of_two(0.75, 0.5, 0.001);
	assert_non_null(strstr(page, "a meets most, with 75.0" PERCENT ", 25 points ahead of b."));
	assert_non_null(strstr(page, "b is worse in limits met of all (\xe2\x88\x92"
				     "25.0 points, p 0.001)"));
	assert_non_null(strstr(page, "Another does at least as well in both as b."));
	free(page);
	page = page_of_two(0.75, 0.5, 0.2);
	assert_non_null(strstr(page, "b is not clearly different in 1 of the measures below."));
	free(page);
}

TEST(test_wins_losses_and_the_best_are_marked_with_words)
{
	char *page = page_of_two(0.5, 0.75, 0.001);

	assert_non_null(strstr(
		page, "data-value=\"0.75\" data-low=\"null\" data-high=\"null\"><b><abbr title=\"best\">"
		      "\xe2\x98\x85</abbr>&nbsp;75.0" PERCENT
		      "</b><small class=\"win\">\xe2\x96\xb2 better, p 0.001"));
	free(page);
	page = page_of_two(0.75, 0.5, 1e-9);
	assert_non_null(strstr(page, "<small class=\"loss\">\xe2\x96\xbc worse, p &lt; 0.0001</small>"));
	free(page);
}

TEST(test_the_oracle_is_never_the_best)
{
	const char *dir = folder_with("\"name\": \"oracle\"", "\"name\": \"other\"");
	char *with = page_of(FIXTURE), *without = page_of(dir);

	assert_null(strstr(with, "data-policy=\"oracle\" data-metric=\"accuracy_zero\" data-value=\"null\""));
	for (const char *at = strstr(with, "data-policy=\"oracle\""); at;
	     at = strstr(at + 1, "data-policy=\"oracle\""))
		assert_int_not_equal(strncmp(strchr(at, '>'), "><b>", 4), 0);
	assert_true(count(without, "class=\"see\"") > 0);
	assert_non_null(strstr(
		without, "other is the most accurate")); /* the very numbers, of a policy like the others */
	free(with);
	free(without);
}

/* ---- jobs ---- */

#define JOBS_HEADER                                                                                          \
	"policy,replication,job,arrival_s,cpus,slo_s,outcome,start_s,end_s,run_s,predicted_s,processes\n"

/* A replay of n jobs under p, all met; each a second later. */
static const char *folder_of_jobs(size_t n)
{
	const char *dir = small_folder("p");
	struct strbuf b = { 0 };

	strbuf_puts(&b, JOBS_HEADER);
	for (size_t i = 0; i < n; i++)
		strbuf_printf(&b, "p,0,%zu,%zu,2,30,met,%zu,%zu.5,10.5,%g,%zu\n", i + 1, i, i, i + 10,
			      8.0 + (double)(i % 7), 1 + i % 20);
	write_text(dir, "jobs.csv", strbuf_text(&b));
	strbuf_release(&b);
	return dir;
}

TEST(test_thousands_of_runs_are_thinned_evenly)
{
	char *page = page_of(folder_of_jobs(10000));
	const char *at = strstr(page, "<a download=\"predicted.csv\""), *end = strstr(at, "</a>");
	size_t lines = 0;

	assert_non_null(strstr(page, "Drawn are 2,000 of 10,000 runs"));
	for (const char *c = at; c < end; c++)
		lines += !strncmp(c, "%0A", 3);
	assert_int_equal(lines, 2001);
	assert_true(strstr(at, "%0Ap,0,1,") < end); /* the first, and every fifth */
	assert_true(strstr(at, "%0Ap,0,6,") < end);
	assert_true(strstr(at, "%0Ap,0,9996,") < end);
	assert_true(!strstr(at, "%0Ap,0,2,") || strstr(at, "%0Ap,0,2,") > end);
	free(page);
}

TEST(test_the_timeline_shows_the_first_jobs_and_their_outcomes)
{
	char *page = page_of(folder_of_jobs(200));

	/* 80 jobs of 10.5 s, one a second: at most 11 of 2 cpus each at once */
	assert_non_null(strstr(
		page, "The first 80 of 200 jobs under p in the first replication: 80 met. At most 22 cpus"));
	free(page);
}

/* Two replications of 30 jobs: the bounds of the first ten are too short in every second job, later ones
 * hold; in the second replication one more breaks. */
TEST(test_coverage_is_told_for_the_first_ten_jobs_and_between_seeds)
{
	const char *dir = small_folder("p");
	struct strbuf b = { 0 };
	char *page;

	strbuf_puts(&b, "policy,replication,job,arrival_s,cpus,slo_s,outcome,start_s,end_s,run_s,predicted_s,"
			"processes,"
			"upper_s\n");
	for (int r = 1; r <= 2; r++)
		for (int i = 0; i < 30; i++)
			strbuf_printf(&b, "p,%d,%d,%d,2,30,met,%d,%d,10,9,1,%d\n", r, i + 1, 30 - i, 100 - i,
				      110 - i, (i >= 20 && i % 2) || (r == 2 && i == 0) ? 9 : 11);
	strbuf_puts(&b, "p,1,31,1,2,30,rejected,,,,,,\n"); /* has no bound, and no place in the order */
	write_text(dir, "jobs.csv", strbuf_text(&b));
	strbuf_release(&b);
	page = page_of(dir);
	/* jobs start in the reverse order of the file: its last ten are the first */
	assert_non_null(strstr(page, "p: of the first ten jobs that started 50.0"));
	assert_non_null(strstr(page, "lowest%20of%202%20seeds,30,24,0.8,"));
	assert_non_null(strstr(page, "highest%20of%202%20seeds,30,25,0.83333"));
	assert_non_null(strstr(page, "jobs%2011%20to%2025,30,30,1,"));
	assert_non_null(strstr(page, "jobs%2026%20to%2050,10,9,0.9,"));
	free(page);
}

TEST(test_a_folder_without_jobs_says_so_in_place_of_figures)
{
	char *page = page_of(small_folder("p"));

	assert_int_equal(count(page, "jobs.csv is not in the folder."), 3);
	assert_non_null(strstr(page, "training.csv is not in the folder."));
	assert_non_null(strstr(page, "timing.json is not in the folder"));
	assert_non_null(strstr(page, "<figure id=\"attainment\">"));
	assert_null(strstr(page, "id=\"tradeoff\"")); /* one policy compares nothing */
	assert_well_formed(page);
	free(page);
}

TEST(test_rejected_jobs_and_empty_tables_are_no_trouble)
{
	const char *dir = small_folder("p");
	char *page;

	write_text(dir, "jobs.csv", JOBS_HEADER "p,0,1,0,2,30,rejected,,,,,\n");
	page = page_of(dir);
	assert_non_null(strstr(page, "1 rejected. At most 0 cpus"));
	assert_non_null(strstr(page, "No run in jobs.csv has a prediction."));
	assert_well_formed(page);
	free(page);
	write_text(dir, "jobs.csv", JOBS_HEADER);
	write_text(dir, "training.csv", "network,cpus,njobs,batch,time_s\n");
	page = page_of(dir);
	assert_non_null(strstr(page, "jobs.csv has no job."));
	assert_non_null(strstr(page, "allows no analysis of variance"));
	free(page);
}

TEST(test_a_sweep_is_a_figure)
{
	const char *dir = small_folder("p");
	char *page;

	write_text(dir, "sweep.json",
		   "{\"key\":\"slo.scale\",\"points\":[{\"value\":0.5,\"policies\":[{\"name\":\"p\","
		   "\"attainment_all\":0.25}]},"
		   "{\"value\":2,\"policies\":[{\"name\":\"p\",\"attainment_all\":0.75}]}]}");
	page = page_of(dir);
	assert_non_null(strstr(page, "As slo.scale goes from 0.5 to 2, p meets 25.0" PERCENT
				     " to 75.0" PERCENT " of all limits."));
	assert_well_formed(page);
	free(page);
}

/* ---- bad folders ---- */

TEST(test_a_missing_folder_or_file_is_named)
{
	assert_int_equal(refusal_of("tests/report/no-such-folder", "no-such-folder"), ERR_NOTFOUND);
	assert_int_equal(refusal_of(new_folder(), "compare.json: there is no such file"), ERR_NOTFOUND);
}

static void refuse_text(const char *name, const char *text, const char *says)
{
	const char *dir = strcmp(name, "compare.json") ? small_folder("p") : new_folder();

	write_text(dir, name, text);
	assert_int_equal(refusal_of(dir, says), ERR_FORMAT);
}

TEST(test_bad_files_are_refused_with_place_and_reason)
{
	refuse_text("compare.json", "{\n  \"policies\": [,]}", "compare.json:2:16:");
	refuse_text("compare.json", "[]", "compare.json:1:1:");
	refuse_text("compare.json", "{}", "policies: is not given");
	refuse_text("compare.json", "{\"policies\":[]}", "policies: has 0 entries");
	refuse_text("compare.json", "{\"policies\":[3]}", "policies[0]: must be an object");
	refuse_text("compare.json", "{\"policies\":[{}]}", "policies[0].name");
	refuse_text("compare.json", "{\"policies\":[{\"name\":\"a\"},{\"name\":\"a\"}]}", "policies[1].name");
	refuse_text("compare.json", "{\"policies\":[{\"name\":\"a\",\"mape\":\"x\"}]}",
		    "policies[0].mape: must be a number");
	refuse_text("compare.json", "{\"policies\":[{\"name\":\"a\",\"mape_ci\":[1]}]}",
		    "policies[0].mape_ci");
	refuse_text("compare.json", "{\"policies\":[{\"name\":\"a\",\"mape_ci\":[1,2,3]}]}",
		    "policies[0].mape_ci");
	refuse_text("compare.json", "{\"policies\":[{\"name\":\"a\",\"mape_ci\":[1,\"x\"]}]}",
		    "policies[0].mape_ci: [low, high]");
	refuse_text("compare.json", "{\"policies\":[{\"name\":\"a\",\"versus\":[]}]}", "policies[0].versus");
	refuse_text("compare.json", "{\"policies\":[{\"name\":\"a\",\"versus\":{\"mape\":1}}]}",
		    "policies[0].versus");
	refuse_text("compare.json", "{\"policies\":[{\"name\":\"a\",\"importances\":{\"x\":\"y\"}}]}",
		    "importances");
	refuse_text("compare.json",
		    "{\"policies\":[{\"name\":\"a\",\"calibration\":[{\"confidence\":0.9,\"runs\":3,"
		    "\"within\":4}]}]}",
		    "calibration");
	refuse_text("compare.json", "{\"baseline\":\"z\",\"policies\":[{\"name\":\"a\"},{\"name\":\"b\"}]}",
		    "'z'");
	refuse_text("compare.json", "{\"level\":2,\"policies\":[{\"name\":\"a\"}]}", "level");
	refuse_text("timing.json", "{", "timing.json:1:");
	refuse_text("sweep.json", "{\"points\":[{\"policies\":[]}]}", "points[0].value");
	refuse_text("sweep.json", "{\"points\":[{\"value\":1,\"policies\":[]}]}", "points[0].policies");
	refuse_text("jobs.csv", "policy,replication\n", "column outcome is missing");
	refuse_text("jobs.csv", JOBS_HEADER "q,0,1,0,2,30,met,0,1,1,1,1\n", "jobs.csv:2: column policy: 'q'");
	refuse_text("jobs.csv", JOBS_HEADER "p,0,1,0,2,30,lost,0,1,1,1,1\n",
		    "jobs.csv:2: column outcome: 'lost'");
	refuse_text("jobs.csv", JOBS_HEADER "p,0,1,0,2,30,met,0,x,1,1,1\n", "column end_s");
	refuse_text("jobs.csv", JOBS_HEADER "p,-1,1,0,2,30,met,0,1,1,1,1\n", "column replication: '-1'");
	refuse_text("training.csv", "a,b\n1\n", "training.csv:2");
}

TEST(test_odd_numbers_are_drawn_without_nan)
{
	const char *dir = small_folder("p");
	char *page;

	write_text(dir, "compare.json",
		   "{\"policies\":[{\"name\":\"p\",\"attainment\":1e300,\"attainment_all\":-1e300,\"accuracy_"
		   "met\":0,"
		   "\"response_mean_s\":1e300,\"mse\":1e308,\"importances\":{\"x\":0,\"y\":-1}}]}");
	write_text(dir, "jobs.csv",
		   JOBS_HEADER "p,0,1,0,2,30,met,0,1e300,1e300,1e-300,1e300\n"
			       "p,0,2,5,0,-3,missed,4,2,-1,0,0\n");
	page = page_of(dir);
	assert_null(strstr(page, "=\"nan"));
	assert_null(strstr(page, "=\"inf"));
	assert_well_formed(page);
	free(page);
}

/* ---- failures on demand ---- */

TEST(test_every_failed_allocation_is_an_error_and_no_leak)
{
	const char *dir = short_folder();
	unsigned long k = 0;
	bool met = true;

	for (k = 1; met;
	     k += k < 200 ? 1 : 7) { /* each of the first, then every seventh: pages grow by many */
		struct strbuf out = { 0 };
		struct err err = { 0 };
		int rc;

		mem_fail_at(k, false);
		rc = report_make(dir, &out, &err);
		met = mem_failed();
		mem_fail_at(0, false);
		if (met && !rc)
			assert_true(out.len > 0); /* something that could do without */
		else if (met)
			assert_int_equal(err.code, ERR_NOMEM);
		strbuf_release(&out);
	}
	assert_true(k > 50);
}

TEST(test_every_failed_read_is_an_error)
{
	const char *dir = short_folder();
	bool met = true;

	for (unsigned long k = 1; met; k++) {
		struct strbuf out = { 0 };
		struct err err = { 0 };
		int rc;

		io_fail_at(k, 5);
		rc = report_make(dir, &out, &err);
		met = io_failed();
		io_fail_at(0, 0);
		assert_int_equal(rc != 0, met);
		if (met)
			assert_int_equal(err.code, ERR_IO);
		strbuf_release(&out);
	}
}
