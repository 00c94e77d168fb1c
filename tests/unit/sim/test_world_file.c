/* World files: what is read, what is refused, and the built-in one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/mem.h"
#include "common/rng.h"
#include "sim/world/file.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

/* A small whole file; %s goes in before the last brace. */
#define SMALL                                                                                                \
	"{\"cluster\":{\"cores\":2},\"defaults\":{\"samples\":1000,\"epochs\":2},\"batches\":[10,100],"      \
	"\"costs\":{\"fixed_s\":0.5,\"record_s\":0.25}"

static int read_text(const char *text, struct world_file **out, struct err *err)
{
	return world_file_parse("w.json", text, strlen(text), out, err);
}

static struct world_file *must(const char *text)
{
	struct world_file *f = NULL;
	struct err err = { 0 };

	if (read_text(text, &f, &err))
		fail_msg("%s", err.text);
	return f;
}

static void refuses(const char *text, const char *say)
{
	struct world_file *f = NULL;
	struct err err = { 0 };
	int rc = read_text(text, &f, &err);

	if (rc != -ERR_FORMAT || f)
		fail_msg("taken, or code %d: %s", rc, text);
	if (strncmp(err.text, "w.json", 6) || !strstr(err.text, say))
		fail_msg("'%s' does not say '%s'", err.text, say);
}

TEST(test_the_built_in_world_is_the_file_two_cores)
{
	struct world_file *f = NULL;
	struct err err = { 0 };
	char *text = NULL;
	size_t len = 0;

	if (io_read_file("configs/worlds/two-cores.json", WORLD_FILE_MAX_BYTES, &text, &len, &err))
		fail_msg("%s", err.text);
	assert_string_equal(text, world_file_builtin);
	free(text);
	if (world_file_read(NULL, &f, &err))
		fail_msg("%s", err.text);
	assert_string_equal(f->name, "built-in world");
	assert_true(f->cluster.cores == 2.0 && f->cluster.nodes == 1 && f->batch.n == 4 && !f->barrier);
	assert_int_equal(f->category[0].n_values, 2);
	world_file_free(f);
}

TEST(test_the_file_of_the_papers_cluster_is_good)
{
	struct world_file *f = NULL;
	struct err err = { 0 };

	if (world_file_read("configs/worlds/bigdl.json", &f, &err))
		fail_msg("%s", err.text);
	assert_true(f->cluster.cores == 48.0 && f->cluster.nodes == 3);
	assert_true(f->samples == 60000.0 && f->epochs == 10.0);
	world_file_free(f);
}

TEST(test_what_is_not_given_has_a_default)
{
	struct world_file *f = must(SMALL "}");
	struct world_work w;

	assert_int_equal(f->n_categories, 0);
	assert_true(isnan(f->accuracy.best) && f->exponent == 1.0 && f->disk_s == 0.0);
	assert_true(f->disk_law == WORLD_DISK_EXPONENTIAL && !f->barrier);
	assert_int_equal(f->cpus.n, 3);
	assert_int_equal(f->njobs.n, 3);
	assert_true(f->epochs_levels.n == 1 && f->epochs_levels.v[0] == 2.0);
	assert_true(f->samples_levels.n == 1 && f->samples_levels.v[0] == 1000.0);
	w = world_file_work(f, NULL, 2.0, 0.0, 100.0, 1001.0, 2.0);
	assert_true(w.iterations == 22.0 && w.compute_s == 0.5 + 0.25 * 50.0 && w.disk_s == 0.0);
	w = world_file_work(f, NULL, 16.0, 0.0, 4.0, 1.0, 1.0); /* more cpus than records */
	assert_true(w.iterations == 1.0 && w.compute_s == 0.5 + 0.25);
	world_file_free(f);
}

#define TWO ",\"factors\":{\"network\":{\"a\":{},\"b\":{}}}"

TEST(test_pairs_are_factors_by_kind)
{
	struct world_file *f = must(SMALL TWO ",\"pairs\":{\"network\":{\"a\":{\"b\":1.37}}}}");

	assert_true(fabs(f->log_pair[1] - log(1.37)) < 1e-12);
	assert_true(f->log_pair[0] == 0.0 && f->log_pair[2] == 0.0 && f->log_pair[3] == 0.0);
	world_file_free(f);
	f = must(SMALL TWO "}");
	assert_null(f->log_pair);
	world_file_free(f);
}

