/* The step of stochastic gradient descent. */
#ifndef WORKLOADS_SGD_H
#define WORKLOADS_SGD_H

#include <stddef.h>
#include <stdint.h>

/* The learning rate of step t = 0, 1, ...: rate / (1 + t * decay), as Torch and BigDL decay it. */
static inline double sgd_rate(double rate, double decay, uint64_t t)
{
	return rate / (1.0 + (double)t * decay);
}

void sgd_step(float *param, const float *grad, size_t n, float rate); /* param -= rate * grad */

#endif
