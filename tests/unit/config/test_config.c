/* scheduler/config/config: every key is read, checked and written; mistakes name file and key. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/io.h"
#include "common/mem.h"
#include "common/places.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/config/config_text.h"

/* To be freed. */
static char *written(const struct config *c)
{
	struct strbuf out = { 0 };
	struct json_writer w;

	json_begin(&w, &out, false);
	config_to_json(c, &w);
	assert_false(out.failed);
	return out.text;
}

static const char everything[] =
	"{\"socket\":\"/tmp/p.sock\",\"socket_mode\":\"0606\",\"socket_group\":\"7\",\"state_dir\":\"/tmp/"
	"s\","
	"\"policy\":\"naive\",\"model\":\"/tmp/m\",\"confidence\":0.95,\"seed\":42,\"cores\":3.5,\"slots\":7,"
	"\"memory_mb\":1234.5,\"pin\":true,\"cgroup\":\"/sys/fs/cgroup/"
	"x\",\"max_queued\":11,\"max_finished\":0,"
	"\"max_connections\":13,\"max_connections_per_uid\":12,\"max_output_bytes\":65536,\"idle_timeout_s\":"
	"0,"
	"\"kill_grace_s\":1.5,\"advise_timeout_s\":60,\"drain_timeout_s\":9,\"drain_on_term\":true,\"max_"
	"output_mb\":3,"
	"\"keep\":{\"ended\":50,\"ended_per_uid\":20,\"ended_s\":90,\"rejected\":9,\"rejected_s\":60,"
	"\"observations\":70},"
	"\"durability\":\"interval\",\"durability_interval_s\":0.25,\"admins\":{\"users\":[\"root\",1001,"
	"\"77\"],"
	"\"groups\":[0,\"root\"]},\"log\":{\"level\":\"debug\",\"format\":\"json\"},"
	"\"notify\":[\"/bin/mail\",\"{event}\",\"job {job} of {tenant}\"],\"on_late\":\"stop_best_effort\","
	"\"tenants\":{\"vision\":{\"users\":[\"root\",1001],\"groups\":[7],\"weight\":2.5,\"max_queued\":100,"
	"\"max_cpus\":3,\"on_late\":\"nothing\"},\"audio\":{\"users\":[\"1002\"]},\"rest\":{}},"
	"\"default_tenant\":\"rest\",\"fair_window_s\":120,\"outside_load\":false,"
	"\"learning\":{\"table\":\"/tmp/runs.csv\",\"schema\":\"/tmp/s.json\",\"curves\":\"/tmp/c.csv\","
	"\"retrain_after\":0,\"min_observations\":12,\"test_jobs\":20,\"significance\":0.01,\"keep_"
	"versions\":3,"
	"\"adapt\":false,\"promise_after\":19,"
	"\"probe\":\"auto\"},"
	"\"types\":{\"b\":{\"about\":\"second\"},\"a\":{},\"a.c\":{}}}";

TEST(test_every_key_reaches_its_place)
{
	struct config *c = must(everything);

	assert_string_equal(c->socket, "/tmp/p.sock");
	assert_int_equal(c->socket_mode, 0606);
	assert_string_equal(c->socket_group, "7");
	assert_string_equal(c->state_dir, "/tmp/s");
	assert_string_equal(c->policy, "naive");
	assert_string_equal(c->model, "/tmp/m");
	assert_true(c->confidence == 0.95 && c->seed == 42 && c->cores == 3.5 && c->slots == 7);
	assert_true(c->memory_mb == 1234.5 && c->pin);
	assert_string_equal(c->cgroup, "/sys/fs/cgroup/x");
	assert_true(c->max_queued == 11 && c->max_finished == 0 && c->max_connections == 13);
	assert_true(c->max_connections_per_uid == 12 && c->max_output_bytes == 65536);
	assert_true(c->idle_timeout_s == 0.0 && c->kill_grace_s == 1.5 && c->advise_timeout_s == 60.0);
	assert_true(c->drain_timeout_s == 9.0 && c->drain_on_term && c->max_output_mb == 3.0);
	assert_true(c->durability == DURABLE_INTERVAL && c->durability_interval_s == 0.25);
	assert_true(c->keep.ended == 50 && c->keep.ended_per_uid == 20 && c->keep.ended_s == 90.0);
	assert_true(c->keep.rejected == 9 && c->keep.rejected_per_uid == 5 && c->keep.rejected_s == 60.0);
	assert_int_equal(c->keep.observations, 70);
	assert_int_equal(c->admin_users.n, 3);
	assert_true(c->admin_users.id[0] == 0 && c->admin_users.id[1] == 1001 && c->admin_users.id[2] == 77);
	assert_int_equal(c->admin_groups.n, 2);
	assert_true(c->admin_groups.id[0] == 0 && c->admin_groups.id[1] == 0);
	assert_true(c->log_level == LOG_DEBUG && c->log_json);
	config_free(c);
}

