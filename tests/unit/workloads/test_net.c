/* workloads/net: both networks have the parameters of the paper's, gradients that agree with differences, and
 * learn. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "tests/support/test.h"
#include "workloads/digits.h"
#include "workloads/kernel.h"
#include "workloads/net.h"
#include "workloads/sgd.h"

#define RECORDS 20

static const char *const network[] = { "simplenet", "lenet5" };

struct bed {
	struct net net;
	struct net_room room;
	float *param, *grad;
	uint8_t label[RECORDS];
};

static void bed_init(struct bed *b, const char *name, uint64_t seed)
{
	struct err err = { 0 };

	assert_int_equal(net_find(name, &b->net, &err), 0);
	assert_int_equal(net_room_init(&b->room, &b->net, RECORDS, &err), 0);
	b->param = calloc(b->net.n_params + KERNEL_SLACK, sizeof(float));
	b->grad = calloc(b->net.n_params + KERNEL_SLACK, sizeof(float));
	assert_true(b->param && b->grad);
	net_first_params(&b->net, seed, b->param);
	for (size_t r = 0; r < RECORDS; r++) {
		uint8_t pixel[NET_INPUTS];

		b->label[r] = digits_draw(seed, 0, r, pixel);
		for (size_t i = 0; i < NET_INPUTS; i++)
			b->room.input[r * NET_INPUTS + i] = (float)pixel[i] / 80.0f - 0.4f;
	}
}

static void bed_release(struct bed *b)
{
	net_room_release(&b->room);
	net_room_release(&b->room);
	free(b->param);
	free(b->grad);
}

static double loss_of(struct bed *b)
{
	struct net_score score;

	net_test(&b->net, b->param, &b->room, b->label, RECORDS, &score);
	return score.loss / RECORDS;
}

TEST(test_net_has_the_layers_of_the_paper)
{
	struct err err = { 0 };
	struct net net;

	assert_int_equal(net_find("simplenet", &net, &err), 0);
	assert_int_equal(net.n_params, 784 * 128 + 128 + 128 * 10 + 10);
	assert_int_equal(net_find("lenet5", &net, &err), 0);
	assert_int_equal(net.n_params, 6 * 25 + 6 + 12 * 6 * 25 + 12 + 192 * 100 + 100 + 100 * 10 + 10);
	for (size_t k = 0; k + 1 < net.n_layers; k++)
		assert_int_equal(net.layer[k].n_out, net.layer[k + 1].n_in);
}

TEST(test_net_of_another_name_is_refused)
{
	struct err err = { 0 };
	struct net net;

	assert_int_equal(net_find("lenet", &net, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "did you mean lenet5?"));
}

/* Along whole directions, where the differences are large against the rounding of floats: the gradient's own,
 * and random ones in each layer apart. */
static void check_direction(struct bed *b, const float *direction, const char *what)
{
	size_t n = b->net.n_params;
	float *kept = malloc(n * sizeof *kept);
	double want = 0.0, got[2], length = 0.0;

	assert_non_null(kept);
	memcpy(kept, b->param, n * sizeof *kept);
	for (size_t i = 0; i < n; i++) {
		want += (double)b->grad[i] * direction[i];
		length += (double)direction[i] * direction[i];
	}
	length = sqrt(length);
	for (int k = 0; k < 2; k++) {
		for (size_t i = 0; i < n; i++)
			b->param[i] = kept[i] + (float)((k ? -0.0005 : 0.0005) / length) * direction[i];
		got[k] = loss_of(b);
	}
	memcpy(b->param, kept, n * sizeof *kept);
	free(kept);
	want /= length;
	/* 3e-3: the second-order term cancels, kinks of ReLU and max do not quite */
	if (fabs((got[0] - got[1]) / 0.001 - want) > 3e-3 * (0.1 + fabs(want)))
		fail_msg("%s, %s: derivative %.6f, differences %.6f", b->net.name, what, want,
			 (got[0] - got[1]) / 0.001);
}