TEST(test_wrong_pairs_are_refused)
{
	refuses(SMALL TWO ",\"pairs\":{\"network\":{\"a\":{\"c\":2}}}}", "unknown network 'c'");
	refuses(SMALL TWO ",\"pairs\":{\"network\":{\"c\":{}}}}", "unknown network 'c'");
	refuses(SMALL TWO ",\"pairs\":{\"network\":{\"a\":{\"a\":2}}}}",
		"pairs.network.a.a: jobs of one kind");
	refuses(SMALL TWO ",\"pairs\":{\"network\":{\"a\":{\"b\":0}}}}", "pairs.network.a.b: is 0;");
	refuses(SMALL TWO ",\"pairs\":{\"net\":{}}}", "pairs: unknown key 'net'");
	refuses(SMALL TWO ",\"pairs\":{}}", "pairs: need an object of one column");
	refuses(SMALL ",\"pairs\":{\"network\":{}}}", "pairs: unknown key 'network'");
}

TEST(test_factors_multiply_the_costs)
{
	static const char text[] =
		"{\"cluster\":{\"cores\":2},\"defaults\":{\"samples\":1000,\"epochs\":2},\"batches\":[10],"
		"\"costs\":{\"fixed_s\":1,\"record_s\":0.1,\"exponent\":0.5,\"disk_s\":2,\"disk_record_s\":0."
		"4},"
		"\"factors\":{\"network\":{\"a\":{\"record\":3},\"b\":{\"fixed\":0.5,\"disk\":4}},"
		"\"data\":{\"x\":{\"record\":10},\"y\":{}}},"
		"\"levels\":{\"cpus\":[4],\"network\":[\"b\"],\"epochs\":[1,2]},"
		"\"service\":{\"disk\":{\"measured\":[1,2,3]}},\"barrier\":true,"
		"\"accuracy\":{\"b\":{\"best\":0.9,\"half_iterations\":10}}}";
	struct world_file *f = must(text);
	const struct world_value *value[] = { &f->category[0].value[0], &f->category[1].value[0] };
	struct world_work w = world_file_work(f, value, 4.0, 0.0, 10.0, 1000.0, 1.0);

	assert_true(fabs(w.compute_s - (1.0 + 30.0 * 0.1 * 10.0 / 2.0)) < 1e-12);
	assert_true(fabs(w.disk_s - (2.0 + 0.4 * 10.0 / 4.0)) < 1e-12);
	value[0] = &f->category[0].value[1];
	value[1] = &f->category[1].value[1];
	w = world_file_work(f, value, 4.0, 0.0, 10.0, 1000.0, 1.0);
	assert_true(fabs(w.compute_s - (0.5 + 0.1 * 10.0 / 2.0)) < 1e-12);
	assert_true(fabs(w.disk_s - 12.0) < 1e-12);
	assert_true(!f->category[0].value[0].in_campaign && f->category[0].value[1].in_campaign);
	assert_true(f->category[1].value[0].in_campaign && f->category[1].value[1].in_campaign);
	assert_true(isnan(f->category[0].value[0].accuracy.best));
	assert_true(f->category[0].value[1].accuracy.best == 0.9 &&
		    f->category[0].value[1].accuracy.noise == 0.0);
	assert_int_equal(f->epochs_levels.n, 2);
	assert_true(f->barrier && f->disk_law == WORLD_DISK_MEASURED && f->measured.n == 3);
	assert_true(f->measured.v[0] == 0.5 && f->measured.v[2] == 1.5); /* their shape, with a mean of 1 */
	world_file_free(f);
}

TEST(test_without_categories_there_is_one_accuracy)
{
	struct world_file *f =
		must(SMALL ",\"accuracy\":{\"best\":0.8,\"half_iterations\":5,\"noise\":0.1}}");

	assert_true(f->accuracy.best == 0.8 && f->accuracy.half_iterations == 5.0 &&
		    f->accuracy.noise == 0.1);
	world_file_free(f);
}

TEST(test_unknown_keys_name_the_nearest)
{
	refuses(SMALL ",\"barier\":true}", "w.json: unknown key 'barier'; did you mean 'barrier'?");
	refuses(SMALL ",\"levels\":{\"cpu\":[1]}}", "levels: unknown key 'cpu'; did you mean 'cpus'?");
	refuses(SMALL ",\"service\":{\"disc\":\"constant\"}}",
		"service: unknown key 'disc'; did you mean 'disk'?");
	refuses(SMALL ",\"accuracy\":{\"best\":1,\"half_iteration\":1}}", "did you mean 'half_iterations'?");
	refuses(SMALL ",\"factors\":{\"network\":{\"a\":{\"records\":1}}}}",
		"factors.network.a: unknown key 'records'; did you mean 'record'?");
	refuses(SMALL ",\"factors\":{\"network\":{\"lenet5\":{}}},\"accuracy\":{\"lenet\":{\"best\":1,"
		      "\"half_iterations\":1}}}",
		"accuracy: unknown network 'lenet'; did you mean 'lenet5'?");
	refuses(SMALL ",\"factors\":{\"network\":{\"lenet5\":{}}},\"levels\":{\"network\":[\"resnet-152\"]}}",
		"levels.network: unknown network 'resnet-152'");
	refuses("{\"cluster\":{\"core\":2}}", "cluster: unknown key 'core'");
}