TEST(test_every_key_of_tenants_and_learning_reaches_its_place)
{
	struct config *c = must(everything);
	const struct config_learning *l = &c->learning;

	assert_int_equal(c->n_tenants, 3);
	assert_string_equal(c->tenant[0].name, "vision"); /* the order of the file */
	assert_string_equal(c->tenant[1].name, "audio");
	assert_true(c->tenant[0].users.n == 2 && c->tenant[0].users.id[0] == 0 &&
		    c->tenant[0].users.id[1] == 1001);
	assert_true(c->tenant[0].groups.n == 1 && c->tenant[0].groups.id[0] == 7);
	assert_true(c->tenant[0].weight == 2.5 && c->tenant[0].max_queued == 100 &&
		    c->tenant[0].max_cpus == 3);
	assert_int_equal(c->tenant[0].on_late, ON_LATE_NOTHING);
	assert_true(c->tenant[1].weight == 1.0 && !c->tenant[1].max_queued && !c->tenant[1].max_cpus);
	assert_int_equal(c->tenant[1].on_late, ON_LATE_STOP_BEST_EFFORT); /* as the file says for all */
	assert_int_equal(c->on_late, ON_LATE_STOP_BEST_EFFORT);
	assert_true(c->default_tenant == 2 && c->fair_window_s == 120.0 && !c->other_load);
	assert_int_equal(c->n_notify, 3);
	assert_string_equal(c->notify[2], "job {job} of {tenant}");
	assert_null(c->notify[3]);
	assert_string_equal(l->table, "/tmp/runs.csv");
	assert_string_equal(l->schema, "/tmp/s.json");
	assert_string_equal(l->curves, "/tmp/c.csv");
	assert_true(l->retrain_after == 0 && l->min_observations == 12 && l->test_jobs == 20);
	assert_true(l->significance == 0.01 && l->keep_versions == 3);
	assert_true(!l->adapt && l->promise_after == 19);
	assert_int_equal(l->probe, PROBE_AUTO);
	config_free(c);
}

TEST(test_types_are_found_by_name)
{
	struct config *c = must(everything);

	assert_int_equal(c->n_types, 3);
	assert_string_equal(c->type[0].name, "a");
	assert_string_equal(c->type[1].name, "a.c");
	assert_string_equal(c->type[2].name, "b");
	assert_ptr_equal(config_type(c, "b"), &c->type[2]);
	assert_string_equal(config_type(c, "b")->about, "second");
	assert_ptr_equal(config_type(c, "a"), &c->type[0]);
	assert_null(config_type(c, "c"));
	assert_null(config_type(c, ""));
	assert_string_equal(config_nearest_type(c, "a,c"), "a.c");
	assert_null(config_nearest_type(c, "something"));
	config_free(c);
}

