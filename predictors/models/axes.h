/* From a feature to a coordinate: the logarithm of a number that is always above 0, in units of its spread,
 * or a 0/1 category as it is. The Gaussian process (gp.c) and the effects (effects.c) live on these. */
#ifndef PREDICTORS_MODELS_AXES_H
#define PREDICTORS_MODELS_AXES_H

#include <stdbool.h>

#include "predictors/data/dataset.h"
#include "predictors/file/bytes.h"

struct axis {
	uint32_t feature;
	uint8_t logarithm, category;
	double centre, scale;
	double low, high; /* coordinates of the training range */
};

/* False for a feature that never varies. */
bool axis_make(const struct dataset *d, size_t feature, struct axis *out);
/* NaN: the value is missing. */
double axis_at(const struct axis *a, double v);

#endif
