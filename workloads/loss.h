/* Log-softmax and negative log likelihood, as one function: their derivative together is simple. */
#ifndef WORKLOADS_LOSS_H
#define WORKLOADS_LOSS_H

#include <stddef.h>
#include <stdint.h>

/* score[n][classes] becomes the derivative of the loss by the scores, times `scale`. Returns the sum of the
 * losses, unscaled; *out_correct counts the records whose label has the highest score (ties: the first). */
double loss_back(float *score, const uint8_t *label, size_t n, size_t classes, float scale,
                 size_t *out_correct);

#endif