TEST(test_what_must_be_there_is_asked_for)
{
	refuses("[]", "must be an object");
	refuses("{}", "w.json: cluster: is not given");
	refuses("{\"cluster\":{\"cores\":2}}", "w.json: defaults: is not given");
	refuses("{\"cluster\":{\"cores\":2},\"defaults\":{\"samples\":1}}", "defaults.epochs: is not given");
	refuses("{\"cluster\":{\"cores\":2},\"defaults\":{\"samples\":1,\"epochs\":1}}",
		"batches: is not given");
	refuses("{\"cluster\":{\"cores\":2},\"defaults\":{\"samples\":1,\"epochs\":1},\"batches\":[1]}",
		"costs: is not given");
	refuses("{\"cluster\":{\"cores\":2},\"defaults\":{\"samples\":1,\"epochs\":1},\"batches\":[1],"
		"\"costs\":{\"fixed_s\":1}}",
		"costs.record_s: is not given");
	refuses(SMALL ",\"accuracy\":{\"best\":1}}", "accuracy.half_iterations: is not given");
	refuses("{\"cluster\":", "w.json:1:");
}

/* The small file with `from` replaced by `to` in it. */
static void refuses_with(const char *from, const char *to, const char *say)
{
	const char *small = SMALL "}", *at = strstr(small, from);
	char text[1024];

	assert_non_null(at);
	snprintf(text, sizeof text, "%.*s%s%s", (int)(at - small), small, to, at + strlen(from));
	refuses(text, say);
}

TEST(test_numbers_have_their_range)
{
	refuses_with("\"cores\":2", "\"cores\":0", "cluster: cores");
	refuses_with("\"samples\":1000", "\"samples\":0",
		     "defaults.samples: is 0; it must be a whole number from 1 to 1000000000");
	refuses_with("\"samples\":1000", "\"samples\":1.5",
		     "defaults.samples: is 1.5; it must be a whole number");
	refuses_with("\"samples\":1000", "\"samples\":\"1\"", "defaults.samples: must be a whole number");
	refuses_with("\"epochs\":2", "\"epochs\":1000001", "defaults.epochs: is 1000001;");
	refuses_with("[10,100]", "[]", "batches: has 0 entries; it needs 1 to 64");
	refuses_with("[10,100]", "[10,10]", "batches: 10 behind 10: need an ascending list");
	refuses_with("[10,100]", "[0]", "batches[0]: is 0; it must be a whole number from 1");
	refuses_with("[10,100]", "[1,\"2\"]", "batches[1]: must be a whole number");
	refuses_with("[10,100]", "7", "batches: must be a list");
	refuses_with("\"fixed_s\":0.5", "\"fixed_s\":-1", "costs.fixed_s: is -1; it must be a number from 0");
	refuses_with("\"fixed_s\":0.5,\"record_s\":0.25", "\"fixed_s\":0,\"record_s\":0",
		     "computing takes time");
	refuses_with("\"fixed_s\":0.5", "\"fixed_s\":1,\"exponent\":1.1",
		     "costs.exponent: is 1.1; it must be a number from 0 to 1");
	refuses_with("\"fixed_s\":0.5", "\"fixed_s\":1,\"disk_s\":1e7", "costs.disk_s: is 10000000;");
	refuses(SMALL ",\"levels\":{\"cpus\":[0]}}", "levels.cpus[0]: is 0;");
	refuses(SMALL ",\"levels\":{\"njobs\":[1,1025]}}", "levels.njobs[1]: is 1025;");
	refuses(SMALL ",\"levels\":7}", "levels: must be an object");
	refuses(SMALL ",\"service\":{\"disk\":\"gamma\"}}", "service.disk: need \"exponential\"");
	refuses(SMALL ",\"service\":{\"disk\":{\"measured\":[0,0]}}}",
		"service.disk.measured: all of them are 0");
	refuses(SMALL ",\"service\":{\"disk\":{\"measured\":[-1]}}}", "service.disk.measured[0]: is -1;");
	refuses(SMALL ",\"barrier\":1}", "barrier: must be true or false");
	refuses(SMALL ",\"accuracy\":{\"best\":1.01,\"half_iterations\":1}}", "accuracy.best: is 1.01;");
	refuses(SMALL ",\"factors\":{\"cpus\":{\"a\":{}}}}", "factors: 'cpus' is a number, and no category");
	refuses(SMALL ",\"factors\":{\"network\":{}}}", "factors.network: need an object of 1 to 256 values");
	refuses(SMALL ",\"factors\":{\"network\":{\"a,b\":{}}}}", "factors.network: 'a,b': a name has");
	refuses(SMALL ",\"factors\":{\"network\":{\"a\":{\"record\":0}}}}",
		"factors.network.a.record: is 0;");
	refuses(SMALL ",\"factors\":{\"a\":{\"v\":{}}},\"levels\":{\"a\":[]}}",
		"levels.a: need a list of values");
	refuses(SMALL ",\"factors\":{\"a\":{\"v\":{}}},\"levels\":{\"a\":[1]}}",
		"levels.a: need a list of values");
}

