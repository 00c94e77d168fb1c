/* The layers: outputs against loops written as the definition reads, derivatives against differences. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "tests/support/test.h"
#include "workloads/kernel.h"
#include "workloads/layer.h"
#include "workloads/net.h"
#include "workloads/sgd.h"

#define RECORDS 3

/* ---- one layer with everything it needs, filled at random ---- */

struct bed {
	struct layer l;
	float *param, *in, *out, *d_out, *d_in, *grad, *scratch, *direction;
	uint8_t *choice;
};

static float *floats(size_t n, struct rng *rng)
{
	float *v = calloc(n + KERNEL_SLACK, sizeof *v);

	assert_non_null(v);
	for (size_t i = 0; rng && i < n; i++)
		v[i] = (float)(2.0 * rng_uniform(rng) - 1.0);
	return v;
}

static void bed_init(struct bed *b, struct layer l, uint64_t seed)
{
	struct rng rng = rng_stream(seed, 0);

	b->l = l;
	b->param = floats(l.n_params, &rng);
	for (size_t i = 0; i < l.n_params; i++)
		b->param[i] *= 2.0f / sqrtf((float)l.fan_in);
	b->in = floats(RECORDS * l.n_in, &rng);
	b->out = floats(RECORDS * l.n_out, NULL);
	b->d_out = floats(RECORDS * l.n_out, NULL);
	b->d_in = floats(RECORDS * l.n_in, NULL);
	b->grad = floats(l.n_params, NULL);
	b->scratch = floats(l.ops->n_scratch(&l), NULL);
	b->direction = floats(RECORDS * l.n_out, &rng);
	b->choice = calloc(RECORDS * l.ops->n_choices(&l) + 1, 1);
	assert_non_null(b->choice);
}

static void bed_release(struct bed *b)
{
	free(b->param);
	free(b->in);
	free(b->out);
	free(b->d_out);
	free(b->d_in);
	free(b->grad);
	free(b->scratch);
	free(b->direction);
	free(b->choice);
}

static struct layer_pass pass(const struct bed *b)
{
	return (struct layer_pass){ .param = b->param,
				    .in = b->in,
				    .n = RECORDS,
				    .out = b->out,
				    .choice = b->choice,
				    .scratch = b->scratch,
				    .d_out = b->d_out,
				    .d_in = b->d_in,
				    .grad = b->grad };
}

/* The scalar whose derivatives are checked: the output along a random direction. */
static double along(struct bed *b)
{
	struct layer_pass p = pass(b);
	double sum = 0.0;

	b->l.ops->forward(&b->l, &p);
	for (size_t i = 0; i < RECORDS * b->l.n_out; i++)
		sum += (double)b->out[i] * b->direction[i];
	return sum;
}

/* Central differences of *v. A kink (ReLU, max) between the two points shows in that the slopes to the left
 * and to the right differ: such places say nothing, and are skipped. */
static int difference(struct bed *b, float *v, double *out)
{
	const float h = 0.0005f;
	double here = along(b), up, down;
	float kept = *v;

	*v = kept + h;
	up = along(b);
	*v = kept - h;
	down = along(b);
	*v = kept;
	*out = (up - down) / (2.0 * (double)h);
	return fabs(up - 2.0 * here + down) / (double)h < 3e-3 * (1.0 + fabs(*out));
}

static void check_gradients(struct layer l, uint64_t seed)
{
	struct rng rng = rng_stream(seed, 1);
	struct layer_pass p;
	struct bed b;
	int checked = 0;

	bed_init(&b, l, seed);
	along(&b);
	memcpy(b.d_out, b.direction, RECORDS * l.n_out * sizeof *b.d_out);
	p = pass(&b);
	l.ops->backward(&l, &p);
	for (int i = 0; i < 400; i++) {
		/* the last parameters are the biases: every fourth look is at one */
		size_t k = i % 4 ? rng_below(&rng, (uint32_t)l.n_params) : l.n_params - 1 - (size_t)i / 4 % 6;
		size_t j = rng_below(&rng, (uint32_t)(RECORDS * l.n_in));
		double d;

		/* 6e-3: sums of a thousand floats, differenced over 0.001, and half of what counts as no
		 * kink */
		if (difference(&b, &b.param[k], &d)) {
			checked++;
			assert_float_equal(b.grad[k], d, 6e-3 * (1.0 + fabs(d)));
		}
		if (difference(&b, &b.in[j], &d)) {
			checked++;
			assert_float_equal(b.d_in[j], d, 6e-3 * (1.0 + fabs(d)));
		}
	}
	assert_true(checked > 400);
	bed_release(&b);
}

