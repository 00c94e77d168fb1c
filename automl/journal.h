/* The journal of a campaign, DIR/journal.jsonl: what the campaign and the table were, then a line for each
 * finished unit of work, and for trials of a search that goes on (common/json/lines.h). */
#ifndef AUTOML_JOURNAL_H
#define AUTOML_JOURNAL_H

#include "automl/automl.h"

#define JOURNAL_VERSION 1
#define JOURNAL_MAX_BYTES ((size_t)4 << 30)

struct journal;

/* Fills a->outcome with what the journal has. created (32 bytes): when the campaign was created, or when it
 * began, by the journal. */
int journal_open(const struct automl_params *p, struct automl *a, char *created, struct journal **out,
                 struct err *err);
/* Takes over what a part of the campaign did (DIR/part-PART/journal.jsonl), if there is such a part. */
int journal_take_part(struct journal *j, const struct automl_params *p, struct automl *a, size_t part,
                      struct err *err);
/* Safe from any thread. */
int journal_add(struct journal *j, enum automl_stage stage, size_t unit, const struct outcome *o,
                struct err *err);
/* The next trials of a search that is not at its end. */
int journal_add_trials(struct journal *j, enum automl_stage stage, size_t unit, const double *loss, size_t n,
                       struct err *err);
void journal_close(struct journal *j);

#endif
