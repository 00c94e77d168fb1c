/* Ops on a daemon in this process: who may do what. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/test.h"
#include "tests/unit/daemon/local_daemon.h"

#define OTHER 65534
#define THIRD 65533
#define CREW 4711 /* a group */

static struct local_daemon l;
static struct local_client c;

static int open_one(void **state)
{
	(void)state;
	local_open(&l);
	c.fd = -1;
	return 0;
}

static int close_one(void **state)
{
	(void)state;
	client_close(&c);
	local_close(&l);
	return 0;
}

static bool is_admin(uid_t uid, gid_t gid, gid_t group)
{
	struct json *v;
	bool admin;

	client_open_as(&c, &l, uid, gid, group);
	v = client_ask(&c, "{\"op\":\"hello\"}");
	assert_int_equal(number_at(v, "uid"), uid);
	admin = json_bool(json_get(v, "admin"), false);
	json_free(v);
	assert_string_equal(client_error(&c, "{\"op\":\"drain\",\"off\":true}"),
			    admin ? "" : "not_permitted");
	client_close(&c);
	return admin;
}

TEST_WITH(test_members_of_an_admin_group_are_admins, open_one, close_one)
{
	l.settings = "\"admins\":{\"users\":[65533],\"groups\":[4711]},";
	local_start(&l);
	assert_true(is_admin(0, 0, 0));
	assert_true(is_admin(THIRD, THIRD, THIRD)); /* by name */
	assert_true(is_admin(OTHER, CREW, OTHER)); /* by its own group */
	assert_true(is_admin(OTHER, OTHER, CREW)); /* by a further group */
	assert_false(is_admin(OTHER, OTHER, OTHER));
}

TEST_WITH(test_the_group_of_the_socket_may_be_a_number, open_one, close_one)
{
	struct stat st;

	l.settings = "\"socket_group\":\"4711\",";
	if (geteuid() != 0)
		skip();
	local_start(&l);
	assert_int_equal(stat(l.socket, &st), 0);
	assert_int_equal(st.st_gid, CREW);
}

TEST_WITH(test_a_group_that_is_not_there_is_refused_by_name, open_one, close_one)
{
	struct err err = { 0 };

	l.settings = "\"socket_group\":\"no-such-group\",";
	local_write_config(&l);
	assert_int_equal(local_try_start(&l, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "socket_group: there is no group"));
}
