/* The functions between layers, in place, and their derivatives computed from their results. */
#ifndef WORKLOADS_ACTIVATION_H
#define WORKLOADS_ACTIVATION_H

#include <stddef.h>

enum activation { ACTIVATION_NONE, ACTIVATION_RELU, ACTIVATION_TANH };

void activation_apply(enum activation a, float *v, size_t n);
/* d[i] *= derivative, where y[i] is what activation_apply() gave. */
void activation_back(enum activation a, const float *y, float *d, size_t n);

#endif
