/* What a comparison leaves behind: bytes that read back, a folder that is whole or not there, nothing of
 * others lost. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/csv.h"
#include "common/io.h"
#include "common/mem.h"
#include "common/rng.h"
#include "common/text/text.h"
#include "sim/compare/record.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/sim/record_bed.h"

#define S INT64_C(1000000000)

/* ---- a small comparison by hand: two policies, two replications, three jobs ---- */

static char *value_a[] = { (char *)"lenet5", (char *)"2", (char *)"high, \"so to say\"", NULL };
static char *value_b[] = { (char *)"simplenet", NULL, NULL, (char *)"x" };
static char *column[] = { (char *)"network", (char *)"epochs", (char *)"accuracy", (char *)"trace_accuracy" };
static struct trace_kind kind[] = {
	{ .value = value_a, .cpus = 2, .epochs_from = NAN, .epochs_to = NAN },
	{ .value = value_b, .cpus = 1, .epochs_from = 1.0, .epochs_to = 4.0 },
};
static struct trace_job job[] = {
	{ .id = 7, .arrival_ns = 1, .slo_s = 2.37, .confidence = NAN, .kind = 0, .tenant = 0, .type = 0 },
	{ .id = 9,
	  .arrival_ns = 2 * S,
	  .slo_s = NAN,
	  .confidence = 0.95,
	  .kind = 1,
	  .tenant = 1,
	  .type = -1 },
	{ .id = 8, .arrival_ns = 3 * S, .slo_s = 1.0, .confidence = NAN, .kind = 0, .tenant = 0, .type = 0 },
};
#define N_JOBS 3
static char *tenant[] = { (char *)"anna", (char *)"bert, inc." };
static double weight[] = { 1.0, 1.0 };
static char *type[] = { (char *)"digits" };
static struct trace trace = {
	.name = (char *)"three.csv",
	.about = (char *)"three jobs",
	.column = column,
	.n_columns = 4,
	.kind = kind,
	.n_kinds = 2,
	.job = job,
	.n_jobs = N_JOBS,
	.tenant = tenant,
	.weight = weight,
	.n_tenants = 2,
	.type = type,
	.n_types = 1,
	.fingerprint = 0x00123456789abcdeULL,
};

static struct outcome outcome[N_JOBS] = {
	{ .state = OUTCOME_MET,
	  .promised = true,
	  .start_ns = S / 2,
	  .end_ns = 2 * S + 123456789,
	  .batch = 64.0,
	  .epochs = NAN,
	  .promised_s = 1.9,
	  .promised_upper_s = 2.3,
	  .run_s = 1.0 / 3.0,
	  .run_upper_s = INFINITY,
	  .predicted_accuracy = 0.9,
	  .accuracy = 0.91,
	  .processes = 2.5,
	  .njobs = 1.25,
	  .decision_s = 3e-6 },
	{ .state = OUTCOME_DONE,
	  .start_ns = 2 * S,
	  .end_ns = 3 * S,
	  .batch = 128.0,
	  .epochs = 3.0,
	  .promised_s = NAN,
	  .promised_upper_s = NAN,
	  .run_s = NAN,
	  .run_upper_s = NAN,
	  .predicted_accuracy = NAN,
	  .accuracy = NAN,
	  .processes = 1.0,
	  .njobs = 1.0 },
	{ .state = OUTCOME_REJECTED,
	  .batch = NAN,
	  .epochs = NAN,
	  .promised_s = 4.0,
	  .promised_upper_s = 5.0,
	  .run_s = NAN,
	  .run_upper_s = NAN,
	  .predicted_accuracy = NAN,
	  .accuracy = NAN,
	  .processes = NAN,
	  .njobs = NAN },
};

#define HEADER                                                                                               \
	"policy,replication,job,arrival_s,tenant,type,cpus,network,trace_trace_accuracy,trace_accuracy,"     \
	"slo_s,confidence,promised,outcome,start_s,end_s,wait_s,response_s,run_s,batch,epochs,promised_s,"   \
	"promised_upper_s,predicted_s,upper_s,predicted_accuracy,accuracy,processes,njobs\n"

#define ROWS(start)                                                                                          \
	start "7,0.000000001,anna,digits,2,lenet5,\"high, \"\"so to say\"\"\",,2.37,,1,met,0.5,2.123456789," \
	      "0.499999999,2.123456788,1.623456789,64,2,1.9,2.3,0.3333333333333333,,0.9,0.91,2.5,1."         \
	      "25\n" start                                                                                   \
	      "9,2,\"bert, inc.\",,1,simplenet,,x,,0.95,0,done,2,3,0,1,1,128,3,,,,,,,1,1\n" start            \
	      "8,3,anna,digits,2,lenet5,\"high, \"\"so to say\"\"\",,1,,0,rejected,,,,,,,2,4,5,,,,,,\n"

