/* json_scan.c reads the whole text first and says what is valid; cJSON then builds the tree of a text that is
 * known to be good, so its own leniency (control characters in strings, odd numbers, trailing bytes, duplicate
 * keys) never shows. The scanner also says how much memory the tree will take: cJSON gets it from one block, and
 * freeing the tree frees that. The writer is in json_write.c. */
#include "common/json/json.h"

#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/json/scan.h"
#include "common/mem.h"
#include "common/text/text.h"

/* ---- the tree ---- */

/* Where cJSON's memory comes from: blocks that live as long as the tree. The scanner's estimate makes the first
 * one large enough for cJSON 1.7; should another version want more, a further block is taken. */
struct block {
	struct block *next;
	char *last, *at, *end; /* what was given out last, what is free */
	max_align_t bytes[];
};

#define ROUNDED(n) (((n) + _Alignof(cJSON) - 1) / _Alignof(cJSON) * _Alignof(cJSON))
#define STRING_EXTRA (2 + _Alignof(cJSON)) /* cJSON's spare bytes and rounding, per string */

/* The tree this thread builds just now; cJSON's hooks have no argument to hand it over. */
static _Thread_local struct block *building;

static struct block *block_new(size_t room, struct block *next)
{
	struct block *b = mem_alloc(sizeof *b + room);

	if (!b)
		return NULL;
	b->next = next;
	b->last = b->at = (char *)b->bytes;
	b->end = b->at + room;
	return b;
}

static void block_free(struct block *b)
{
	while (b) {
		struct block *next = b->next;

		free(b);
		b = next;
	}
}

static void *tree_alloc(size_t n)
{
	void *p;

	if (!building || n > SIZE_MAX / 2)
		return NULL;
	n = ROUNDED(n);
	if ((size_t)(building->end - building->at) < n) {
		struct block *more = block_new(n > 4096 ? n : 4096, building);

		if (!more)
			return NULL;
		building = more;
	}
	p = building->last = building->at;
	building->at += n;
	return p;
}

/* Only what was given out last comes back, which is how some versions of cJSON treat the text of a number;
 * everything else goes with its block. */
static void tree_give_back(void *p)
{
	if (building && p == building->last)
		building->at = building->last;
}

/* cJSON's hooks and its last-error variable are global; the lock makes parsing safe from any thread. */
static pthread_mutex_t cjson_lock = PTHREAD_MUTEX_INITIALIZER;

static cJSON *build_tree(const char *text, size_t len, size_t room)
{
	static bool hooked;
	cJSON *tree = NULL;

	building = block_new(room, NULL);
	if (!building)
		return NULL;
	pthread_mutex_lock(&cjson_lock);
	if (!hooked) {
		cJSON_InitHooks(&(cJSON_Hooks){ tree_alloc, tree_give_back });
		hooked = true;
	}
	tree = cJSON_ParseWithLengthOpts(text, len, NULL, 0);
	pthread_mutex_unlock(&cjson_lock);
	if (tree)
		tree->prev = (cJSON *)(void *)
			building; /* a root has no brothers: free room for what json_free needs */
	else
		block_free(building);
	building = NULL;
	return tree;
}

int json_parse(const char *name, const char *text, size_t len, struct json **out, struct err *err)
{
	struct json_extent x;
	int rc = json_scan(name, text, len, &x, err);
	cJSON *tree;

	if (rc)
		return rc;
	/* Every value is a node; every string and every key has its bytes; a number may be copied for a while. */
	tree = build_tree(text, len,
			  x.n_values * ROUNDED(sizeof(cJSON)) + x.string_bytes + x.n_strings * STRING_EXTRA +
				  ROUNDED(JSON_MAX_NUMBER + 1));
	if (!tree) /* the text is valid, so this is the only reason left */
		return json_nomem(name, err);
	*out = (struct json *)tree;
	return 0;
}

int json_read_file(const char *path, size_t max, struct json **out, struct err *err)
{
	char *text = NULL;
	size_t len = 0;
	int rc = io_read_file(path, max, &text, &len, err);

	if (rc)
		return rc;
	rc = json_parse(strcmp(path, "-") == 0 ? "standard input" : path, text, len, out, err);
	free(text);
	return rc;
}

void json_free(struct json *root)
{
	if (root)
		block_free((struct block *)(void *)((cJSON *)root)->prev);
}

static const cJSON *inside(const struct json *v)
{
	return (const cJSON *)v;
}

enum json_type json_type(const struct json *v)
{
	if (!v)
		return JSON_ABSENT;
	switch (inside(v)->type & 0xff) { /* the bits above are cJSON's own flags */
	case cJSON_False:
	case cJSON_True: return JSON_BOOL;
	case cJSON_NULL: return JSON_NULL;
	case cJSON_Number: return JSON_NUMBER;
	case cJSON_String: return JSON_STRING;
	case cJSON_Array: return JSON_ARRAY;
	case cJSON_Object: return JSON_OBJECT;
	default: return JSON_ABSENT;
	}
}

const struct json *json_first(const struct json *v)
{
	enum json_type type = json_type(v);

	if (type != JSON_ARRAY && type != JSON_OBJECT)
		return NULL;
	return (const struct json *)inside(v)->child;
}

const struct json *json_next(const struct json *v)
{
	return v ? (const struct json *)inside(v)->next : NULL;
}

const char *json_key(const struct json *member)
{
	return member ? inside(member)->string : NULL;
}

const struct json *json_get(const struct json *object, const char *key)
{
	const struct json *v = json_type(object) == JSON_OBJECT ? json_first(object) : NULL;

	while (v && strcmp(json_key(v), key) != 0)
		v = json_next(v);
	return v;
}

size_t json_size(const struct json *v)
{
	size_t n = 0;

	for (v = json_first(v); v; v = json_next(v))
		n++;
	return n;
}

const struct json *json_at(const struct json *v, size_t i)
{
	for (v = json_first(v); v && i > 0; i--)
		v = json_next(v);
	return v;
}

bool json_bool(const struct json *v, bool otherwise)
{
	return json_type(v) == JSON_BOOL ? (inside(v)->type & 0xff) == cJSON_True : otherwise;
}

double json_number(const struct json *v, double otherwise)
{
	return json_type(v) == JSON_NUMBER ? inside(v)->valuedouble : otherwise;
}

const char *json_string(const struct json *v, const char *otherwise)
{
	return json_type(v) == JSON_STRING ? inside(v)->valuestring : otherwise;
}

int json_known_keys(const struct json *object, const char *where, const char *const *known, struct err *err)
{
	char shown[64];

	if (json_type(object) != JSON_OBJECT)
		return err_fail(err, ERR_FORMAT, "%s: must be an object { ... }", where);
	for (const struct json *v = json_first(object); v; v = json_next(v)) {
		const char *const *k = known;
		const char *near;

		while (*k && strcmp(*k, json_key(v)) != 0)
			k++;
		if (*k)
			continue;
		text_printable(json_key(v), shown, sizeof shown);
		near = text_nearest(json_key(v), known);
		if (near)
			return err_fail(err, ERR_FORMAT, "%s: unknown key '%s'; did you mean '%s'?", where,
					shown, near);
		return err_fail(err, ERR_FORMAT, "%s: unknown key '%s'", where, shown);
	}
	return 0;
}
