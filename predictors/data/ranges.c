/* Training ranges, and rows pulled into them. */
#include "predictors/data/ranges.h"

#include <math.h>
#include <stdlib.h>

#include "common/mem.h"

static int ranges_alloc(size_t n, struct ranges *out, struct err *err)
{
	*out = (struct ranges){ .n = n };
	out->low = mem_array(n, sizeof *out->low);
	out->high = mem_array(n, sizeof *out->high);
	if (out->low && out->high)
		return 0;
	ranges_release(out);
	return err_nomem(err, "%zu ranges", n);
}

int ranges_find(const struct dataset *d, struct ranges *out, struct err *err)
{
	int rc = ranges_alloc(d->n_features, out, err);

	for (size_t f = 0; !rc && f < d->n_features; f++) {
		out->low[f] = out->high[f] = NAN;
		for (size_t i = 0; i < d->n_rows; i++) { /* fmin and fmax ignore a NaN */
			out->low[f] = fmin(out->low[f], d->x[i * d->n_features + f]);
			out->high[f] = fmax(out->high[f], d->x[i * d->n_features + f]);
		}
	}
	return rc;
}

void ranges_release(struct ranges *r)
{
	if (!r)
		return;
	free(r->low);
	free(r->high);
	*r = (struct ranges){ 0 };
}

double ranges_pull_in(const struct ranges *r, const double *x, double *out)
{
	double most = 0.0;

	for (size_t f = 0; f < r->n; f++) {
		double v = x[f], low = r->low[f], high = r->high[f], off;

		out[f] = v;
		if (isnan(v) || isnan(low) || (v >= low && v <= high))
			continue;
		out[f] = v < low ? low : high;
		/* a feature that never varied has no range: any other value is one of them away */
		off = high > low ? fabs(v - out[f]) / (high - low) : 1.0;
		most = fmax(most, off);
	}
	return most;
}

void ranges_save(const struct ranges *r, struct writer *w)
{
	for (size_t f = 0; f < r->n; f++) {
		write_f64(w, r->low[f]);
		write_f64(w, r->high[f]);
	}
}

int ranges_load(struct reader *in, size_t n, struct ranges *out, struct err *err)
{
	int rc = ranges_alloc(n, out, err);

	for (size_t f = 0; !rc && f < n; f++) {
		out->low[f] = read_f64(in);
		out->high[f] = read_f64(in);
		if (in->failed || isnan(out->low[f]) != isnan(out->high[f]) || out->low[f] > out->high[f])
			rc = err_fail(err, ERR_FORMAT, "the training range of feature %zu is none", f);
	}
	if (rc)
		ranges_release(out);
	return rc;
}