TEST(test_an_empty_file_is_the_defaults)
{
	struct config *c = must("{}"), *d = NULL;
	char *a, *b;

	assert_int_equal(config_default(&d, NULL), 0);
	a = written(c);
	b = written(d);
	assert_string_equal(a, b);
	free(a);
	free(b);
	assert_null(c->path);
	assert_null(c->model);
	assert_string_equal(c->policy, "postrider");
	assert_int_equal(c->socket_mode, geteuid() ? 0600 : 0660);
	assert_true(c->confidence == 0.9 && c->seed == 1 && !c->pin);
	assert_true(c->cores >= 1.0 && c->slots == (uint32_t)c->cores && c->memory_mb > 100.0);
	assert_true(c->max_queued == 20000 && c->max_finished == 10000 && c->max_connections == 10240);
	assert_true(c->max_connections_per_uid == 10000 && c->max_output_bytes == 1048576);
	assert_true(c->max_queued_per_uid == 10000 && c->max_unstarted_cpus_per_uid == 0);
	assert_int_equal(c->max_output_bytes_per_uid, 67108864);
	assert_true(c->idle_timeout_s == 600.0 && c->kill_grace_s == 30.0 && c->advise_timeout_s == 60.0);
	assert_true(c->drain_timeout_s == 0.0 && !c->drain_on_term && c->durability == DURABLE_ALWAYS);
	assert_true(c->durability_interval_s == 1.0 && c->log_level == LOG_INFO && !c->log_json);
	assert_int_equal(c->n_types, 0);
	assert_true(c->n_tenants == 0 && c->default_tenant == -1 && c->fair_window_s == 3600.0);
	assert_true(c->n_notify == 0 && c->on_late == ON_LATE_NOTIFY && c->other_load);
	assert_true(!c->learning.table && !c->learning.schema && !c->learning.curves && c->learning.adapt);
	assert_true(c->learning.retrain_after == 200 && c->learning.min_observations == 30);
	assert_true(c->learning.test_jobs == 50 && c->learning.significance == 0.05);
	assert_true(c->learning.keep_versions == 10);
	assert_true(c->learning.promise_after == 9);
	assert_int_equal(c->learning.probe, PROBE_OFF);
	config_free(c);
	config_free(d);
	config_free(NULL);
}

TEST(test_defaults_follow_what_is_said)
{
	struct config *c = must("{\"cores\":6.7,\"max_connections\":50}");

	assert_int_equal(c->slots, 6);
	assert_int_equal(c->max_connections_per_uid, 50);
	config_free(c);
	c = must("{\"cores\":0.5}");
	assert_int_equal(c->slots, 1);
	config_free(c);
}

TEST(test_what_is_written_reads_back_the_same)
{
	static const char *const text[] = { everything, "{}" };

	for (size_t i = 0; i < 2; i++) {
		struct config *c = must(text[i]), *d;
		char *a = written(c), *b;

		d = must(a);
		b = written(d);
		assert_string_equal(a, b);
		free(a);
		free(b);
		config_free(c);
		config_free(d);
	}
}

TEST(test_the_files_we_ship_read)
{
	struct config *c = NULL;
	struct err err = { 0 };
	char here[4096], expected[4200];

	if (config_read("configs/postrider.json", &c, &err))
		fail_msg("%s", err.text);
	assert_string_equal(c->socket_group, "postrider");
	assert_non_null(config_type(c, "digits"));
	config_free(c);
	if (config_read("configs/demo.json", &c, &err))
		fail_msg("%s", err.text);
	assert_non_null(getcwd(here, sizeof here));
	snprintf(expected, sizeof expected, "%s/configs/demo.json", here);
	assert_string_equal(c->path, expected);
	snprintf(expected, sizeof expected, "%s/build/run/postrider.sock", here);
	assert_string_equal(c->socket, expected);
	snprintf(expected, sizeof expected, "%s/build/postrider-train", here);
	assert_string_equal(config_type(c, "digits")->argv[0], expected);
	assert_string_equal(config_type(c, "digits")->work_dir, here);
	assert_true(c->cores == 2.0 && c->slots == 4);
	config_free(c);
}