TEST(test_long_names_do_not_burst_an_error)
{
	char name[200], text[2000], path[700];
	struct world_file *f = NULL;
	struct err err = { 0 };

	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	snprintf(text, sizeof text, SMALL ",\"factors\":{\"%s\":{\"a\":{}}}}", name);
	refuses(text, "a name has 1 to 128 bytes");
	name[128] = '\0';
	snprintf(text, sizeof text, SMALL ",\"factors\":{\"%s\":{\"%s\":{\"fixed\":-1}}}}", name, name);
	refuses(text, ".fixed: is -1");
	memset(path, 'p', sizeof path - 1);
	path[sizeof path - 1] = '\0';
	assert_int_equal(world_file_parse(path, text, strlen(text), &f, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "fixed"));
}

/* Whatever a file holds, it is read or refused: the built-in one with random bytes changed or cut off. */
TEST(test_damaged_files_do_no_harm)
{
	size_t len = strlen(world_file_builtin), taken = 0;
	struct rng rng = rng_stream(4, 4);
	char *text = malloc(len + 1);

	for (size_t i = 0; i < 20000; i++) {
		struct world_file *f = NULL;
		struct err err = { 0 };
		size_t n = i % 3 ? len : rng_below(&rng, (uint32_t)len);

		memcpy(text, world_file_builtin, len + 1);
		for (size_t k = 0; k < 1 + i % 3; k++) { /* every other time a digit becomes another */
			char *at = &text[rng_below(&rng, (uint32_t)len)];

			while (i % 2 && !(*at >= '0' && *at <= '9'))
				at = &text[rng_below(&rng, (uint32_t)len)];
			*at = "0123456789-.e,[]{}\":x"[rng_below(&rng, i % 2 ? 10 : 21)];
		}
		if (world_file_parse("w.json", text, n, &f, &err) == 0) {
			taken++;
			assert_true(f->batch.n >= 1 && f->samples >= 1.0 && f->fixed_s >= 0.0);
		} else {
			assert_non_null(strstr(err.text, "w.json"));
		}
		world_file_free(f);
	}
	free(text);
	printf("%zu of 20000 were taken\n", taken);
	assert_true(taken > 100 && taken < 15000);
}

TEST(test_every_failure_of_memory_is_said)
{
	bool failed = true;

	for (unsigned long k = 1; failed; k++) {
		struct world_file *f = NULL;
		struct err err = { 0 };
		int rc;

		mem_fail_at(k, false);
		rc = world_file_read(NULL, &f, &err);
		failed = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, failed ? -ERR_NOMEM : 0);
		world_file_free(f);
	}
	world_file_free(NULL);
}

TEST(test_what_reports_say_of_it_is_good_json)
{
	struct world_file *f = must(SMALL ",\"factors\":{\"network\":{\"a\":{\"record\":3}}}}");
	struct strbuf out = { 0 };
	struct json_writer w;
	struct json *v = NULL;
	struct err err = { 0 };

	json_begin(&w, &out, false);
	json_open(&w, '{');
	world_file_describe(f, &w);
	json_close(&w, '}');
	assert_int_equal(json_parse("d", out.text, out.len, &v, &err), 0);
	assert_string_equal(json_string(json_get(v, "file"), ""), "w.json");
	assert_true(json_number(json_get(json_get(v, "costs"), "record_s"), 0.0) == 0.25);
	assert_string_equal(json_string(json_get(v, "disk_law"), ""), "exponential");
	json_free(v);
	strbuf_release(&out);
	world_file_free(f);
}
