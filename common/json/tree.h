/* The memory and the nodes of a tree that is being built, for parse.c. The nodes are cJSON's; they and their texts
 * come from a few blocks that live as long as the tree, so that reading and freeing a request are cheap. */
#ifndef COMMON_JSON_TREE_H
#define COMMON_JSON_TREE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/* Begins the tree of a text of `len` bytes; false: out of memory. One thread builds one tree at a time. */
bool json_tree_begin(size_t len);
char *json_tree_bytes(size_t n); /* for a text of the tree that is being built; NULL: out of memory */
/* Ends the building. The root takes the blocks over; without a root they are freed. */
void json_tree_end(cJSON *root);
void json_tree_free(cJSON *root);

#endif