TEST(test_mistakes_in_the_text_have_line_and_column)
{
	const char *path = support_path(support_temp_dir(), "bad.json");
	static const char text[] = "{\n  \"cores\": 2,\n  \"slots\": ,\n}\n";
	struct config *c = NULL;
	struct err err = { 0 };

	assert_int_equal(io_write_file(path, text, strlen(text), NULL), 0);
	assert_int_equal(config_read(path, &c, &err), -ERR_FORMAT);
	assert_null(c);
	assert_non_null(strstr(err.text, "bad.json:3:12: "));
	assert_int_equal(config_read(support_path(support_temp_dir(), "nowhere"), &c, &err), -ERR_NOTFOUND);
}

TEST(test_mistakes_in_the_meaning_have_a_place)
{
	refuses("{\"types\":{\"digits\":{\"params\":{\"epochs\":{\"kind\":\"integer\",\"min\":\"x\"}}}}}",
		"c.json: types.digits.params.epochs.min: ", "number");
	refuses("{\"types\":{\"x\":{\"argv\":[\"a\",\"b\",\"{c}\"]}}}",
		"c.json: types.x.argv[2]: ", "no {c}");
	refuses("{\"types\":{\"X\":{}}}", "c.json: types.X: ", "name of a type");
	refuses("{\"types\":[]}", "c.json: types: ", "object");
	refuses("{\"sokcet\":\"x\"}", "c.json: unknown key 'sokcet'", "did you mean 'socket'?");
	refuses("{\"admins\":{\"user\":[]}}", "c.json: admins: ", "did you mean 'users'?");
	refuses("{\"log\":{\"lvl\":1}}", "c.json: log: ", "did you mean 'level'?");
	refuses("[]", "c.json: ", "object");
	refuses("{\"policy\":\"postridr\"}", "c.json: policy: ", "'postrider'");
	refuses("{\"policy\":\"fixed\"}", "c.json: policy: ", "fixed");
	refuses("{\"log\":{\"level\":\"loud\"}}", "c.json: log.level: ", "error, warn, info, debug");
	refuses("{\"durability\":\"allways\"}", "c.json: durability: ", "did you mean 'always'?");
}

TEST(test_ranges_are_checked_on_both_sides)
{
	static const struct {
		const char *key, *low, *high, *below, *above;
	} range[] = {
		{ "confidence", "0.001", "0.9999", "0", "1" },
		{ "seed", "0", "9007199254740992", "-1", "9007199254740994" },
		{ "cores", "0.01", "65536", "0", "65537" },
		{ "slots", "1", "65536", "0", "65537" },
		{ "memory_mb", "1", "1e9", "0", "1e10" },
		{ "max_queued", "1", "1000000", "0", "1000001" },
		{ "max_finished", "0", "1000000", "-1", "1000001" },
		{ "max_connections", "1", "1000000", "0", "1000001" },
		{ "max_queued_per_uid", "1", "20000", "0", "20001" },
		{ "max_unstarted_cpus_per_uid", "0", "65536", "-1", "65537" },
		{ "max_output_bytes_per_uid", "65536", "1099511627776", "65535", "1099511627777" },
		{ "max_connections_per_uid", "1", "10240", "0", "10241" },
		{ "max_output_bytes", "65536", "1073741824", "65535", "1073741825" },
		{ "idle_timeout_s", "0", "1e7", "-1", "1e8" },
		{ "kill_grace_s", "0", "86400", "-0.1", "86401" },
		{ "advise_timeout_s", "1", "1e7", "0", "1e8" },
		{ "drain_timeout_s", "0", "1e7", "-1", "1e308" },
		{ "durability_interval_s", "0.001", "60", "0", "61" },
		{ "slots", "2", "3", "2.5", "\"2\"" },
		{ "fair_window_s", "1", "1e7", "0.5", "1e8" },
		{ "outside_load", "true", "false", "0", "\"yes\"" },
	};

	for (size_t i = 0; i < sizeof range / sizeof range[0]; i++) {
		char text[128], start[64];

		snprintf(start, sizeof start, "c.json: %s: ", range[i].key);
		snprintf(text, sizeof text, "{\"%s\":%s}", range[i].key, range[i].low);
		config_free(must(text));
		snprintf(text, sizeof text, "{\"%s\":%s}", range[i].key, range[i].high);
		config_free(must(text));
		snprintf(text, sizeof text, "{\"%s\":%s}", range[i].key, range[i].below);
		refuses(text, start, "must be");
		snprintf(text, sizeof text, "{\"%s\":%s}", range[i].key, range[i].above);
		refuses(text, start, "must be");
	}
}

