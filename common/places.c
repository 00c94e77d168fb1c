/* Default places (FHS for root, XDG base directories for other users), and names of users and groups. */
#define _GNU_SOURCE
#include "common/places.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/text/text.h"

#define NAME_BUFFER_FIRST 1024
#define NAME_BUFFER_MAX ((size_t)1 << 20) /* a group of very many members */

/* "A/B" or "A/B/C" (c may be NULL), to be freed. */
static char *joined(const char *a, const char *b, const char *c)
{
	size_t size = strlen(a) + strlen(b) + (c ? strlen(c) : 0) + 3;
	char *out = mem_alloc(size);

	if (out)
		snprintf(out, size, "%s/%s%s%s", a, b, c ? "/" : "", c ? c : "");
	return out;
}

int place_absolute(const char *path, char **out, struct err *err)
{
	char here[PATH_MAX];

	if (path[0] != '/') {
		if (!getcwd(here, sizeof here))
			return err_fail(err, ERR_IO,
					"is a relative path, and the folder it starts from can not be "
					"told: %s",
					strerror(errno));
		while (path[0] == '.' && path[1] == '/') {
			path += 2;
			path += strspn(path, "/");
		}
		if (!strcmp(path, "."))
			path = "";
		if (strlen(here) + 1 + strlen(path) >= PATH_MAX)
			return err_fail(err, ERR_FORMAT, "becomes longer than %d bytes in %s", PATH_MAX - 1,
					text_tail(here, 200));
		if (*path)
			*out = joined(strcmp(here, "/") ? here : "", path, NULL);
		else
			*out = mem_strdup(here);
	} else {
		*out = mem_strdup(path);
	}
	return *out ? 0 : err_nomem(err, "a path");
}

bool place_is_system(void)
{
	return geteuid() == 0;
}

/* An absolute path of the environment; the XDG specification says to ignore relative ones. */
static const char *environment(const char *name)
{
	const char *v = getenv(name);

	return v && v[0] == '/' && strlen(v) < PATH_MAX ? v : NULL;
}

/* $NAME, or FALLBACK below the home; NULL: neither is known, or (errno ENOMEM) no memory. */
static char *xdg_folder(const char *name, const char *fallback)
{
	const char *folder = environment(name), *home = environment("HOME");
	struct passwd entry, *found = NULL;
	char buffer[4096];

	errno = 0;
	if (folder)
		return mem_strdup(folder);
	if (!home && !getpwuid_r(geteuid(), &entry, buffer, sizeof buffer, &found) && found &&
	    entry.pw_dir[0] == '/')
		home = entry.pw_dir;
	return home ? joined(home, fallback, NULL) : NULL;
}

int place_state_dir(char **out, struct err *err)
{
	char *folder;

	if (place_is_system()) {
		*out = mem_strdup("/var/lib/postrider");
		return *out ? 0 : err_nomem(err, "a path");
	}
	folder = xdg_folder("XDG_STATE_HOME", ".local/state");
	if (!folder)
		return err_fail(err, ERR_FORMAT,
				"no place for state_dir: neither XDG_STATE_HOME nor HOME is set; name one");
	*out = joined(folder, "postrider", NULL);
	free(folder);
	return *out ? 0 : err_nomem(err, "a path");
}

int place_socket(char **out, struct err *err)
{
	const char *folder = environment("XDG_RUNTIME_DIR");
	char *state = NULL;
	int rc;

	if (place_is_system()) {
		*out = mem_strdup(PLACE_SYSTEM_SOCKET);
		return *out ? 0 : err_nomem(err, "a path");
	}
	if (!folder) { /* without a session of systemd: a folder of the user's own is as private */
		rc = place_state_dir(&state, err);
		if (rc)
			return rc;
	}
	*out = joined(folder ? folder : state, "postrider.sock", NULL);
	free(state);
	return *out ? 0 : err_nomem(err, "a path");
}

/* A folder in which nobody else can put a socket of theirs in the place of ours. */
static bool is_private(const char *folder)
{
	struct stat st;

	return !stat(folder, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022) &&
	       !access(folder, W_OK);
}