TEST(test_dense_gradients_agree_with_differences)
{
	check_gradients(layer_dense(37, 11, ACTIVATION_NONE), 1);
	check_gradients(layer_dense(23, 41, ACTIVATION_RELU), 2);
	check_gradients(layer_dense(19, 8, ACTIVATION_TANH), 3);
}

TEST(test_conv_gradients_agree_with_differences)
{
	check_gradients(layer_conv(1, 6, 28), 4);
	check_gradients(layer_conv(6, 12, 12), 5);
	check_gradients(layer_conv(2, 6, 20), 6);
}

TEST(test_gradient_is_written_not_added_to)
{
	const struct layer all[] = { layer_dense(9, 5, ACTIVATION_TANH), layer_conv(6, 12, 12) };

	for (size_t k = 0; k < 2; k++) {
		const struct layer *l = &all[k];
		struct layer_pass p;
		float *first;
		struct bed b;

		bed_init(&b, *l, 7);
		first = floats(l->n_params, NULL);
		along(&b);
		memcpy(b.d_out, b.direction, RECORDS * l->n_out * sizeof *b.d_out);
		p = pass(&b);
		l->ops->backward(l, &p);
		memcpy(first, b.grad, l->n_params * sizeof *first);
		memcpy(b.d_out, b.direction, RECORDS * l->n_out * sizeof *b.d_out);
		p.d_in = NULL;
		l->ops->backward(l, &p);
		assert_memory_equal(first, b.grad, l->n_params * sizeof *first);
		free(first);
		bed_release(&b);
	}
}

/* ---- outputs ---- */

TEST(test_dense_output_is_the_matrix_product)
{
	struct layer l = layer_dense(13, 7, ACTIVATION_RELU);
	struct bed b;

	bed_init(&b, l, 8);
	along(&b);
	for (size_t r = 0; r < RECORDS; r++) {
		for (size_t o = 0; o < l.n_out; o++) {
			double sum = b.param[l.n_in * l.n_out + o];

			for (size_t i = 0; i < l.n_in; i++)
				sum += (double)b.in[r * l.n_in + i] * b.param[i * l.n_out + o];
			assert_float_equal(b.out[r * l.n_out + o], fmax(sum, 0.0), 1e-5);
		}
	}
	bed_release(&b);
}

/* Convolution, then tanh, then the maximum of each 2x2: in the order the network is described in. */
static double conv_by_definition(const struct bed *b, size_t r, size_t o, size_t py, size_t px)
{
	const struct layer *l = &b->l;
	double best = -2.0;

	for (size_t y = 2 * py; y < 2 * py + 2; y++) {
		for (size_t x = 2 * px; x < 2 * px + 2; x++) {
			double sum = b->param[l->channels_in * l->channels_out * 25 + o];

			for (size_t c = 0; c < l->channels_in; c++)
				for (size_t k = 0; k < 25; k++)
					sum += (double)b->param[(o * l->channels_in + c) * 25 + k] *
					       b->in[r * l->n_in + (c * l->side_in + y + k / 5) * l->side_in +
						     x + k % 5];
			best = fmax(best, tanh(sum));
		}
	}
	return best;
}

TEST(test_conv_output_is_tanh_then_pool)
{
	const struct layer all[] = { layer_conv(1, 6, 28), layer_conv(6, 12, 12) };

	for (size_t k = 0; k < 2; k++) {
		size_t side = (all[k].side_in - 4) / 2, at = 0;
		struct bed b;

		bed_init(&b, all[k], 9 + k);
		along(&b);
		for (size_t r = 0; r < RECORDS; r++)
			for (size_t o = 0; o < all[k].channels_out; o++)
				for (size_t y = 0; y < side; y++)
					for (size_t x = 0; x < side; x++, at++)
						assert_float_equal(b.out[at],
								   conv_by_definition(&b, r, o, y, x), 2e-6);
		bed_release(&b);
	}
}

