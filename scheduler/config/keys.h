/* Tables of keys: the members of one JSON object, and where each is in a struct. Reading, defaults, writing,
 * freeing and comparing all go by the table, and so does the test of configs/README.md. The tables:
 * config_keys (config.c), of which "learning", "admins" and "log" are parts; tenant_keys (tenants.c);
 * job_type_keys (job_type.c). */
#ifndef SCHEDULER_CONFIG_KEYS_H
#define SCHEDULER_CONFIG_KEYS_H

#include "common/json/fields.h"

#define KEYS_MAX 48 /* keys of one table */

enum key_kind {
	KEY_OTHER,  /* read and write do everything */
	KEY_BOOL,   /* bool */
	KEY_NUMBER, /* double */
	KEY_SIZE,   /* size_t */
	KEY_UINT64, /* uint64_t */
	KEY_UINT32, /* uint32_t */
	KEY_INT,    /* int */
	KEY_CHOICE, /* an enum: index in `choice` */
	KEY_TEXT,   /* char *, of at most `max` bytes; NULL: not given */
	KEY_PATH,   /* char *, absolute; NULL: not given */
	KEY_USERS,  /* struct id_list, of names or numbers; at most `max` */
	KEY_GROUPS, /* the same for groups */
	KEY_PART,   /* an object with a table for itself, in the struct at `at` */
	/* bool: an old file has it. Any value is accepted and has no effect; it is not written.
	 * keys_retired() names those that were given. */
	KEY_RETIRED,
};

struct id_list { /* of users, or of groups */
	uint32_t *id;
	size_t n;
};

struct key {
	const char *name;              /* NULL after the last */
	enum key_kind kind;
	size_t at;                     /* in the struct */
	double min, max;               /* of numbers; of a text max alone */
	double initial;                /* default of numbers, booleans and choices */
	const char *initial_text;      /* default of a text; NULL: none */
	const char *const *choice;     /* names, NULL after the last */
	const struct key *part;
	bool restart;                  /* a running daemon can not change it */
	/* These may be NULL. `object` is the struct the table is about. */
	void (*read)(struct fields *f, const char *name, void *object); /* instead of reading by the kind */
	/* the value, instead of writing by the kind */
	void (*write)(const void *object, struct json_writer *w);
	/* of a part, after everything in it was read */
	void (*check)(struct fields *f, void *object);
};

void keys_default(const struct key *keys, void *object);
/* `f` was opened with the names of the table. */
void keys_read(struct fields *f, const struct key *keys, void *object);
/* members of the open object */
void keys_write(const struct key *keys, const void *object, struct json_writer *w);
void keys_release(const struct key *keys, void *object); /* frees what it holds */
/* out[KEYS_MAX + 1], NULL after the last. */
void keys_names(const struct key *keys, const char **out);
/* The first key with `restart` in which the two differ; NULL: none. */
const char *keys_that_differ(const struct key *keys, const void *a, const void *b);

/* Calls tell() for each retired key that was given, by its full name: "learning.explore". */
typedef void keys_tell(void *owner, const char *key);
void keys_retired(const struct key *keys, const void *object, keys_tell *tell, void *owner);

/* An object whose members are all of one sort ("types", "tenants", ...) into an array. */
struct named_list {
	const char *plural; /* "job types" */
	size_t max, size;   /* of the list; of an element */
	/* `one` is zeroed and counted, so what was read of it before a failure is freed. */
	void (*read)(struct fields *all, const char *name, void *one, void *owner);
};
void named_read(struct fields *f, const char *key, const struct named_list *l, void *owner, void **out,
                size_t *out_n);
/* Names of types and tenants: [a-z0-9][a-z0-9_.-]*, at most JOB_TYPE_MAX_NAME bytes. */
#define NAME_RULE "small letters, digits and _ . -, a letter or digit first, at most"
bool name_is_good(const char *s);

void put_strings(struct json_writer *w, char *const *s, size_t n); /* a list; null where there are none */
void put_numbers(struct json_writer *w, const double *v, size_t n); /* the same for numbers */

#endif