TEST(test_net_gradients_agree_with_differences)
{
	for (size_t k = 0; k < 2; k++) {
		struct rng rng = rng_stream(31, k);
		struct net_score score;
		float *direction;
		size_t at = 0;
		struct bed b;

		bed_init(&b, network[k], 5);
		net_train(&b.net, b.param, &b.room, b.label, RECORDS, 1.0f / RECORDS, b.grad, &score);
		assert_float_equal(score.loss / RECORDS, loss_of(&b), 1e-9);
		check_direction(&b, b.grad, "along the gradient");
		direction = calloc(b.net.n_params, sizeof *direction);
		assert_non_null(direction);
		for (size_t l = 0; l < b.net.n_layers; at += b.net.layer[l++].n_params) {
			for (int turn = 0; turn < 3; turn++) {
				memset(direction, 0, b.net.n_params * sizeof *direction);
				for (size_t i = 0; i < b.net.layer[l].n_params; i++)
					direction[at + i] = (float)rng_normal(&rng);
				check_direction(&b, direction, b.net.layer[l].ops->name);
			}
		}
		free(direction);
		bed_release(&b);
	}
}

TEST(test_net_gradient_of_parts_adds_up_to_that_of_the_whole)
{
	for (size_t k = 0; k < 2; k++) {
		struct net_score score;
		struct bed b;
		float *whole;
		size_t half = RECORDS / 2;

		bed_init(&b, network[k], 6);
		whole = malloc(b.net.n_params * sizeof *whole);
		assert_non_null(whole);
		net_train(&b.net, b.param, &b.room, b.label, RECORDS, 1.0f / RECORDS, b.grad, &score);
		memcpy(whole, b.grad, b.net.n_params * sizeof *whole);
		net_train(&b.net, b.param, &b.room, b.label, half, 1.0f / RECORDS, b.grad, &score);
		for (size_t i = 0; i < b.net.n_params; i++)
			whole[i] -= b.grad[i];
		memmove(b.room.input, b.room.input + half * NET_INPUTS, half * NET_INPUTS * sizeof(float));
		net_train(&b.net, b.param, &b.room, b.label + half, half, 1.0f / RECORDS, b.grad, &score);
		for (size_t i = 0; i < b.net.n_params; i++)
			assert_float_equal(whole[i], b.grad[i], 1e-5);
		free(whole);
		bed_release(&b);
	}
}

TEST(test_net_gradient_of_no_records_is_zero)
{
	struct net_score score;
	struct bed b;

	bed_init(&b, "lenet5", 7);
	memset(b.grad, 0x55, b.net.n_params * sizeof *b.grad);
	net_train(&b.net, b.param, &b.room, b.label, 0, 1.0f, b.grad, &score);
	for (size_t i = 0; i < b.net.n_params; i++)
		assert_true(b.grad[i] == 0.0f);
	assert_true(score.loss == 0.0 && score.correct == 0);
	bed_release(&b);
}

TEST(test_net_first_params_come_from_the_seed)
{
	struct bed a, b, c;

	bed_init(&a, "lenet5", 8);
	bed_init(&b, "lenet5", 8);
	bed_init(&c, "lenet5", 9);
	assert_memory_equal(a.param, b.param, a.net.n_params * sizeof(float));
	assert_memory_not_equal(a.param, c.param, a.net.n_params * sizeof(float));
	for (size_t i = 0; i < 156; i++)
		assert_true(fabsf(a.param[i]) <= 0.2f); /* 1 / sqrt(25) */
	bed_release(&a);
	bed_release(&b);
	bed_release(&c);
}

TEST(test_net_learns_a_few_records_by_heart)
{
	for (size_t k = 0; k < 2; k++) {
		struct net_score score;
		struct bed b;

		bed_init(&b, network[k], 10);
		assert_true(loss_of(&b) > 1.8); /* ln 10 = 2.3 is guessing */
		for (int i = 0; i < 300; i++) {
			net_train(&b.net, b.param, &b.room, b.label, RECORDS, 1.0f / RECORDS, b.grad, &score);
			sgd_step(b.param, b.grad, b.net.n_params, 0.1f);
		}
		net_test(&b.net, b.param, &b.room, b.label, RECORDS, &score);
		assert_int_equal(score.correct, RECORDS);
		assert_true(score.loss / RECORDS < 0.1);
		bed_release(&b);
	}
}

TEST(test_net_room_without_memory_is_an_error)
{
	struct err err = { 0 };
	struct net_room room;
	struct net net;

	assert_int_equal(net_find("lenet5", &net, &err), 0);
	for (unsigned long k = 1;; k++) {
		int rc;

		mem_fail_at(k, false);
		rc = net_room_init(&room, &net, 3, &err);
		mem_fail_at(0, false);
		if (!rc)
			break;
		assert_int_equal(rc, -ERR_NOMEM);
		assert_null(room.input);
		assert_true(k < 100);
	}
	net_room_release(&room);
	assert_int_equal(net_room_init(&room, &net, SIZE_MAX / 2, &err), -ERR_NOMEM);
}
