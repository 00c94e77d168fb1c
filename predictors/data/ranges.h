/* The training range of every feature, for models whose trees may not be asked beyond it: such a row is
 * pulled to the nearest point inside, and the distance is returned, so that the trees' part can be shrunk. */
#ifndef PREDICTORS_DATA_RANGES_H
#define PREDICTORS_DATA_RANGES_H

#include "predictors/file/bytes.h"
#include "predictors/data/dataset.h"

struct ranges {
	size_t n;
	double *low, *high; /* NaN where the feature had no value */
};

int ranges_find(const struct dataset *d, struct ranges *out, struct err *err);
void ranges_release(struct ranges *r);

/* x[n] brought into the ranges; returns how far outside it was, in ranges, where it was farthest. */
double ranges_pull_in(const struct ranges *r, const double *x, double *out);

void ranges_save(const struct ranges *r, struct writer *w);
int ranges_load(struct reader *in, size_t n, struct ranges *out, struct err *err);

#endif
