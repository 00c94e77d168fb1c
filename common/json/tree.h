/* The nodes and the texts of a tree that is being built, for parse.c. The nodes are cJSON's structs, as its
 * own functions read them. They come from a few blocks that live as long as the tree, so that reading and
 * freeing a request are cheap. */
#ifndef COMMON_JSON_TREE_H
#define COMMON_JSON_TREE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

struct json_tree {
	struct json_block *last;
};

/* Begins the tree of a text of `len` bytes; false: out of memory. */
bool json_tree_begin(struct json_tree *t, size_t len);
cJSON *json_tree_node(struct json_tree *t, int type);  /* all else is 0; NULL: out of memory */
char *json_tree_bytes(struct json_tree *t, size_t n);  /* for a text; NULL: out of memory */
/* The root takes the blocks over; without a root they are freed. */
void json_tree_end(struct json_tree *t, cJSON *root);
void json_tree_free(cJSON *root);

#endif
