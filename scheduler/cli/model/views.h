/* Output of the verbs about models that is too long for the files of the verbs. */
#ifndef SCHEDULER_CLI_MODEL_VIEWS_H
#define SCHEDULER_CLI_MODEL_VIEWS_H

#include "predictors/search/train.h"
#include "scheduler/cli/cli.h"

/* train_view.c: what was trained. */
void train_view_text(struct strbuf *out, const struct cli *c, bool dry_run, const struct model *m,
                     const struct train_report *r);
void train_view_json(struct strbuf *out, const struct cli *c, bool dry_run, const struct model *m,
                     const struct train_report *r);

/* model_diff.c: how the models in the files of c->arg[1] and c->arg[2] differ. */
int model_diff(const struct cli *c, struct strbuf *out, struct err *err);

#endif
