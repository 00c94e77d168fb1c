/* One step of stochastic gradient descent. See sgd.h. */
#include "workloads/sgd.h"

#include "workloads/kernel.h"

KERNEL_CLONES void sgd_step(float *param, const float *grad, size_t n, float rate)
{
	for (size_t i = 0; i < n; i++)
		param[i] -= rate * grad[i];
}
