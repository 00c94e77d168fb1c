/* The machine of a simulation: text, files, and changes. */
#include <math.h>
#include <string.h>

#include "common/io.h"
#include "sim/world/cluster.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

static struct cluster parsed(const char *text)
{
	struct cluster c;
	struct err err = { 0 };

	if (cluster_parse(text, &c, &err))
		fail_msg("%s: %s", text, err.text);
	return c;
}

static void refused(const char *text, const char *why)
{
	struct cluster c;
	struct err err = { 0 };

	if (cluster_parse(text, &c, &err) != -ERR_ARG || !strstr(err.text, why))
		fail_msg("'%s': '%s' does not say '%s'", text, err.text, why);
}

static const char *file_with(const char *text)
{
	const char *path = support_path(support_temp_dir(), "cluster.json");

	assert_int_equal(io_write_file(path, text, strlen(text), NULL), 0);
	return path;
}

static void refused_file(const char *text, const char *why)
{
	struct cluster c;
	struct err err = { 0 };

	if (cluster_parse(file_with(text), &c, &err) != -ERR_FORMAT || !strstr(err.text, why) ||
	    !strstr(err.text, "cluster.json"))
		fail_msg("'%s': '%s' does not say '%s'", text, err.text, why);
}

TEST(test_text_gives_a_cluster_with_defaults)
{
	struct cluster c = parsed("cores=16,slots=32,nodes=4,memory_mb=64000.5");

	assert_true(c.cores == 16.0 && c.slots == 32 && c.nodes == 4 && c.memory_mb == 64000.5);
	c = parsed("cores=2.75");
	assert_true(c.cores == 2.75 && c.slots == 2 && c.nodes == 1 && c.memory_mb == INFINITY);
	assert_int_equal(parsed("cores=0.5").slots, 1);
}

TEST(test_bad_text_is_refused_by_key_and_reason)
{
	refused("slots=3", "no 'cores'");
	refused("core=3", "did you mean 'cores'?");
	refused("cores=3,,slots=2", "not key=number");
	refused("cores=3,colour=2", "there are cores");
	refused("cores=three", "'three' is not a number");
	refused("cores=1,cores=2", "twice");
	refused("cores=0", "cores = 0");
	refused("cores=-1", "cores = -1");
	refused("cores=1000001", "at most 1000000");
	refused("cores=1,slots=1.5", "whole");
	refused("cores=1,slots=10000001", "at most");
	refused("cores=1,nodes=65537", "at most 65536");
	refused("cores=1,memory_mb=0", "memory_mb");
	assert_int_equal(parsed("cores=1000000,slots=10000000,nodes=65536").slots, CLUSTER_MAX_SLOTS);
}

TEST(test_a_file_says_the_same)
{
	struct cluster c = parsed("configs/clusters/two-cores.json");
	struct err err = { 0 };

	assert_true(c.cores == 2.0 && c.slots == 4 && c.nodes == 1);
	refused_file("{\"cores\": 2, \"slot\": 4}", "slots");
	refused_file("{\"slots\": 4}", "no 'cores'");
	refused_file("{\"cores\": \"2\"}", "must be a number");
	refused_file("{\"cores\": 2, \"nodes\": 0}", "nodes = 0");
	refused_file("[2]", "an object");
	refused_file("{", "1:2");
	assert_int_equal(cluster_parse("no/such/file.json", &c, &err), -ERR_NOTFOUND);
}

TEST(test_json_reads_back_as_the_same)
{
	struct cluster c = parsed("cores=2.5,slots=7,nodes=2,memory_mb=100"), back = { 0 };
	struct strbuf text = { 0 };
	struct json_writer w;
	struct json *v = NULL;

	for (int i = 0; i < 2; i++) {
		strbuf_reset(&text);
		json_begin(&w, &text, false);
		cluster_to_json(&c, &w);
		assert_int_equal(json_parse("c", text.text, text.len, &v, NULL), 0);
		assert_int_equal(cluster_from_json("c", v, &back, NULL), 0);
		assert_true(back.cores == c.cores && back.slots == c.slots && back.nodes == c.nodes &&
			    back.memory_mb == c.memory_mb);
		json_free(v);
		c.memory_mb = INFINITY;
	}
	strbuf_release(&text);
}

