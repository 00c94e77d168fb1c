/* A fitted dense net with one output. automl/techniques/network.c fits it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/models/campaign_models.h"

#define MAX_WIDTH 1024

static const char *const activation_words[] = { "relu", "tanh", "sigmoid", NULL };
static const char *const optimizer_words[] = { "adam", "sgd", NULL };
static const char *const loss_words[] = { "mse", "mae", NULL };

void network_destroy(void *self)
{
	struct network *m = self;

	if (m)
		free(m->weights);
	free(m);
}

/* Points the layers into one array of weights. */
void network_place(struct network *m, double *weights)
{
	for (size_t k = 0; k < m->n_layers; k++) {
		struct layer *l = &m->layer[k];

		l->w = weights;
		weights += (size_t)l->in * l->out;
		l->b = weights;
		weights += l->out;
	}
}

struct network *network_new(size_t n_features, const uint32_t *width, size_t n_hidden)
{
	struct network *m = mem_calloc(1, sizeof *m);

	if (!m)
		return NULL;
	m->n_features = n_features;
	m->n_layers = n_hidden + 1;
	for (size_t k = 0; k < m->n_layers; k++) {
		m->layer[k].in = k ? m->layer[k - 1].out : (uint32_t)n_features;
		m->layer[k].out = k < n_hidden ? width[k] : 1;
		m->n_weights += ((size_t)m->layer[k].in + 1) * m->layer[k].out;
	}
	m->weights = mem_calloc(m->n_weights, sizeof *m->weights);
	if (!m->weights) {
		network_destroy(m);
		return NULL;
	}
	network_place(m, m->weights);
	return m;
}

double network_activate(uint8_t how, double v)
{
	return how == ACTIVATE_RELU   ? (v > 0.0 ? v : 0.0)
	       : how == ACTIVATE_TANH ? tanh(v)
				      : 1.0 / (1.0 + exp(-v));
}

/* A row at a time, in scratch on the stack. */
void network_predict(const void *self, const double *x, size_t n_rows, double *out)
{
	const struct network *m = self;
	double a[MAX_WIDTH], b[MAX_WIDTH];

	for (size_t i = 0; i < n_rows; i++) {
		const double *in = x + i * m->n_features;
		double *to = a, *other = b;

		for (size_t k = 0; k < m->n_layers; k++) {
			const struct layer *l = &m->layer[k];

			memcpy(to, l->b, l->out * sizeof *to);
			for (size_t f = 0; f < l->in; f++)
				for (size_t j = 0; j < l->out; j++)
					to[j] += in[f] * l->w[f * l->out + j];
			for (size_t j = 0; k + 1 < m->n_layers && j < l->out; j++)
				to[j] = network_activate(m->activation, to[j]);
			in = to;
			to = other;
			other = (double *)in;
		}
		out[i] = in[0];
	}
}

void network_describe(const void *self, const struct dataset *names, struct json_writer *w)
{
	const struct network *m = self;

	(void)names;
	json_kv_open(w, "layers", '[');
	for (size_t k = 0; k < m->n_layers; k++)
		json_put_int(w, m->layer[k].out);
	json_close(w, ']');
	json_kv_string(w, "activation", activation_words[m->activation]);
}

int network_save(const void *self, struct writer *w, struct err *err)
{
	const struct network *m = self;

	write_u32(w, (uint32_t)m->n_features);
	write_u8(w, (uint8_t)(m->n_layers - 1));
	write_u8(w, m->activation);
	for (size_t k = 0; k + 1 < m->n_layers; k++)
		write_u32(w, m->layer[k].out);
	for (size_t i = 0; i < m->n_weights; i++)
		write_f64(w, m->weights[i]);
	return w->out.failed ? err_nomem(err, "a neural network") : 0;
}

int network_load(struct reader *r, size_t n_features, void **out_self, struct err *err)
{
	uint32_t n = read_u32(r), width[NETWORK_MAX_LAYERS];
	uint8_t hidden = read_u8(r), activation = read_u8(r);
	struct network *m;
	bool ok = !r->failed && n == n_features && n <= DATASET_MAX_FEATURES &&
		  hidden <= NETWORK_MAX_LAYERS && activation <= ACTIVATE_SIGMOID;
	size_t weights = 0, in = n;

	for (size_t k = 0; ok && k < hidden; k++) {
		width[k] = read_u32(r);
		ok = width[k] >= 1 && width[k] <= MAX_WIDTH;
		weights += (in + 1) * (ok ? width[k] : 0);
		in = width[k];
	}
	if (!ok || r->failed || (weights + in + 1) > read_left(r) / 8)
		return err_fail(err, ERR_FORMAT,
				"neural network: its layers are out of range or it ends early");
	m = network_new(n, width, hidden);
	if (!m)
		return err_nomem(err, "a neural network");
	m->activation = activation;
	for (size_t i = 0; i < m->n_weights; i++)
		ok &= isfinite(m->weights[i] = read_f64(r));
	if (!ok || r->failed) {
		network_destroy(m);
		return err_fail(err, ERR_FORMAT, "neural network: a weight is not a number");
	}
	*out_self = m;
	return 0;
}

#define LAYER(NAME, WIDTH)                                                                                   \
	{                                                                                                    \
		.name = NAME, .otherwise = (WIDTH), .max = MAX_WIDTH, .integer = true,                       \
		.help = "cells; 0: no such layer"                                                            \
	}
#define DROPOUT(NAME, SHARE)                                                                                 \
	{                                                                                                    \
		.name = NAME, .otherwise = (SHARE), .max = 0.95, .help = "share of cells left out"           \
	}
const struct setting_spec network_spec[] = {
	LAYER("layer1", 20),
	LAYER("layer2", 10),
	LAYER("layer3", 0),
	LAYER("layer4", 0),
	DROPOUT("dropout1", 0.2),
	DROPOUT("dropout2", 0.2),
	DROPOUT("dropout3", 0),
	DROPOUT("dropout4", 0),
	{ .name = "activation", .max = 2, .words = activation_words, .help = "of the hidden layers" },
	{ .name = "optimizer", .max = 1, .words = optimizer_words, .help = "adam or sgd" },
	{ .name = "learning_rate", .otherwise = 0.001, .min = 1e-12, .max = 100, .help = "size of a step" },
	{ .name = "loss", .max = 1, .words = loss_words, .help = "squared or absolute error" },
	{ .name = "batch_size",
	  .otherwise = 10,
	  .min = 1,
	  .max = 1e6,
	  .integer = true,
	  .help = "rows of a step" },
	{ .name = "epochs",
	  .otherwise = 5,
	  .min = 1,
	  .max = 1e6,
	  .integer = true,
	  .help = "passes over the rows" },
	{ .name = "patience",
	  .max = 1e6,
	  .integer = true,
	  .help = "epochs without progress; 0: never stop early" },
	{ .name = NULL },
};
