/* The loss of a batch and its derivative. See net.h. */
#include "workloads/net.h"

#include <math.h>

double loss_back(float *score, const uint8_t *label, size_t n, size_t classes, float scale,
		 size_t *out_correct)
{
	double total = 0.0;

	*out_correct = 0;
	for (size_t i = 0; i < n; i++) {
		float *s = score + i * classes, top = s[0], sum = 0.0f, own;
		size_t best = 0;

		for (size_t k = 1; k < classes; k++) {
			if (s[k] > top) {
				top = s[k];
				best = k;
			}
		}
		*out_correct += best == label[i];
		own = s[label[i]] - top;
		for (size_t k = 0; k < classes; k++) {
			s[k] = expf(s[k] - top); /* at most 1: cannot overflow */
			sum += s[k];
		}
		total += (double)(logf(sum) - own);
		for (size_t k = 0; k < classes; k++)
			s[k] *= scale / sum;
		s[label[i]] -= scale;
	}
	return total;
}