TEST(test_a_job_may_stay_on_one_node)
{
	struct cluster c = parsed("cores=20,slots=40,nodes=8,memory_mb=800,place=promise"), part, back;
	struct strbuf text = { 0 };
	struct json_writer w;
	struct json *v = NULL;

	part = cluster_shared(&c);
	assert_true(part.cores == 2.5 && part.slots == 5 && part.memory_mb == 100.0 && part.nodes == 1);
	assert_int_equal(cluster_parts(&c), 8);
	json_begin(&w, &text, false);
	cluster_to_json(&c, &w);
	assert_int_equal(json_parse("c", text.text, text.len, &v, NULL), 0);
	assert_int_equal(cluster_from_json("c", v, &back, NULL), 0);
	assert_int_equal(back.place, PLACE_PROMISE);
	json_free(v);
	strbuf_release(&text);
	/* other nodes are as many more of the same size */
	assert_int_equal(cluster_set(&c, "nodes", 24.0, NULL), 0);
	part = cluster_shared(&c);
	assert_true(c.cores == 60.0 && part.cores == 2.5 && part.slots == 5 && part.memory_mb == 100.0);
	/* slots that are not given fit the nodes */
	c = parsed("cores=10,nodes=4,place=least-loaded");
	assert_int_equal(c.slots, 8);
	/* spread over all nodes, it is one machine */
	c = parsed("cores=20,nodes=8,place=spread");
	part = cluster_shared(&c);
	assert_true(cluster_parts(&c) == 1 && part.cores == 20.0 && part.nodes == 8);
	/* gpus are counted where there is a number of them, 0 included */
	c = parsed("cores=20,nodes=4,gpus=8,place=promise");
	part = cluster_shared(&c);
	assert_true(c.counts_gpus && c.gpus == 8 && part.counts_gpus && part.gpus == 2);
	assert_true(parsed("cores=2,gpus=0").counts_gpus && !parsed("cores=2").counts_gpus);
	refused("cores=20,nodes=4,gpus=7,place=promise", "7 gpus on 4 nodes");
	refused("cores=20,gpus=1.5", "whole");
	refused("cores=20,slots=41,nodes=8,place=promise", "41 slots on 8 nodes");
	refused("cores=20,place=promis", "did you mean");
	refused("cores=20,place=promise,place=spread", "twice");
	refused_file("{\"cores\": 2, \"place\": 3}", "must be a text");
	refused_file("{\"cores\": 2, \"place\": \"x\"}", "there are spread");
}

TEST(test_slots_follow_the_cores_unless_set)
{
	struct cluster c = parsed("cores=2,slots=4");
	struct err err = { 0 };

	assert_int_equal(cluster_set(&c, "cores", 16.0, NULL), 0);
	assert_true(c.cores == 16.0 && c.slots == 32);
	assert_int_equal(cluster_set(&c, "cores", 0.1, NULL), 0);
	assert_int_equal(c.slots, 1);
	c = parsed("cores=3,slots=7");
	assert_int_equal(cluster_set(&c, "cores", 9.0, NULL), 0);
	assert_int_equal(c.slots, 21);
	assert_int_equal(cluster_set(&c, "slots", 10.0, NULL), 0);
	assert_int_equal(cluster_set(&c, "cores", 90.0, NULL), 0);
	assert_int_equal(c.slots, 10);
	assert_int_equal(cluster_set(&c, "nodes", 3.0, NULL), 0);
	assert_int_equal(cluster_set(&c, "memory_mb", 1e4, NULL), 0);
	assert_true(c.nodes == 3 && c.memory_mb == 1e4);
	assert_int_equal(cluster_set(&c, "memory", 1.0, &err), -ERR_ARG);
	assert_int_equal(cluster_set(&c, "cores", NAN, &err), -ERR_ARG);
	assert_int_equal(cluster_set(&c, "slots", 2.5, &err), -ERR_ARG);
	assert_true(c.cores == 90.0 && c.slots == 10);
}
