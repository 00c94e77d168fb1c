/* The techniques of a campaign, by the names of its configuration language, and what their hyper-parameters
 * mean as settings of a model. One table; a line of it is all that a new technique needs. */
#ifndef AUTOML_TECHNIQUES_TECHNIQUE_H
#define AUTOML_TECHNIQUES_TECHNIQUE_H

#include "automl/literal.h"
#include "predictors/predictor.h"

struct technique_key {         /* a NULL name ends the list */
	const char *name;      /* "n_estimators" */
	const char *otherwise; /* the literal that counts where the key is not given */
	/* The setting of that name takes the value as it is, or `set` knows better. */
	const char *setting;
	int (*set)(struct settings *s, const struct literal *v, struct err *err);
};

struct technique {
	const char *name;                /* "RandomForest"; NULL ends the list */
	const struct predictor_ops *ops;
	const struct technique_key *key;
	/* It knows what columns mean: it gets the columns of the table, not those made from them, and needs
	 * a batch and cpus among them. */
	bool by_meaning;
};

extern const struct technique technique_all[];
const struct technique *technique_find(const char *name); /* NULL: no such technique */
const struct technique_key *technique_key(const struct technique *t, const char *name);
const char *technique_names(void); /* "LRRidge, NNLS, ...": for messages */

/* One hyper-parameter. ERR_ARG says what it may be. */
int technique_set(const struct technique_key *key, const struct literal *v, struct settings *s,
                  struct err *err);

#endif
