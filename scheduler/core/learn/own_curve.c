/* A straight line through the logarithms of epochs and errors. See own_curve.h. */
#include "scheduler/core/learn/own_curve.h"

#include <math.h>

#define LEAST_EPOCHS 3
#define LEAST_ERROR 1e-6 /* an accuracy of 1 has no logarithm */
#define STEEPEST (-2.0)

void own_curve_add(struct own_curve *c, double epoch, double accuracy)
{
	double x, y;

	if (!(epoch > 0.0 && isfinite(epoch) && accuracy >= 0.0 && accuracy <= 1.0))
		return;
	x = log(epoch);
	y = log(fmax(1.0 - accuracy, LEAST_ERROR));
	c->n++;
	c->last = accuracy;
	c->w += epoch;
	c->x += epoch * x;
	c->y += epoch * y;
	c->xx += epoch * x * x;
	c->xy += epoch * x * y;
}

double own_curve_at(const struct own_curve *c, double epoch)
{
	double vary, slope;

	if (c->n < LEAST_EPOCHS || !(epoch > 0.0))
		return NAN;
	vary = c->xx - c->x * c->x / c->w;
	slope = vary > 0.0 ? (c->xy - c->x * c->y / c->w) / vary : 0.0;
	slope = fmin(fmax(slope, STEEPEST), 0.0);
	return fmax(1.0 - exp(c->y / c->w + slope * (log(epoch) - c->x / c->w)), 0.0);
}