int place_run(char **out_dir, char **out_socket, struct err *err)
{
	const char *runtime = environment("XDG_RUNTIME_DIR");
	char *state = xdg_folder("XDG_STATE_HOME", ".local/state"), *folder, *socket;

	if (!state)
		return err_fail(err, ERR_NOTFOUND, "no place for what is learnt: set XDG_STATE_HOME or HOME");
	folder = joined(state, "postrider", "run");
	free(state);
	socket = runtime && is_private(runtime) ? joined(runtime, "postrider-run.sock", NULL) : NULL;
	if (socket && strlen(socket) > PLACE_MAX_SOCKET) {
		free(socket);
		socket = NULL;
	}
	if (folder && !socket)
		socket = joined(folder, "postrider.sock", NULL);
	if (!folder || !socket) {
		free(folder);
		free(socket);
		return err_nomem(err, "a path");
	}
	*out_dir = folder;
	*out_socket = socket;
	return 0;
}

char *place_user_config(void)
{
	char *folder = xdg_folder("XDG_CONFIG_HOME", ".config"), *path = NULL;

	if (folder)
		path = joined(folder, "postrider", "config.json");
	free(folder);
	return path;
}

/* FOLDER/between/NAME, where FOLDER is that of our own program, links followed. */
static bool near_us(const char *between, const char *name, int mode, char *out, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", out, size - 1);
	char *slash;

	if (n <= 0)
		return false;
	out[n] = '\0';
	slash = strrchr(out, '/');
	if (!slash || (size_t)(slash - out) + 1 + strlen(between) + strlen(name) >= size)
		return false;
	sprintf(slash + 1, "%s%s", between, name);
	return access(out, mode) == 0;
}

bool place_program(const char *name, char *out, size_t size)
{
	/* Together in the build; in bin/ and libexec/postrider/ where they are installed. */
	if (near_us("", name, X_OK, out, size) || near_us("../libexec/postrider/", name, X_OK, out, size) ||
	    near_us("../../bin/", name, X_OK, out, size))
		return true;
	return (size_t)snprintf(out, size, PLACE_LIBEXEC "/%s", name) < size && !access(out, X_OK);
}

bool place_shared(const char *name, char *out, size_t size)
{
	return near_us("../share/postrider/", name, R_OK, out, size) ||
	       near_us("../../share/postrider/", name, R_OK, out, size);
}

/* All digits and not (uid_t)-1, which system calls take for "leave it". */
static bool is_number(const char *name, uint32_t *out)
{
	uint64_t v;

	if (!text_uint64(name, &v) || v >= UINT32_MAX)
		return false;
	*out = (uint32_t)v;
	return true;
}

/* One try with a buffer of `size`; ERANGE: it was too small. *out_found false: no such name. */
static int look_up(const char *name, bool group, size_t size, bool *out_found, uint32_t *out)
{
	struct passwd user, *user_found = NULL;
	struct group members, *group_found = NULL;
	char *buffer = mem_alloc(size);
	int error;

	if (!buffer)
		return ENOMEM;
	if (group) {
		error = getgrnam_r(name, &members, buffer, size, &group_found);
		if (group_found)
			*out = members.gr_gid;
	} else {
		error = getpwnam_r(name, &user, buffer, size, &user_found);
		if (user_found)
			*out = user.pw_uid;
	}
	*out_found = user_found || group_found;
	free(buffer);
	return error;
}

static int find_name(const char *name, bool group, uint32_t *out, struct err *err)
{
	const char *what = group ? "group" : "user";
	int error = ERANGE;
	bool found = false;
	char shown[64];

	if (is_number(name, out))
		return 0;
	for (size_t size = NAME_BUFFER_FIRST; error == ERANGE && size <= NAME_BUFFER_MAX; size *= 4)
		error = look_up(name, group, size, &found, out);
	if (found)
		return 0;
	if (error == ENOMEM)
		return err_fail(err, ERR_NOMEM, "out of memory to look for the %s '%s'", what,
				text_printable(name, shown, sizeof shown));
	/* Name services say "none" in several ways (getpwnam_r(3)); only a want of descriptors and the
	 * like is worth telling apart. */
	if (error == EMFILE || error == ENFILE || error == EIO)
		return err_fail(err, ERR_IO, "can not look for the %s '%s': %s", what,
				text_printable(name, shown, sizeof shown), strerror(error));
	return err_fail(err, ERR_NOTFOUND, "there is no %s '%s' on this machine", what,
			text_printable(name, shown, sizeof shown));
}

int place_user(const char *name, uid_t *out, struct err *err)
{
	uint32_t v;
	int rc = find_name(name, false, &v, err);

	if (!rc)
		*out = v;
	return rc;
}

int place_group(const char *name, gid_t *out, struct err *err)
{
	uint32_t v;
	int rc = find_name(name, true, &v, err);

	if (!rc)
		*out = v;
	return rc;
}
