/* scheduler/config/config_check: a configuration against the model and the programs it names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/io.h"
#include "scheduler/config/config.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

/* What was told, a line each: "error TEXT" or "note TEXT". */
static void collect(void *owner, bool is_error, const char *text)
{
	strbuf_printf(owner, "%s %s\n", is_error ? "error" : "note", text);
}

/* A configuration that has nothing to complain of, but for what is added. */
static struct config *with(const char *more)
{
	const char *dir = support_temp_dir();
	struct strbuf text = { 0 };
	struct config *c = NULL;
	struct json *v = NULL;
	struct err err = { 0 };

	strbuf_printf(&text,
		      "{\"socket\":\"%s/sock\",\"slots\":2,\"policy\":\"naive\"%s,"
		      "\"state_dir\":\"%s/made/later\"}",
		      dir, more, dir);
	assert_int_equal(json_parse("c", text.text, text.len, &v, NULL), 0);
	if (config_from_json("c", v, &c, &err))
		fail_msg("%s", err.text);
	json_free(v);
	strbuf_release(&text);
	return c;
}

static void tells(const struct config *c, size_t n_errors, const char *expected)
{
	struct strbuf told = { 0 };
	size_t n = config_check(c, collect, &told);

	if (n != n_errors || !strstr(strbuf_text(&told), expected))
		fail_msg("%zu errors, not %zu, or no '%s': %s", n, n_errors, expected, strbuf_text(&told));
	if (!*expected)
		assert_string_equal(strbuf_text(&told), "");
	strbuf_release(&told);
}

#define TYPE(rest) ",\"types\":{\"t\":{\"argv\":[\"/bin/sh\",\"{batch}\"],\"batches\":[64]" rest "}}"

static void one(const char *more, size_t n_errors, const char *expected)
{
	struct config *c = with(more);

	tells(c, n_errors, expected);
	config_free(c);
}

TEST(test_nothing_is_told_where_nothing_is_wrong)
{
	one(TYPE(""), 0, "");
	one(TYPE(",\"cpus\":{\"max\":1},\"work_dir\":\"/\",\"env\":{\"A\":\"b\"}"), 0, "");
}

TEST(test_retired_keys_are_named)
{
	one(TYPE("") ",\"learning\":{\"explore\":\"any\"}", 0,
	    "note configuration: learning.explore: no longer has an effect");
	one(TYPE("") ",\"learning\":{\"hysteresis\":0.05}", 0,
	    "note configuration: learning.hysteresis: no longer has an effect");
	one(TYPE("") ",\"learning\":{\"probe_after_s\":300}", 0,
	    "note configuration: learning.probe_after_s: no longer has an effect");
}

TEST(test_programs_must_be_there)
{
	one(",\"types\":{\"t\":{\"argv\":[\"/nowhere/x\",\"{batch}\"],\"batches\":[64]}}", 1,
	    "error configuration: types.t.argv[0]: /nowhere/x is not a program");
	one(",\"types\":{\"t\":{\"argv\":[\"/etc/passwd\",\"{batch}\"],\"batches\":[64]}}", 1, "argv[0]");
	one(",\"types\":{\"t\":{\"argv\":[\"/\",\"{batch}\"],\"batches\":[64]}}", 1, "argv[0]");
	one(",\"types\":{\"t\":{\"argv\":[\"sh\",\"{batch}\"],\"batches\":[64]}}", 0, "");
	one(",\"types\":{\"t\":{\"argv\":[\"no-such-program\",\"{batch}\"],\"batches\":[64]}}", 1,
	    "in the PATH");
	one(",\"types\":{\"t\":{\"argv\":[\"sh\",\"{batch}\"],\"batches\":[64],\"env\":{\"PATH\":\"/"
	    "nowhere\"}}}",
	    1, "in the PATH");
	one(TYPE(",\"work_dir\":\"/nowhere\""), 1, "types.t.work_dir: /nowhere is not a folder");
}

TEST(test_tenants_notify_and_learning_are_looked_at)
{
	const char *bad = support_path(support_temp_dir(), "schema.json");
	char text[512];

	one(TYPE("") ",\"tenants\":{\"a\":{\"users\":[0],\"max_cpus\":2},\"b\":{}},\"default_tenant\":\"b\"",
	    0, "");
	one(TYPE("") ",\"tenants\":{\"a\":{}}", 0,
	    "note configuration: tenants.a: has neither users nor groups");
	one(TYPE("") ",\"tenants\":{\"a\":{\"users\":[0],\"max_cpus\":3}}", 0,
	    "max_cpus 3 are more than the 2 slots");
	one(TYPE("") ",\"notify\":[\"/bin/sh\",\"{job}\"]", 0, "");
	one(TYPE("") ",\"notify\":[\"sh\"]", 0, "");
	one(TYPE("") ",\"notify\":[\"/etc/passwd\"]", 1,
	    "error configuration: notify[0]: /etc/passwd is not a program");
	one(TYPE("") ",\"notify\":[\"no-such-program\"]", 1, "notify[0]: there is no program");
	one(TYPE("") ",\"learning\":{\"table\":\"/etc/passwd\",\"curves\":\"/etc/passwd\"}", 0, "");
	one(TYPE("") ",\"learning\":{\"table\":\"/nowhere/x\",\"curves\":\"/\"}", 2,
	    "learning.table: /nowhere/x: No such");
	one(TYPE("") ",\"learning\":{\"schema\":\"/nowhere/x\"}", 1, "learning.schema: ");
	assert_int_equal(io_write_file(bad, "{\"columns\":7}", 13, NULL), 0);
	snprintf(text, sizeof text, TYPE("") ",\"learning\":{\"schema\":\"%s\"}", bad);
	one(text, 1, "learning.schema: ");
}

