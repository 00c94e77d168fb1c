/* The technique NeuralNetwork: a dense net with one output. Layers of relu, tanh or sigmoid with dropout
 * behind each; squared or absolute error; stochastic gradient descent or Adam (Kingma and Ba, ICLR 2015),
 * with Keras' constants and its way to draw first weights (Glorot and Bengio, AISTATS 2010). The products
 * of matrices are OpenBLAS's. With `patience` a share of the rows is held back, training ends when the
 * error on them has not fallen for so many epochs, and the weights of the best epoch are kept. */
#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "automl/techniques/models.h"

#define HELD_BACK 0.15 /* of the rows, to see when to stop */

/* The slope, from the value after activation. */
static double slope(uint8_t how, double a)
{
	return how == ACTIVATE_RELU ? (a > 0.0) : how == ACTIVATE_TANH ? 1.0 - a * a : a * (1.0 - a);
}

struct training {
	struct network *m;
	const struct dataset *d;
	bool absolute, adam;
	double rate, dropout[NETWORK_MAX_LAYERS];
	size_t batch;
	double *gradient, *moment, *square; /* n_weights each */
	struct layer slope_of[NETWORK_MAX_LAYERS + 1]; /* into gradient */
	double *value[NETWORK_MAX_LAYERS + 2]; /* value[0]: the inputs of a batch; then the layers' outputs */
	double *keep[NETWORK_MAX_LAYERS]; /* what dropout multiplies by */
	double *error[NETWORK_MAX_LAYERS + 1];
	uint32_t *row;
	size_t n_train;
	double steps;
	struct rng rng;
};

static void training_release(struct training *t)
{
	free(t->gradient);
	free(t->moment);
	free(t->square);
	free(t->row);
	for (size_t k = 0; k < NETWORK_MAX_LAYERS + 2; k++)
		free(t->value[k]);
	for (size_t k = 0; k < NETWORK_MAX_LAYERS; k++)
		free(t->keep[k]);
	for (size_t k = 0; k <= NETWORK_MAX_LAYERS; k++)
		free(t->error[k]);
}

static int training_room(struct training *t, struct err *err)
{
	struct network *m = t->m, layers = *m;
	bool ok;

	t->gradient = mem_calloc(m->n_weights, sizeof(double));
	t->moment = mem_calloc(m->n_weights, sizeof(double));
	t->square = mem_calloc(m->n_weights, sizeof(double));
	t->row = mem_array(t->d->n_rows, sizeof *t->row);
	ok = t->gradient && t->moment && t->square && t->row;
	t->value[0] = mem_array(t->batch * m->n_features, sizeof(double));
	ok = ok && t->value[0];
	for (size_t k = 0; k < m->n_layers && ok; k++) {
		size_t n = t->batch * m->layer[k].out;

		t->value[k + 1] = mem_array(n, sizeof(double));
		t->error[k] = mem_array(n, sizeof(double));
		ok = t->value[k + 1] && t->error[k];
		if (k + 1 < m->n_layers) {
			t->keep[k] = mem_array(n, sizeof(double));
			ok = ok && t->keep[k];
		}
	}
	if (!ok)
		return err_nomem(err, "a neural network");
	network_place(&layers, t->gradient);
	memcpy(t->slope_of, layers.layer, sizeof t->slope_of);
	return 0;
}

static void draw_weights(struct training *t)
{
	for (size_t k = 0; k < t->m->n_layers; k++) {
		struct layer *l = &t->m->layer[k];
		double limit = sqrt(6.0 / ((double)l->in + l->out));

		for (size_t i = 0; i < (size_t)l->in * l->out; i++)
			l->w[i] = limit * (2.0 * rng_uniform(&t->rng) - 1.0);
	}
}

static void forward(struct training *t, const uint32_t *row, int n)
{
	const struct network *m = t->m;
	const struct dataset *d = t->d;

	for (int i = 0; i < n; i++)
		memcpy(t->value[0] + (size_t)i * d->n_features, d->x + row[i] * d->n_features,
		       d->n_features * sizeof(double));
	for (size_t k = 0; k < m->n_layers; k++) {
		const struct layer *l = &m->layer[k];
		double *out = t->value[k + 1];
		size_t cells = (size_t)n * l->out;

		for (int i = 0; i < n; i++)
			memcpy(out + (size_t)i * l->out, l->b, l->out * sizeof *out);
		cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, (int)l->out, (int)l->in, 1.0,
			    t->value[k], (int)l->in, l->w, (int)l->out, 1.0, out, (int)l->out);
		if (k + 1 == m->n_layers)
			break;
		for (size_t c = 0; c < cells; c++) {
			bool stays = t->dropout[k] == 0.0 || rng_uniform(&t->rng) >= t->dropout[k];

			t->keep[k][c] = stays ? 1.0 / (1.0 - t->dropout[k]) : 0.0;
			out[c] = network_activate(m->activation, out[c]);
		}
		/* The slope needs the value before dropout, so that is applied to a copy: the next
		 * layer's input. */
		memcpy(t->error[k], out, cells * sizeof *out);
		for (size_t c = 0; c < cells; c++)
			out[c] *= t->keep[k][c];
	}
}

