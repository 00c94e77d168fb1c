/* The list of models, and the checks that all of them share. */
#include "predictors/predictor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predictors/models/pipeline.h"
#include "predictors/trees/boost.h"
#include "predictors/models/learning_curve.h"
#include "predictors/trees/forest.h"
#include "predictors/models/gp.h"
#include "predictors/models/hybrid.h"
#include "predictors/models/linear.h"
#include "predictors/models/pipeline.h"
#include "predictors/models/queueing_models.h"

const struct predictor_ops *const predictor_all[] = {
	&forest_ops,         &boost_ops,    &linear_ops, &ridge_ops, &lasso_ops, &tree_ops,
	&queueing_paper_ops, &queueing_ops, &hybrid_ops, &curve_ops, &gp_ops,    NULL,
};

const struct predictor_ops *predictor_find(const char *name)
{
	for (size_t i = 0; predictor_all[i]; i++)
		if (strcmp(predictor_all[i]->name, name) == 0)
			return predictor_all[i];
	return NULL;
}

const struct predictor_ops *predictor_of_file(const char *name)
{
	return strcmp(name, automl_ops.name) ? predictor_find(name) : &automl_ops;
}

const char *predictor_names(void)
{
	static char text[256];
	size_t used = 0;

	/* Always the same text, so that two threads writing it at once do no harm. */
	for (size_t i = 0; predictor_all[i]; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? ", " : "",
					 predictor_all[i]->name);
	return text;
}

bool predictor_logs(const struct predictor_ops *ops, const struct settings *s)
{
	return ops == &boost_ops && settings_get(s, "log") != 0.0;
}

int predictor_fit(const struct predictor_ops *ops, const struct settings *s, const struct dataset *d,
		  const struct fit_context *ctx, struct predictor *out, struct err *err)
{
	bool log = predictor_logs(ops, s);
	struct dataset of = *d;
	double *logs = NULL;
	void *self = NULL;
	int status;

	if (d->n_rows == 0)
		return err_fail(err, ERR_NODATA, "%s: no rows to learn from", ops->title);
	if (d->n_features == 0 || d->n_features > DATASET_MAX_FEATURES)
		return err_fail(err, ERR_NODATA, "%s: %zu features; need 1 to %d", ops->title, d->n_features,
				DATASET_MAX_FEATURES);
	if (d->n_rows > UINT32_MAX / 4)
		return err_fail(err, ERR_ARG, "%s: %zu rows are more than the %u it can count", ops->title,
				d->n_rows, UINT32_MAX / 4);
	if (!ops->fit)
		return err_fail(err, ERR_ARG, "%s: `postrider automl` makes this model", ops->title);
	status = err_if_stopped(ctx->stop, err);
	if (!status && log)
		status = dataset_logs(d, &logs, err);
	of.y = log ? logs : d->y;
	if (!status)
		status = ops->fit(s, &of, ctx, &self, err);
	free(logs);
	if (status)
		return status;
	*out = (struct predictor){
		.ops = ops, .settings = *s, .n_features = d->n_features, .self = self, .log = log
	};
	return 0;
}

void predictor_predict(const struct predictor *p, const double *x, size_t n_rows, double *out)
{
	p->ops->predict(p->self, x, n_rows, out);
	for (size_t i = 0; p->log && i < n_rows; i++)
		out[i] = exp(out[i]);
}

void predictor_release(struct predictor *p)
{
	if (p->ops)
		p->ops->destroy(p->self);
	*p = (struct predictor){ 0 };
}
