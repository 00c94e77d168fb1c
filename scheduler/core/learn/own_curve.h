/* What accuracy a running job will end with, by the epochs it has told: the error falls like a power of the
 * work (Hestness et al., Deep learning scaling is predictable, empirically, 2017), a straight line in
 * logarithms. Later epochs count more, because training begins slowly. */
#ifndef SCHEDULER_CORE_OWN_CURVE_H
#define SCHEDULER_CORE_OWN_CURVE_H

struct own_curve { /* all zero: nothing was told */
	unsigned n;
	double last;         /* the accuracy told last */
	double w, x, y, xx, xy; /* sums over the epochs, x = log(epoch), y = log(1 - accuracy), by weight */
};

void own_curve_add(struct own_curve *c, double epoch, double accuracy);
/* At that epoch; NaN: fewer than three epochs have told one. */
double own_curve_at(const struct own_curve *c, double epoch);

#endif
