/* Schemas and tables as text, as the tests of predictors/data write them. What does not read fails the
 * test. */
#ifndef TESTS_UNIT_PREDICTORS_DATA_TEXT_H
#define TESTS_UNIT_PREDICTORS_DATA_TEXT_H

#include "common/csv.h"
#include "predictors/data/schema.h"

struct schema *schema_of(const char *text); /* NULL: the default one */
struct csv *csv_of(const char *text);       /* named t.csv */

/* The default schema, for the tests of a program: TEST_GROUP(open_default_schema, close_default_schema). */
extern struct schema *default_schema;
int open_default_schema(void **state);
int close_default_schema(void **state);

#endif
