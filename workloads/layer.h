/* A layer: its floats per record in and out, and its share of the parameters of the network. layer_dense.c
 * and layer_conv.c are the two kinds; net.c strings them together. Records lie one after the other. */
#ifndef WORKLOADS_LAYER_H
#define WORKLOADS_LAYER_H

#include <stddef.h>
#include <stdint.h>

#include "common/rng.h"

/* ---- activation.c: the functions between layers, in place, and their derivatives from their results ---- */
enum activation { ACTIVATION_NONE, ACTIVATION_RELU, ACTIVATION_TANH };

void activation_apply(enum activation a, float *v, size_t n);
/* d[i] *= derivative, where y[i] is what activation_apply() gave. */
void activation_back(enum activation a, const float *y, float *d, size_t n);

/* n records on their way through a layer. */
struct layer_pass {
	const float *param, *in;
	size_t n;
	float *out;      /* forward() writes it, and what backward() needs into `choice` */
	uint8_t *choice;
	float *scratch;
	/* The derivative of the loss by `out`, which backward() uses up. It writes d_in and grad, and adds
	 * to neither; d_in is NULL for the first layer. */
	float *d_out, *d_in, *grad;
};

struct layer;

struct layer_ops {
	const char *name;
	size_t (*n_choices)(const struct layer *l); /* bytes a record that forward() leaves for backward() */
	size_t (*n_scratch)(const struct layer *l); /* floats that do not depend on the number of records */
	void (*forward)(const struct layer *l, const struct layer_pass *p);
	void (*backward)(const struct layer *l, const struct layer_pass *p);
};

struct layer {
	const struct layer_ops *ops;
	size_t n_in, n_out; /* floats a record */
	size_t n_params;
	size_t fan_in; /* how many inputs one output sums: the scale of the first weights */
	enum activation activation; /* on what the layer gives */
	size_t channels_in, channels_out, side_in; /* of a convolution: square pictures, channel by channel */
};

/* Weights [n_in][n_out], then n_out biases; out = activation(in x weights + biases). */
struct layer layer_dense(size_t n_in, size_t n_out, enum activation a);

/* Convolution 5x5 (weights [channels_out][channels_in][5][5], then a bias each), tanh, max-pool 2x2.
 * channels_out is a multiple of 6, and side_in - 4 one of 8, as those of LeNet-5 are. */
struct layer layer_conv(size_t channels_in, size_t channels_out, size_t side_in);

#endif