struct bed {
	struct compare_result r;
	struct compare_policy policy[2];
	struct replay_result run[4];
	struct trace *trace[2];
	struct world *world[2];
	struct compare_params params;
	struct record_about about;
	struct trace *plain; /* what the world was opened for */
	char *feature[2];
	double importance[2];
};

static void bed_policy(struct bed *b, size_t i, const char *name, const char *title)
{
	struct compare_policy *c = &b->policy[i];

	*c = (struct compare_policy){ .policy = { .title = title },
				      .run = &b->run[2 * i],
				      .decision_mean_s = 2e-6,
				      .decision_p99_s = 5e-6 };
	snprintf(c->policy.name, sizeof c->policy.name, "%s", name);
	for (size_t m = 0; m < METRICS; m++) {
		c->metric[m] = (struct interval){ 0.1 + (double)m, 0.05, NAN };
		c->versus[m] = (struct paired_result){ 0.25, -0.5, 1.0, 0.0625, 2, 0.125 };
	}
	for (size_t k = 0; k < 2; k++)
		c->run[k] = (struct replay_result){ .outcome = outcome, .n = N_JOBS };
}

static void bed_init(struct bed *b)
{
	*b = (struct bed){ 0 };
	bed_policy(b, 0, "naive", "takes \"one\"");
	bed_policy(b, 1, "fixed:128", "always 128");
	b->policy[1].tracked[90] = 10;
	b->policy[1].covered[90] = 9;
	b->policy[1].tracked[95] = 4;
	b->policy[1].importance = b->importance;
	b->policy[1].feature = b->feature;
	b->policy[1].n_features = 2;
	b->feature[0] = (char *)"batch";
	b->feature[1] = (char *)"cpus";
	b->importance[0] = 0.75;
	b->importance[1] = 0.25;
	b->trace[0] = b->trace[1] = &trace;
	b->r = (struct compare_result){
		.policy = b->policy, .n_policies = 2, .replications = 2, .trace = b->trace, .world = b->world
	};
	b->params = (struct compare_params){
		.seed = 11, .settings = { .confidence = 0.9 }, .level = 0.95, .replications = 2
	};
	b->about = (struct record_about){ "compare", "postrider 0", "postrider compare x", &b->params, NULL };
}

/* For what is said of a world: any will do, on any trace. */
static void bed_open_world(struct bed *b)
{
	const struct cluster machine = { .cores = 4.0, .slots = 8, .nodes = 1, .memory_mb = INFINITY };
	struct trace_source source = { .spec = "gen:poisson,jobs=3,rate=0.1,cpus=1,network=lenet5",
				       .seed = 1 };
	struct world_params world = { .spec = "fluid", .given = &machine };
	struct err err = { 0 };

	if (trace_open(&source, &b->plain, &err))
		fail_msg("%s", err.text);
	world.trace = b->plain;
	if (world_open(&world, &b->world[0], &err))
		fail_msg("%s", err.text);
	b->world[1] = b->world[0];
}

static void bed_release(struct bed *b)
{
	world_free(b->world[0]);
	trace_free(b->plain);
}

/* A name in the temporary folder that stays, unlike those of support_path(). */
static const char *folder(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof path, "%s", support_path(support_temp_dir(), name));
	return path;
}

static char *read_text(const char *dir, const char *name)
{
	struct err err = { 0 };
	size_t len;
	char *text;

	if (io_read_file(support_path(dir, name), 1 << 20, &text, &len, &err))
		fail_msg("%s", err.text);
	return text;
}

static bool is_there(const char *dir, const char *name)
{
	return !access(support_path(dir, name), F_OK);
}

/* ---- jobs.csv ---- */

TEST(test_every_job_is_a_row_to_the_byte)
{
	static const char want[] = HEADER ROWS("naive,1,") ROWS("naive,2,") ROWS("fixed:128,1,")
		ROWS("fixed:128,2,");
	struct strbuf out = { 0 };
	struct csv *back;
	struct bed b;

	bed_init(&b);
	assert_int_equal(record_bed_jobs(&b.r, &out, NULL), 0);
	assert_string_equal(strbuf_text(&out), want);
	assert_int_equal(csv_parse("jobs.csv", out.text, out.len, &back, NULL), 0);
	assert_int_equal(back->n_rows, 12);
	csv_free(back);
	strbuf_release(&out);
}

TEST(test_outcomes_that_are_gone_make_no_rows)
{
	struct err err = { 0 };
	struct bed b;

	bed_init(&b);
	b.run[3].outcome = NULL;
	assert_int_equal(record_jobs_write(support_temp_dir(), "gone.csv", &b.r, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "not kept"));
	assert_false(is_there(support_temp_dir(), "gone.csv") || is_there(support_temp_dir(), JOBS_PART));
}

