/* Values deep inside a document. See json_path.h. */
#include "common/json/path.h"

#include <string.h>

const struct json *json_path(const struct json *v, const char *path)
{
	char name[JSON_PATH_MAX_NAME + 1];
	const struct json *whole = json_get(v, path);

	while (!whole && v && *path) {
		size_t len = strcspn(path, ".");

		if (len > JSON_PATH_MAX_NAME)
			return NULL;
		memcpy(name, path, len);
		name[len] = '\0';
		v = json_get(v, name);
		path += len + (path[len] == '.');
	}
	return whole ? whole : v;
}
