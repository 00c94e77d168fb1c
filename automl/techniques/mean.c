/* The technique Dummy, the mean, that all others have to beat; and the columns that least squares wants. */
#include <stdlib.h>

#include "common/mem.h"
#include "common/stats.h"
#include "automl/techniques/models.h"

double *models_columns(const struct dataset *d)
{
	double *x = mem_array(d->n_rows * d->n_features, sizeof *x);

	for (size_t i = 0; x && i < d->n_rows; i++)
		for (size_t j = 0; j < d->n_features; j++)
			x[j * d->n_rows + i] = d->x[i * d->n_features + j];
	return x;
}

static int mean_fit(const struct settings *s, const struct dataset *d, const struct fit_context *ctx,
		    void **out_self, struct err *err)
{
	struct affine *m = affine_new(d->n_features);

	(void)s;
	(void)ctx;
	if (!m)
		return err_nomem(err, "a mean");
	m->intercept = stats_mean(d->y, d->n_rows);
	*out_self = m;
	return 0;
}

const struct predictor_ops mean_ops = { MEAN_MODEL, .fit = mean_fit };