TEST(test_rows_without_memory_are_an_error)
{
	unsigned long k = 0;
	struct bed b;

	bed_init(&b);
	for (bool failed = true; failed;) {
		int status;

		mem_fail_at(++k, false);
		status = record_jobs_write(support_temp_dir(), "rows.csv", &b.r, NULL);
		failed = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(status, failed ? -ERR_NOMEM : 0);
		assert_true(is_there(support_temp_dir(), "rows.csv") == !failed);
	}
	assert_true(k > 5);
}

/* ---- compare.json ---- */

TEST(test_the_object_has_every_number)
{
	const struct json *p, *v;
	struct strbuf out = { 0 };
	struct json *root;
	struct err err = { 0 };
	struct bed b;

	bed_init(&b);
	bed_open_world(&b);
	record_text(&b.r, &b.about, &out);
	if (json_parse("compare.json", strbuf_text(&out), out.len, &root, &err))
		fail_msg("%s", err.text);
	assert_true(out.text[out.len - 1] == '\n');
	assert_string_equal(json_string(json_get(root, "kind"), ""), "compare");
	assert_string_equal(json_string(json_get(root, "baseline"), ""), "naive");
	assert_true(json_number(json_get(root, "seed"), NAN) == 11.0);
	v = json_get(root, "trace");
	assert_string_equal(json_string(json_get(v, "fingerprint"), ""), "00123456789abcde");
	assert_true(json_number(json_get(v, "jobs"), NAN) == 3.0);
	assert_string_equal(json_string(json_get(json_get(root, "world"), "name"), ""), "fluid");
	assert_int_equal(json_size(json_get(json_get(root, "world"), "splits")), 1);
	assert_true(json_number(json_get(json_get(root, "cluster"), "cores"), NAN) == 4.0);
	assert_true(json_number(json_get(json_get(root, "disturbances"), "noise"), NAN) == 0.0);
	assert_int_equal(json_size(json_get(root, "policies")), 2);
	p = json_at(json_get(root, "policies"), 1);
	for (size_t m = 0; m < METRICS; m++) {
		char ci[64];

		assert_true(json_number(json_get(p, metric_info[m].name), NAN) == 0.1 + (double)m);
		snprintf(ci, sizeof ci, "%s_ci", metric_info[m].name);
		assert_true(json_number(json_at(json_get(p, ci), 0), NAN) == 0.05);
		assert_int_equal(json_type(json_at(json_get(p, ci), 1)), JSON_NULL);
		v = json_get(json_get(p, "versus"), metric_info[m].name);
		assert_true(json_number(json_get(v, "p"), NAN) == 0.0625);
		assert_true(json_number(json_get(v, "p_holm"), NAN) == 0.125);
	}
	assert_int_equal(json_size(json_get(p, "calibration")), 2);
	v = json_at(json_get(p, "calibration"), 0);
	assert_true(json_number(json_get(v, "confidence"), NAN) == 0.9);
	assert_true(json_number(json_get(v, "runs"), NAN) == 10 &&
		    json_number(json_get(v, "within"), NAN) == 9);
	assert_true(json_number(json_get(json_get(p, "importances"), "batch"), NAN) == 0.75);
	assert_int_equal(json_type(json_get(json_at(json_get(root, "policies"), 0), "versus")), JSON_ABSENT);
	json_free(root);
	strbuf_release(&out);
	bed_release(&b);
}

TEST(test_times_of_decisions_are_apart)
{
	struct strbuf out = { 0 }, numbers = { 0 };
	struct json_writer w;
	struct json *root;
	const struct json *v;
	struct bed b;

	bed_init(&b);
	json_begin(&w, &out, false);
	record_timing(&b.r, "2026-11-16T10:00:00Z", &w);
	assert_int_equal(json_parse("timing.json", strbuf_text(&out), out.len, &root, NULL), 0);
	v = json_get(json_get(root, "decision_s"), "fixed:128");
	assert_true(json_number(json_get(v, "mean"), NAN) == 2e-6 &&
		    json_number(json_get(v, "p99"), NAN) == 5e-6);
	assert_true(json_number(json_get(json_get(root, "machine"), "cores"), NAN) >= 1.0);
	assert_string_equal(json_string(json_get(root, "created"), ""), "2026-11-16T10:00:00Z");
	json_begin(&w, &numbers, false);
	record_policies(&b.r, &w);
	assert_null(strstr(strbuf_text(&numbers), "decision"));
	json_free(root);
	strbuf_release(&out);
	strbuf_release(&numbers);
}

/* ---- the document ---- */

