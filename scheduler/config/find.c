/* Which configuration is read, and which socket a client talks to. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/config/config.h"
#include "common/json/fields.h"
#include "common/places.h"

#define SYSTEM_CONFIG "/etc/postrider/config.json"

/* A variable that is set and not empty. */
static const char *environment(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? v : NULL;
}

char *config_find(const char *given)
{
	char *path;

	if (!given)
		given = environment("POSTRIDER_CONFIG");
	if (given) /* even if it does not exist: a name that was given is not silently ignored */
		return mem_strdup(given);
	path = place_user_config();
	if (path && !access(path, F_OK))
		return path;
	free(path);
	return access(SYSTEM_CONFIG, F_OK) ? NULL : mem_strdup(SYSTEM_CONFIG);
}

/* *out stays NULL where the file says nothing, or is not ours to read. */
static int socket_of_file(const char *path, char **out, struct err *err)
{
	struct err why = { 0 };
	struct json *v = NULL;
	struct fields f;
	int rc = json_read_settings(path, CONFIG_MAX_BYTES, &v, &why);

	if (rc == -ERR_PERM) /* the machine's, kept from users: its socket is at the usual place */
		return 0;
	if (rc)
		return err_fail(err, why.code, "%s", why.text);
	fields_open(&f, text_tail(path, FIELDS_FILE_SHOWN), ": ", v, NULL, err);
	field_path(&f, "socket", out);
	json_free(v);
	return f.rc;
}

/* That of the daemon which `postrider run` started for this user; NULL: there is none. */
static char *run_socket(void)
{
	struct err ignored = { 0 };
	char *dir, *socket;

	if (place_run(&dir, &socket, &ignored))
		return NULL;
	free(dir);
	if (strlen(socket) <= PLACE_MAX_SOCKET && !access(socket, F_OK))
		return socket;
	free(socket);
	return NULL;
}

/* The user's own daemon, the machine's, or that of `run`: the first one that is there. */
static int usual_socket(char **out, struct err *err)
{
	struct err why = { 0 };
	char *own = NULL, *other = NULL;
	int rc = place_socket(&own, &why);

	if (rc || access(own, F_OK)) {
		if (access(PLACE_SYSTEM_SOCKET, F_OK))
			other = run_socket();
		else if (!(other = mem_strdup(PLACE_SYSTEM_SOCKET)))
			rc = err_nomem(&why, NULL);
	}
	if (other) {
		free(own);
		*out = other;
		return 0;
	}
	*out = own;
	return rc ? err_fail(err, why.code, "%s", why.text) : 0;
}

int config_socket(const char *given, char **out, struct err *err)
{
	char *path, *found = NULL;
	int rc = 0;

	if (!given)
		given = environment("POSTRIDER_SOCKET");
	if (given) {
		found = mem_strdup(given);
		rc = found ? 0 : err_nomem(err, NULL);
	} else {
		path = config_find(NULL);
		if (path)
			rc = socket_of_file(path, &found, err);
		free(path);
		if (!rc && !found)
			rc = usual_socket(&found, err);
	}
	if (!rc && strlen(found) > PLACE_MAX_SOCKET)
		rc = err_fail(err, ERR_ARG, "...%s has %zu bytes; a socket's path has at most %d",
			      text_tail(found, 60), strlen(found), PLACE_MAX_SOCKET);
	if (rc) {
		free(found);
		return rc;
	}
	*out = found;
	return 0;
}