TEST(test_modes_are_octal_text)
{
	static const char *const bad[] = { "660",       "\"066\"", "\"0888\"", "\"1660\"",
					   "\"00660\"", "\"\"",    "\"rw\"",   "\"0060\"" };
	struct config *c = must("{\"socket_mode\":\"660\"}");

	assert_int_equal(c->socket_mode, 0660);
	config_free(c);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		char text[64];

		snprintf(text, sizeof text, "{\"socket_mode\":%s}", bad[i]);
		refuses(text, "c.json: socket_mode: ", "");
	}
}

TEST(test_a_socket_must_fit_its_address)
{
	char path[PLACE_MAX_SOCKET + 2], text[256];

	memset(path, 'a', sizeof path);
	path[0] = '/';
	path[PLACE_MAX_SOCKET + 1] = '\0';
	snprintf(text, sizeof text, "{\"socket\":\"%s\"}", path);
	refuses(text, "c.json: socket: ", "at most 107");
	path[PLACE_MAX_SOCKET] = '\0';
	snprintf(text, sizeof text, "{\"socket\":\"%s\"}", path);
	config_free(must(text));
}

TEST(test_admins_must_exist)
{
	struct strbuf text = { 0 };

	refuses("{\"admins\":{\"users\":[\"no-such-user-here\"]}}",
		"c.json: admins.users[0]: ", "there is no user");
	refuses("{\"admins\":{\"groups\":[0,\"no-such-group\"]}}",
		"c.json: admins.groups[1]: ", "there is no group");
	refuses("{\"admins\":{\"users\":[-1]}}", "c.json: admins.users[0]: ", "number of a user");
	refuses("{\"admins\":{\"users\":[4294967295]}}", "c.json: admins.users[0]: ", "number of a user");
	refuses("{\"admins\":{\"users\":[\"4294967295\"]}}", "c.json: admins.users[0]: ", "there is no user");
	refuses("{\"admins\":{\"users\":[null]}}", "c.json: admins.users[0]: ", "string");
	strbuf_puts(&text, "{\"admins\":{\"users\":[0");
	for (int i = 0; i < CONFIG_MAX_ADMINS; i++)
		strbuf_puts(&text, ",0");
	strbuf_puts(&text, "]}}");
	refuses(text.text, "c.json: admins.users: ", "at most 64");
	strbuf_release(&text);
}

TEST(test_types_are_limited_in_number)
{
	struct strbuf text = { 0 };

	strbuf_puts(&text, "{\"types\":{\"t\":{}");
	for (int i = 0; i < CONFIG_MAX_TYPES; i++)
		strbuf_printf(&text, ",\"t%d\":{}", i);
	strbuf_puts(&text, "}}");
	refuses(text.text, "c.json: types: ", "at most 256");
	strbuf_release(&text);
}

TEST(test_a_long_name_of_a_file_leaves_room_for_the_reason)
{
	static const char text[] =
		"{\"types\":{\"digits\":{\"params\":{\"epochs\":{\"kind\":\"integer\",\"min\":0.5}}}}}";
	struct strbuf name = { 0 };
	struct config *c = NULL;
	struct json *v = NULL;
	struct err err = { 0 };

	for (int i = 0; i < 3000; i++)
		strbuf_puts(&name, "x");
	assert_int_equal(json_parse("c", text, strlen(text), &v, NULL), 0);
	assert_int_equal(config_from_json(name.text, v, &c, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, ": types.digits.params.epochs.min: must be a whole number"));
	json_free(v);
	strbuf_release(&name);
}