static void backward(struct training *t, const uint32_t *row, int n)
{
	const struct network *m = t->m;

	for (int i = 0; i < n; i++) {
		double e = t->value[m->n_layers][i] - t->d->y[row[i]];

		t->error[m->n_layers - 1][i] = (t->absolute ? (e > 0.0) - (e < 0.0) : 2.0 * e) / n;
	}
	for (size_t k = m->n_layers; k-- > 0;) {
		const struct layer *l = &m->layer[k], *g = &t->slope_of[k];

		cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)l->in, (int)l->out, n, 1.0,
			    t->value[k], (int)l->in, t->error[k], (int)l->out, 0.0, g->w, (int)l->out);
		memset(g->b, 0, l->out * sizeof *g->b);
		for (int i = 0; i < n; i++)
			for (size_t j = 0; j < l->out; j++)
				g->b[j] += t->error[k][(size_t)i * l->out + j];
		if (k == 0)
			break;
		/* error[k-1] holds the activations; the products go into value[k], which is done with. */
		cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, (int)l->in, (int)l->out, 1.0,
			    t->error[k], (int)l->out, l->w, (int)l->out, 0.0, t->value[k], (int)l->in);
		for (size_t c = 0; c < (size_t)n * l->in; c++)
			t->error[k - 1][c] = t->value[k][c] * t->keep[k - 1][c] *
					     slope(m->activation, t->error[k - 1][c]);
	}
}

static void step(struct training *t)
{
	double *w = t->m->weights, first, second;

	t->steps++;
	if (!t->adam) {
		for (size_t i = 0; i < t->m->n_weights; i++)
			w[i] -= t->rate * t->gradient[i];
		return;
	}
	first = 1.0 - pow(0.9, t->steps);
	second = 1.0 - pow(0.999, t->steps);
	for (size_t i = 0; i < t->m->n_weights; i++) {
		t->moment[i] = 0.9 * t->moment[i] + 0.1 * t->gradient[i];
		t->square[i] = 0.999 * t->square[i] + 0.001 * t->gradient[i] * t->gradient[i];
		w[i] -= t->rate * (t->moment[i] / first) / (sqrt(t->square[i] / second) + 1e-7);
	}
}

static double held_error(const struct training *t)
{
	double sum = 0.0, predicted;

	for (size_t i = t->n_train; i < t->d->n_rows; i++) {
		double e;

		network_predict(t->m, t->d->x + t->row[i] * t->d->n_features, 1, &predicted);
		e = predicted - t->d->y[t->row[i]];
		sum += t->absolute ? fabs(e) : e * e;
	}
	return sum;
}

static int run_epochs(struct training *t, const struct settings *s, const struct fit_context *ctx,
		      struct err *err)
{
	double epochs = settings_get(s, "epochs"), patience = settings_get(s, "patience"), least = INFINITY,
	       idle = 0.0;
	double *best = patience > 0.0 ? mem_array(t->m->n_weights, sizeof *best) : NULL;
	size_t n = t->d->n_rows;
	int rc = 0;

	if (patience > 0.0 && !best)
		return err_nomem(err, "a neural network");
	for (size_t i = 0; i < n; i++)
		t->row[i] = (uint32_t)i;
	rng_shuffle(&t->rng, t->row, n);
	t->n_train = best && n >= 8 ? n - (size_t)ceil(HELD_BACK * (double)n) : n;
	for (double epoch = 0.0; epoch < epochs && !rc; epoch++) {
		rc = err_if_stopped(ctx->stop, err);
		rng_shuffle(&t->rng, t->row, t->n_train);
		for (size_t from = 0; from < t->n_train && !rc; from += t->batch) {
			size_t in = t->n_train - from < t->batch ? t->n_train - from : t->batch;

			forward(t, t->row + from, (int)in);
			backward(t, t->row + from, (int)in);
			step(t);
		}
		if (t->n_train < n) {
			double e = held_error(t);

			idle = e < least ? 0.0 : idle + 1.0;
			if (e < least) {
				least = e;
				memcpy(best, t->m->weights, t->m->n_weights * sizeof *best);
			} else if (idle >= patience) {
				break;
			}
		}
	}
	if (!rc && isfinite(least))
		memcpy(t->m->weights, best, t->m->n_weights * sizeof *best);
	for (size_t i = 0; i < t->m->n_weights && !rc; i++)
		if (!isfinite(t->m->weights[i]))
			rc = err_fail(
				err, ERR_NUMERIC,
				"training diverged: lower the learning rate, or set normalization = True");
	free(best);
	return rc;
}

static int network_fit(const struct settings *s, const struct dataset *d, const struct fit_context *ctx,
		       void **out_self, struct err *err)
{
	static const char *const width_name[NETWORK_MAX_LAYERS] = { "layer1", "layer2", "layer3", "layer4" };
	static const char *const dropout_name[NETWORK_MAX_LAYERS] = { "dropout1", "dropout2", "dropout3",
								      "dropout4" };
	struct training t = { .d = d,
			      .absolute = settings_get(s, "loss") == 1.0,
			      .adam = settings_get(s, "optimizer") == 0.0,
			      .rate = settings_get(s, "learning_rate"),
			      .batch = (size_t)settings_get(s, "batch_size"),
			      .rng = rng_stream(ctx->seed, 77) };
	uint32_t width[NETWORK_MAX_LAYERS];
	size_t n_hidden = 0;
	int rc;

	while (n_hidden < NETWORK_MAX_LAYERS && settings_get(s, width_name[n_hidden]) > 0.0) {
		t.dropout[n_hidden] = settings_get(s, dropout_name[n_hidden]);
		width[n_hidden] = (uint32_t)settings_get(s, width_name[n_hidden]);
		n_hidden++;
	}
	if (t.batch > d->n_rows)
		t.batch = d->n_rows;
	t.m = network_new(d->n_features, width, n_hidden);
	if (!t.m)
		return err_nomem(err, "a neural network");
	t.m->activation = (uint8_t)settings_get(s, "activation");
	rc = training_room(&t, err);
	if (!rc) {
		draw_weights(&t);
		rc = run_epochs(&t, s, ctx, err);
	}
	training_release(&t);
	if (rc)
		network_destroy(t.m);
	else
		*out_self = t.m;
	return rc;
}

const struct predictor_ops network_ops = { NETWORK_MODEL, .fit = network_fit };