TEST(test_tanh_is_right_to_the_last_digits)
{
	double worst = 0.0;

	for (float x = 1e-30f; x < 12.0f; x *= 1.0007f) {
		float v[2] = { x, -x };

		activation_apply(ACTIVATION_TANH, v, 2);
		assert_true(v[0] == -v[1]);
		worst = fmax(worst, fabs(v[0] / tanh((double)x) - 1.0));
	}
	assert_true(worst < 3.0 * 0x1p-23);
}

TEST(test_tanh_at_its_ends)
{
	float v[6] = { 0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1000.0f };

	activation_apply(ACTIVATION_TANH, v, 6);
	assert_true(v[0] == 0.0f && v[1] == 0.0f && signbit(v[1]));
	assert_true(v[2] == 1.0f && v[3] == -1.0f && v[5] == 1.0f);
	assert_true(isnan(v[4])); /* a job that diverged must look like one */
}

/* ---- the loss ---- */

TEST(test_loss_of_known_scores)
{
	/* exp: 1, 2, 5 of 8: -ln(2/8) for label 1, -ln(5/8) for label 2 */
	float s[6] = { 0.0f, 0.69314718f, 1.60943791f, 0.0f, 0.69314718f, 1.60943791f };
	const uint8_t label[2] = { 1, 2 };
	size_t correct;

	assert_float_equal(loss_back(s, label, 2, 3, 0.5f, &correct), 1.38629436 + 0.47000363, 1e-6);
	assert_int_equal(correct, 1);
	assert_float_equal(s[0], 0.5 * 1 / 8, 1e-6);
	assert_float_equal(s[1], 0.5 * (2.0 / 8 - 1), 1e-6);
	assert_float_equal(s[5], 0.5 * (5.0 / 8 - 1), 1e-6);
}

TEST(test_loss_of_huge_scores_stays_finite)
{
	float s[3] = { 3e4f, -3e4f, 0.0f };
	const uint8_t label[1] = { 1 };
	size_t correct;

	assert_float_equal(loss_back(s, label, 1, 3, 1.0f, &correct), 6e4, 1e-2);
	assert_int_equal(correct, 0);
	assert_float_equal(s[0], 1.0, 0.0);
	assert_float_equal(s[1], -1.0, 0.0);
}

TEST(test_loss_gradient_agrees_with_differences)
{
	struct rng rng = rng_stream(11, 0);
	float s[20], d[20];
	const uint8_t label[2] = { 3, 9 };
	size_t correct;

	for (size_t i = 0; i < 20; i++)
		s[i] = (float)(3.0 * rng_normal(&rng));
	memcpy(d, s, sizeof d);
	loss_back(d, label, 2, 10, 1.0f, &correct);
	for (size_t i = 0; i < 20; i++) {
		float up[20], down[20];

		memcpy(up, s, sizeof s);
		memcpy(down, s, sizeof s);
		up[i] += 0.01f;
		down[i] -= 0.01f;
		assert_float_equal(d[i],
				   (loss_back(up, label, 2, 10, 1.0f, &correct) -
				    loss_back(down, label, 2, 10, 1.0f, &correct)) /
					   0.02,
				   5e-4);
	}
}

TEST(test_sgd_steps_and_decays)
{
	float p[3] = { 1.0f, -2.0f, 0.25f };
	const float g[3] = { 4.0f, -8.0f, 1.0f };

	sgd_step(p, g, 3, 0.125f);
	assert_true(p[0] == 0.5f && p[1] == -1.0f && p[2] == 0.125f);
	assert_float_equal(sgd_rate(0.3, 0.01, 0), 0.3, 0.0);
	assert_float_equal(sgd_rate(0.3, 0.01, 200), 0.1, 1e-12);
	assert_float_equal(sgd_rate(0.3, 0.0, 1000000), 0.3, 0.0);
}