TEST(test_the_state_folder_must_be_usable)
{
	const char *dir = support_temp_dir();
	struct config *c = with(TYPE(""));

	free(c->state_dir);
	c->state_dir = strdup(support_path(dir, "file"));
	assert_int_equal(io_write_file(c->state_dir, "", 0, NULL), 0);
	tells(c, 1, "state_dir: ");
	free(c->state_dir);
	c->state_dir = strdup(support_path(dir, "open"));
	assert_int_equal(mkdir(c->state_dir, 0700), 0);
	tells(c, 0, "");
	assert_int_equal(chmod(c->state_dir, 0770), 0);
	tells(c, 1, "others may write to");
	assert_int_equal(chmod(c->state_dir, 0755), 0);
	tells(c, 0, "");
	if (!geteuid()) { /* only root can give a folder away */
		assert_int_equal(chown(c->state_dir, 12345, 0), 0);
		tells(c, 1, "belongs to uid 12345");
	}
	free(c->state_dir);
	c->state_dir = malloc(CONFIG_MAX_STATE_DIR + 2);
	memset(c->state_dir, 'd', CONFIG_MAX_STATE_DIR + 1);
	c->state_dir[0] = '/';
	c->state_dir[CONFIG_MAX_STATE_DIR + 1] = '\0';
	tells(c, 1, "state_dir: a path of 3841 bytes, at most 3840 are possible");
	free(c->state_dir);
	c->state_dir = strdup("/etc/passwd/state");
	tells(c, 1, "state_dir: /etc/passwd/state: ");
	free(c->state_dir);
	c->state_dir = strdup("/proc/no/such/place");
	if (geteuid()) /* root may do anything, says the kernel before it is asked to do it */
		tells(c, 1, "can not be made");
	config_free(c);
}

TEST(test_the_socket_and_its_group_are_looked_at)
{
	struct config *c = with(TYPE(""));

	free(c->socket);
	c->socket = strdup("/nowhere/at/all/sock");
	tells(c, 0, "note configuration: socket: the folder /nowhere/at/all is not there yet");
	free(c->socket);
	c->socket = strdup("/etc/passwd/sock");
	tells(c, 1, "socket");
	config_free(c);
	one(",\"socket_mode\":\"0666\"" TYPE(""), 0, "socket_mode: everybody");
	one(",\"socket_group\":\"no-such-group\"" TYPE(""), 1, "socket_group: there is no group");
	one(",\"cgroup\":\"/nowhere\"" TYPE(""), 1, "cgroup: /nowhere is not a folder");
}

TEST(test_what_has_no_effect_is_noted)
{
	one("", 0, "types: there are none");
	one(",\"pin\":true,\"cores\":1" TYPE(""), 0, "pin: has no effect");
	one(TYPE(",\"cpus\":{\"min\":1,\"max\":3}"), 0, "types.t.cpus.max: 3 are more than the 2 slots");
	one(TYPE(",\"cpus\":{\"min\":3}"), 1, "no job of this type can ever start");
	one(TYPE(",\"cpus\":{\"max\":2}"), 0, "types.t.cpus: argv has no {cpus}");
	one(TYPE(",\"lr\":{\"rule\":\"linear\",\"base\":1,\"base_batch\":1}"), 0,
	    "types.t.lr: argv has no {lr}");
	one(TYPE(",\"params\":{\"x\":{\"kind\":\"word\"}}"), 0, "types.t.params.x: argv does not use it");
	one(",\"types\":{\"t\":{\"cpus\":{\"max\":2},\"batches\":[1],\"params\":{\"x\":{\"kind\":\"word\"}}}"
	    "}",
	    0, "");
}

TEST(test_the_model_must_be_there)
{
	const char *path = support_path(support_temp_dir(), "damaged.model");
	char more[512];

	one(",\"types\":{\"t\":{}}", 1, "types.t.batches: are needed");
	one(",\"model\":\"/nowhere.model\"" TYPE(""), 1, "model: ");
	assert_int_equal(io_write_file(path, "no model", 8, NULL), 0);
	snprintf(more, sizeof more, ",\"model\":\"%s\"" TYPE(""), path);
	one(more, 1, "damaged.model");
}

TEST(test_a_policy_that_decides_by_a_model_needs_one)
{
	struct config *c = with(TYPE(""));

	free(c->policy);
	c->policy = strdup("postrider");
	tells(c, 1, "model: ");
	free(c->policy);
	c->policy = strdup("nonsense"); /* a flag of the daemon's can say anything */
	tells(c, 1, "policy: ");
	config_free(c);
}