TEST(test_a_reload_keeps_what_needs_a_restart)
{
	static const struct {
		const char *text, *key;
	} change[] = {
		{ "{\"socket\":\"/tmp/q\"}", "socket " },
		{ "{\"socket_mode\":\"0640\"}", "socket_mode " },
		{ "{\"socket_group\":\"7\"}", "socket_group " },
		{ "{\"state_dir\":\"/tmp/q\"}", "state_dir " },
		{ "{\"durability\":\"none\"}", "durability " },
		{ "{\"durability_interval_s\":2}", "durability_interval_s " },
	};
	struct config
		*old = must("{}"),
		*fresh = must(
			"{\"slots\":9,\"cores\":9,\"model\":\"/x\",\"max_queued\":5,\"types\":{\"a\":{}},"
			"\"policy\":\"naive\",\"kill_grace_s\":1,\"log\":{\"level\":\"warn\"}}");

	assert_int_equal(config_reloadable(old, fresh, NULL), 0);
	config_free(fresh);
	for (size_t i = 0; i < sizeof change / sizeof change[0]; i++) {
		struct err err = { 0 };

		fresh = must(change[i].text);
		assert_int_equal(config_reloadable(old, fresh, &err), -ERR_ARG);
		if (strncmp(err.text, change[i].key, strlen(change[i].key)))
			fail_msg("'%s' does not name %s", err.text, change[i].key);
		config_free(fresh);
	}
	config_free(old);
}

TEST(test_the_group_of_the_socket_is_found)
{
	struct config *c = must("{}");
	gid_t group = 5;
	bool set = true;

	assert_int_equal(config_socket_group(c, &group, &set, NULL), 0);
	assert_false(set);
	config_free(c);
	c = must("{\"socket_group\":\"root\"}");
	assert_int_equal(config_socket_group(c, &group, &set, NULL), 0);
	assert_true(set && group == 0);
	config_free(c);
	c = must("{\"socket_group\":\"no-such-group\"}");
	assert_int_equal(config_socket_group(c, &group, &set, NULL), -ERR_NOTFOUND);
	config_free(c);
}

TEST(test_running_out_of_memory_is_told)
{
	const char *path = support_path(support_temp_dir(), "all.json");
	bool failed = true;

	assert_int_equal(io_write_file(path, everything, strlen(everything), NULL), 0);
	for (int forever = 0; forever <= 1; forever++) {
		failed = true;
		for (unsigned long k = 1; failed; k++) {
			struct config *c = NULL;
			struct err err = { 0 };
			int rc;

			mem_fail_at(k, forever);
			rc = config_read(path, &c, &err);
			failed = mem_failed();
			mem_fail_at(0, false);
			assert_int_equal(rc, failed ? -ERR_NOMEM : 0);
			assert_true(failed == (c == NULL));
			if (failed)
				assert_true(err.text[0]);
			config_free(c);
		}
	}
	failed = true;
	for (unsigned long k = 1; failed; k++) {
		struct config *c = NULL;

		mem_fail_at(k, false);
		config_default(&c, NULL); /* may still succeed: without /proc/meminfo memory is unlimited */
		failed = mem_failed();
		mem_fail_at(0, false);
		config_free(c);
	}
}

TEST(test_failing_to_read_is_told)
{
	const char *path = support_path(support_temp_dir(), "all.json");
	struct config *c = NULL;
	struct err err = { 0 };

	assert_int_equal(io_write_file(path, "{}", 2, NULL), 0);
	io_fail_at(1, 5 /* EIO */);
	assert_int_equal(config_read(path, &c, &err), -ERR_IO);
	io_fail_at(0, 0);
	assert_null(c);
}
