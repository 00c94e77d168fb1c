/* scheduler/config/config_find: which file is read, and where things are by default. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/io.h"
#include "scheduler/config/config.h"
#include "common/places.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

static const char *home;

/* A home of our own: nothing of whoever runs the tests is looked at. */
static int set_up(void **state)
{
	(void)state;
	home = support_temp_dir();
	setenv("HOME", home, 1);
	setenv("XDG_CONFIG_HOME", support_path(home, "etc"), 1);
	unsetenv("XDG_STATE_HOME");
	unsetenv("XDG_RUNTIME_DIR");
	unsetenv("POSTRIDER_CONFIG");
	unsetenv("POSTRIDER_SOCKET");
	return 0;
}

TEST_GROUP(set_up, NULL);

static void put(const char *path, const char *text)
{
	assert_int_equal(io_write_file(path, text, strlen(text), NULL), 0);
}

static void finds(const char *given, const char *expected)
{
	char *path = config_find(given);

	assert_non_null(path);
	assert_string_equal(path, expected);
	free(path);
}

TEST(test_what_is_given_wins)
{
	setenv("POSTRIDER_CONFIG", "/from/environment", 1);
	finds("/given", "/given");
	finds(NULL, "/from/environment");
	setenv("POSTRIDER_CONFIG", "", 1);
	mkdir(support_path(home, "etc"), 0700);
	mkdir(support_path(home, "etc/postrider"), 0700);
	put(support_path(home, "etc/postrider/config.json"), "{}");
	finds(NULL, support_path(home, "etc/postrider/config.json"));
	unsetenv("XDG_CONFIG_HOME");
	mkdir(support_path(home, ".config"), 0700);
	mkdir(support_path(home, ".config/postrider"), 0700);
	put(support_path(home, ".config/postrider/config.json"), "{}");
	finds(NULL, support_path(home, ".config/postrider/config.json"));
	setenv("XDG_CONFIG_HOME", "relative", 1); /* to be ignored */
	finds(NULL, support_path(home, ".config/postrider/config.json"));
}

static void talks_to(const char *given, const char *expected)
{
	char *socket = NULL;
	struct err err = { 0 };

	if (config_socket(given, &socket, &err))
		fail_msg("%s", err.text);
	assert_string_equal(socket, expected);
	free(socket);
}

TEST(test_the_socket_comes_from_the_nearest_place)
{
	const char *path = support_path(home, "c.json");
	char *usual = NULL, *socket = NULL;
	struct err err = { 0 };

	setenv("POSTRIDER_CONFIG", path, 1);
	setenv("POSTRIDER_SOCKET", "/from/environment", 1);
	/* What else is in the file is the daemon's business, mistakes included. */
	put(path, "{\"socket\":\"/from/file\",\"types\":3}");
	talks_to("/given", "/given");
	talks_to(NULL, "/from/environment");
	unsetenv("POSTRIDER_SOCKET");
	talks_to(NULL, "/from/file");
	put(path, "{}");
	assert_int_equal(place_socket(&usual, NULL), 0);
	if (access(PLACE_SYSTEM_SOCKET, F_OK))
		talks_to(NULL, usual);
	free(usual);
	put(path, "{\"socket\":3}");
	assert_int_equal(config_socket(NULL, &socket, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "socket: must be a string"));
	put(path, "{");
	assert_int_equal(config_socket(NULL, &socket, &err), -ERR_FORMAT);
	setenv("POSTRIDER_CONFIG", support_path(home, "nowhere"), 1);
	assert_int_equal(config_socket(NULL, &socket, &err), -ERR_NOTFOUND);
	assert_null(socket);
	unsetenv("POSTRIDER_CONFIG");
}

TEST(test_a_socket_too_long_is_refused)
{
	char path[PLACE_MAX_SOCKET + 2], *socket = NULL;

	memset(path, 'a', sizeof path);
	path[PLACE_MAX_SOCKET + 1] = '\0';
	assert_int_equal(config_socket(path, &socket, NULL), -ERR_ARG);
	assert_null(socket);
	path[PLACE_MAX_SOCKET] = '\0';
	talks_to(path, path);
}

TEST(test_default_places_are_the_users_or_the_systems)
{
	char *dir = NULL, *socket = NULL;

	assert_int_equal(place_state_dir(&dir, NULL), 0);
	assert_int_equal(place_socket(&socket, NULL), 0);
	if (place_is_system()) {
		assert_string_equal(dir, "/var/lib/postrider");
		assert_string_equal(socket, "/run/postrider/postrider.sock");
	} else {
		assert_string_equal(dir, support_path(home, ".local/state/postrider"));
		assert_string_equal(socket, support_path(home, ".local/state/postrider/postrider.sock"));
	}
	free(dir);
	free(socket);
}

TEST(test_paths_become_absolute)
{
	static const struct {
		const char *given, *expected;
	} path[] = {
		{ "/a/b", "/a/b" }, { "a/b", "HERE/a/b" }, { "./a", "HERE/a" }, { ".//./a", "HERE/a" },
		{ ".", "HERE" },    { "./", "HERE" },      { "..", "HERE/.." }, { ".a", "HERE/.a" },
	};
	char here[4096];

	assert_non_null(getcwd(here, sizeof here));
	for (size_t i = 0; i < sizeof path / sizeof path[0]; i++) {
		char expected[4200], *got = NULL;

		if (strncmp(path[i].expected, "HERE", 4))
			snprintf(expected, sizeof expected, "%s", path[i].expected);
		else
			snprintf(expected, sizeof expected, "%s%s", here, path[i].expected + 4);
		assert_int_equal(place_absolute(path[i].given, &got, NULL), 0);
		assert_string_equal(got, expected);
		free(got);
	}
}

TEST(test_users_and_groups_are_found)
{
	struct err err = { 0 };
	uid_t uid = 1;
	gid_t gid = 1;

	assert_int_equal(place_user("root", &uid, NULL), 0);
	assert_int_equal(uid, 0);
	assert_int_equal(place_group("root", &gid, NULL), 0);
	assert_int_equal(gid, 0);
	assert_int_equal(place_user("1234", &uid, NULL), 0);
	assert_int_equal(uid, 1234);
	assert_int_equal(place_user("no-such-user-here", &uid, &err), -ERR_NOTFOUND);
	assert_int_equal(place_group("", &gid, &err), -ERR_NOTFOUND);
}
