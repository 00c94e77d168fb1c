/* Output of the verbs about models that is too long for the files of the verbs. */
#ifndef SCHEDULER_CLI_MODEL_VIEWS_H
#define SCHEDULER_CLI_MODEL_VIEWS_H

#include "predictors/search/train.h"
#include "scheduler/cli/cli.h"

/* verb_train.c: the verb without its tables: notes alone say what was chosen, and why. */
int train_in_words(int argc, char **argv);

/* train_view.c: what was trained. */
void train_view_text(struct strbuf *out, const struct cli *c, bool dry_run, const struct model *m,
                     const struct train_report *r, const struct learning *l);
void train_view_json(struct strbuf *out, const struct cli *c, bool dry_run, const struct model *m,
                     const struct train_report *r, const struct learning *l); /* l: NULL without one */

/* learning_view.c: the learning curve. */
void learning_view_text(struct strbuf *out, const struct cli *c, const struct learning *l);
void learning_view_json(struct json_writer *w, const struct learning *l);
int learning_plot(const struct learning *l, const struct model *m, const char *path, struct err *err);

/* train_options.c: --split and --group. The names of groups lie in `buf`, the levels of a split in `room`. */
#define TRAIN_MAX_GROUPS 32
#define TRAIN_MAX_LEVELS 64
struct train_split {
	double level[TRAIN_MAX_LEVELS];
};
int train_split_parse(const char *text, const struct table *t, struct train_split *room,
                      struct split_params *out, struct err *err);
int train_groups_parse(const char *text, char *buf, size_t size, const char **out, size_t *out_n,
                       struct err *err);

/* bounds_view.c: how wide the bounds of a target are, as an object and in words. */
void bounds_view_json(struct json_writer *w, const struct model *m, const struct model_target *t);
void bounds_view_text(struct strbuf *out, const struct model *m, const struct model_target *t);

/* model_diff.c: how the models in the files of c->arg[1] and c->arg[2] differ. */
int model_diff(const struct cli *c, struct strbuf *out, struct err *err);

/* predict_table.c: appends to `out` the table c->arg[1] with columns of predictions. slo_column: the column
 * with a time limit for each row, for a column of chances; NULL: none. */
int predict_table(const struct cli *c, double confidence, const char *slo_column, struct model *m,
                  struct strbuf *out, struct err *err);

#endif
