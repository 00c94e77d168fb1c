/* Convolution 5x5, tanh and max-pool 2x2 as one layer, by hand instead of by im2col and a matrix product.
 * Three things make it fast:
 *   - With 6 or 12 channels a matrix product is a sliver, and copying each pixel 25 times for it costs more
 *     than the product. Here 6 channels x 2 rows x 8 pixels stay in registers for all their taps.
 *   - tanh is monotonic, so max(tanh) = tanh(max): the pool goes first and a quarter of the tanh remain.
 *   - Behind a max-pool three of four derivatives are zero. Going back visits only the fourth that is not. */
#include <assert.h>
#include <string.h>

#include "workloads/kernel.h"
#include "workloads/layer.h"

#define SIDE 5 /* of the kernel */
#define TAPS (SIDE * SIDE)
#define GROUP 6 /* channels computed together */

static size_t side_out(const struct layer *l)
{
	return (l->side_in - SIDE + 1) / 2;
}

static size_t conv_choices(const struct layer *l)
{
	return l->n_out;
}

/* Forward keeps the weights tap by tap, GROUP channels beside each other; backward has them, and their
 * gradient, row by row with LANES floats a row. Both after another, aligned or not. */
static size_t n_packed(const struct layer *l)
{
	return l->channels_in * l->channels_out * TAPS;
}

static size_t n_rows(const struct layer *l)
{
	return l->channels_in * l->channels_out * SIDE * LANES;
}

static size_t conv_scratch(const struct layer *l)
{
	return n_packed(l) + 2 * n_rows(l) + KERNEL_SLACK;
}

/* ---- forward ---- */

static void pack_by_tap(const struct layer *l, const float *weight, float *out)
{
	for (size_t group = 0; group < l->channels_out; group += GROUP)
		for (size_t c = 0; c < l->channels_in; c++)
			for (size_t tap = 0; tap < TAPS; tap++)
				for (size_t o = 0; o < GROUP; o++)
					*out++ = weight[((group + o) * l->channels_in + c) * TAPS + tap];
}

/* A macro: compilers warn of vectors as results, inlined or not. */
#define SELECT(mask, yes, no) ((v8f)(((mask) & (v8i)(yes)) | (~(mask) & (v8i)(no))))

/* Two rows of eight become one of four; which of each 2x2 won (2 * row + column) goes to choice. The first
 * of equals wins in a row, the upper of equals in a column. */
KERNEL_INLINE void pool_tile(const v8f *row, float *out, uint8_t *choice)
{
	const v8i even = { 0, 2, 4, 6, 0, 2, 4, 6 }, odd = { 1, 3, 5, 7, 1, 3, 5, 7 };
	v8i lower = row[1] > row[0], right, which;
	v8f best = SELECT(lower, row[1], row[0]);
	v8f left = __builtin_shuffle(best, even), other = __builtin_shuffle(best, odd);

	right = other > left;
	best = SELECT(right, other, left);
	which = (right & __builtin_shuffle(lower, odd)) | (~right & __builtin_shuffle(lower, even));
	which = (which & 2) | (right & 1);
	for (int i = 0; i < LANES / 2; i++) {
		out[i] = best[i];
		choice[i] = (uint8_t)which[i];
	}
}

KERNEL_CLONES static void conv_pool_one(const struct layer *l, const float *packed, const float *in,
					float *out, uint8_t *choice)
{
	const size_t side = l->side_in, pooled = side_out(l);

	for (size_t group = 0; group < l->channels_out; group += GROUP) {
		const float *group_weight = packed + group * l->channels_in * TAPS;

		for (size_t y = 0; y < pooled; y++) {
			for (size_t x = 0; x < pooled; x += LANES / 2) {
				const float *w = group_weight, *from = in + 2 * y * side + 2 * x;
				v8f acc[GROUP][2] = { 0 };

				for (size_t c = 0; c < l->channels_in; c++, from += side * side) {
					for (int ky = 0; ky < SIDE; ky++) {
						for (int kx = 0; kx < SIDE; kx++, w += GROUP) {
							const float *p = from + (size_t)ky * side + kx;
							v8f up = *(const v8f_any *)p;
							v8f down = *(const v8f_any *)(p + side);

							for (int o = 0; o < GROUP; o++) {
								acc[o][0] += up * w[o];
								acc[o][1] += down * w[o];
							}
						}
					}
				}
				for (size_t o = 0; o < GROUP; o++) {
					size_t at = ((group + o) * pooled + y) * pooled + x;

					pool_tile(acc[o], out + at, choice + at);
				}
			}
		}
	}
}

static void conv_forward(const struct layer *l, const struct layer_pass *p)
{
	const float *bias = p->param + n_packed(l);
	size_t area = side_out(l) * side_out(l);

	pack_by_tap(l, p->param, p->scratch);
	for (size_t i = 0; i < p->n; i++) {
		float *to = p->out + i * l->n_out;

		conv_pool_one(l, p->scratch, p->in + i * l->n_in, to, p->choice + i * l->n_out);
		for (size_t o = 0; o < l->channels_out; o++)
			for (size_t k = 0; k < area; k++)
				to[o * area + k] += bias[o];
		activation_apply(l->activation, to, l->n_out);
	}
}