TEST(test_every_member_and_column_is_documented)
{
	static const char header[] = HEADER;
	char *doc = read_text("docs", "REPLAY_OUTPUT.md"), name[80];
	const char *at = header;

	for (size_t m = 0; m < METRICS; m++) {
		snprintf(name, sizeof name, "\n| `%s` | %s", metric_info[m].name,
			 strcmp(metric_info[m].unit, "s\xc2\xb2") ? metric_info[m].unit : "s^2");
		if (!strstr(doc, name))
			fail_msg("no row of the metric %s", name + 3);
	}
	while (*at) {
		size_t len = strcspn(at, ",\n");

		snprintf(name, sizeof name, "`%.*s`", (int)len, at);
		if (strncmp(at, "trace_", strlen("trace_")) && !strstr(doc, name))
			fail_msg("no column %s", name);
		at += len + 1;
	}
	free(doc);
}

/* ---- the folder ---- */

TEST(test_a_folder_is_made_and_written_over)
{
	const char *dir = folder("new");
	const char table[] = "network,cpus,time_s\n\"a,b\",2,3.5\n";
	char *jobs, *compare, *again;
	struct strbuf want = { 0 };
	struct bed b;

	bed_init(&b);
	bed_open_world(&b);
	assert_int_equal(csv_parse("t", table, strlen(table), &b.r.training, NULL), 0);
	assert_int_equal(record_check(dir, NULL), 0);
	assert_false(is_there(dir, "")); /* asking makes nothing */
	assert_int_equal(record_write(dir, &b.r, &b.about, NULL), 0);
	jobs = read_text(dir, "jobs.csv");
	compare = read_text(dir, "compare.json");
	again = read_text(dir, "training.csv");
	assert_string_equal(again, table);
	free(again);
	assert_int_equal(record_bed_jobs(&b.r, &want, NULL), 0);
	assert_string_equal(jobs, strbuf_text(&want));
	strbuf_reset(&want);
	record_text(&b.r, &b.about, &want);
	assert_string_equal(compare, strbuf_text(&want));
	assert_true(is_there(dir, "timing.json") && !is_there(dir, "jobs.csv.part"));

	/* a second one, of which less was kept */
	csv_free(b.r.training);
	b.r.training = NULL;
	b.run[0].outcome = NULL;
	assert_int_equal(record_write(dir, &b.r, &b.about, NULL), 0);
	assert_false(is_there(dir, "jobs.csv") || is_there(dir, "training.csv"));
	again = read_text(dir, "compare.json");
	assert_string_equal(again, compare);
	free(jobs);
	free(compare);
	free(again);
	strbuf_release(&want);
	bed_release(&b);
}

TEST(test_somebody_s_folder_is_left_alone)
{
	const char *dir = folder("theirs");
	char file[4200];
	struct err err = { 0 };
	struct bed b;

	bed_init(&b);
	snprintf(file, sizeof file, "%s/thesis.tex", dir);
	assert_int_equal(mkdir(dir, 0777), 0);
	assert_int_equal(io_write_file(file, "x", 1, NULL), 0);
	assert_int_equal(record_write(dir, &b.r, &b.about, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "thesis.tex"));
	assert_false(is_there(dir, "jobs.csv"));
	assert_int_equal(record_check(file, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "is a file"));
	assert_int_equal(record_check(support_path(dir, "no/such"), &err), -ERR_NOTFOUND);
	assert_int_equal(record_check("", &err), -ERR_ARG);
	/* what an interrupted comparison leaves is no reason to refuse */
	assert_int_equal(rename(file, support_path(dir, "jobs.csv.part")), 0);
	assert_int_equal(record_check(dir, NULL), 0);
}

TEST(test_a_failing_disk_leaves_no_comparison_that_looks_whole)
{
	const char *dir = folder("failing");
	unsigned long k = 0;
	struct bed b;

	bed_init(&b);
	bed_open_world(&b);
	for (bool failed = true; failed;) {
		struct err err = { 0 };
		int status;

		unlink(support_path(dir, "compare.json"));
		io_fail_at(++k, ENOSPC);
		status = record_write(dir, &b.r, &b.about, &err);
		failed = io_failed();
		io_fail_at(0, 0);
		if (status) {
			assert_true(failed && *err.text);
			/* only the very last sync may fail when all is in place */
			assert_true(!is_there(dir, "compare.json") || strstr(err.text, "is in place"));
		} else {
			assert_true(is_there(dir, "compare.json")); /* an unknown processor is no failure */
		}
	}
	assert_true(k > 8);
	bed_release(&b);
}

TEST(test_a_folder_without_memory_is_an_error)
{
	const char *dir = folder("poor");
	unsigned long k = 0;
	struct bed b;

	bed_init(&b);
	bed_open_world(&b);
	for (bool failed = true; failed;) {
		int status;

		mem_fail_at(++k, false);
		status = record_write(dir, &b.r, &b.about, NULL);
		failed = mem_failed();
		mem_fail_at(0, false);
		assert_true(status == 0 || (status == -ERR_NOMEM && failed));
	}
	assert_true(k > 8);
	bed_release(&b);
}