/* ---- backward ---- */

/* Where in a channel of the input the window of each pooled value starts. */
KERNEL_INLINE void offsets_of(const uint8_t *choice, size_t pooled, size_t side, uint16_t *out)
{
	for (size_t y = 0; y < pooled; y++)
		for (size_t x = 0; x < pooled; x++) {
			size_t k = y * pooled + x;

			out[k] = (uint16_t)((2 * y + (choice[k] >> 1)) * side + 2 * x + (choice[k] & 1));
		}
}

#define MAX_AREA 1024 /* pooled values a channel: pictures of up to 68 x 68 */

KERNEL_CLONES static void conv_back_one(const struct layer *l, const float *weight_row, const float *in,
					const uint8_t *choice, const float *d_out, float *d_in,
					float *grad_row, float *grad_bias)
{
	const size_t side = l->side_in, pooled = side_out(l), area = pooled * pooled;
	uint16_t offset[MAX_AREA];

	for (size_t o = 0; o < l->channels_out; o++) {
		const float *d = d_out + o * area;
		float sum = 0.0f;

		offsets_of(choice + o * area, pooled, side, offset);
		for (size_t k = 0; k < area; k++)
			sum += d[k];
		grad_bias[o] += sum;
		for (size_t c = 0; c < l->channels_in; c++) {
			size_t row = (o * l->channels_in + c) * SIDE * LANES;
			const float *from = in + c * side * side;
			v8f_any *grad = (v8f_any *)(grad_row + row);
			v8f even[SIDE], odd[SIDE];

			for (int ky = 0; ky < SIDE; ky++) {
				even[ky] = grad[ky];
				odd[ky] = (v8f){ 0 };
			}
			/* In two sums, or each multiply-add would wait for the one before it. */
			for (size_t k = 0; k < area; k += 2) {
				const float *p = from + offset[k], *q = from + offset[k + 1];

				for (int ky = 0; ky < SIDE; ky++, p += side, q += side) {
					even[ky] += *(const v8f_any *)p * d[k];
					odd[ky] += *(const v8f_any *)q * d[k + 1];
				}
			}
			for (int ky = 0; ky < SIDE; ky++)
				grad[ky] = even[ky] + odd[ky];
		}
		if (!d_in)
			continue;
		/* Channels inside, places outside: neighbours overlap, and a load that overlaps a store just
		 * made waits for it. Lanes past the fifth add zero: cheaper than leaving them out. */
		for (size_t k = 0; k < area; k++) {
			const v8f_any *w = (const v8f_any *)(weight_row + o * l->channels_in * SIDE * LANES);

			for (size_t c = 0; c < l->channels_in; c++) {
				float *p = d_in + c * side * side + offset[k];

				for (int ky = 0; ky < SIDE; ky++, p += side)
					*(v8f_any *)p += *w++ * d[k];
			}
		}
	}
}

static void conv_backward(const struct layer *l, const struct layer_pass *p)
{
	float *weight_row = p->scratch + n_packed(l), *grad_row = weight_row + n_rows(l);
	float *grad_bias = p->grad + n_packed(l);

	memset(weight_row, 0, 2 * n_rows(l) * sizeof *weight_row);
	memset(grad_bias, 0, l->channels_out * sizeof *grad_bias);
	for (size_t k = 0; k < n_packed(l); k++)
		weight_row[k / SIDE * LANES + k % SIDE] = p->param[k];
	activation_back(l->activation, p->out, p->d_out, p->n * l->n_out);
	if (p->d_in)
		memset(p->d_in, 0, p->n * l->n_in * sizeof *p->d_in);
	for (size_t i = 0; i < p->n; i++)
		conv_back_one(l, weight_row, p->in + i * l->n_in, p->choice + i * l->n_out,
			      p->d_out + i * l->n_out, p->d_in ? p->d_in + i * l->n_in : NULL, grad_row,
			      grad_bias);
	for (size_t k = 0; k < n_packed(l); k++)
		p->grad[k] = grad_row[k / SIDE * LANES + k % SIDE];
}

struct layer layer_conv(size_t channels_in, size_t channels_out, size_t side_in)
{
	static const struct layer_ops ops = { "conv", conv_choices, conv_scratch, conv_forward,
					      conv_backward };
	size_t pooled = (side_in - SIDE + 1) / 2;

	assert(channels_out % GROUP == 0 && side_in > SIDE && (side_in - SIDE + 1) % LANES == 0);
	assert(pooled * pooled <= MAX_AREA && pooled % 2 == 0);
	return (struct layer){ .ops = &ops,
			       .n_in = channels_in * side_in * side_in,
			       .n_out = channels_out * pooled * pooled,
			       .n_params = channels_in * channels_out * TAPS + channels_out,
			       .fan_in = channels_in * TAPS,
			       .activation = ACTIVATION_TANH,
			       .channels_in = channels_in,
			       .channels_out = channels_out,
			       .side_in = side_in };
}
