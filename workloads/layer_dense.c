/* A fully connected layer: a matrix product, biases and an activation. See layer.h. */
#include <cblas.h>
#include <string.h>

#include "workloads/layer.h"

static size_t none(const struct layer *l)
{
	(void)l;
	return 0;
}

static void dense_forward(const struct layer *l, const float *param, const float *in, size_t n, float *out,
			  uint8_t *choice, float *scratch)
{
	const float *bias = param + l->n_in * l->n_out;

	(void)choice;
	(void)scratch;
	for (size_t i = 0; i < n; i++)
		memcpy(out + i * l->n_out, bias, l->n_out * sizeof *bias);
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)l->n_out, (int)l->n_in, 1.0f, in,
		    (int)l->n_in, param, (int)l->n_out, 1.0f, out, (int)l->n_out);
	activation_apply(l->activation, out, n * l->n_out);
}

static void dense_backward(const struct layer *l, const float *param, const float *in, const float *out,
			   size_t n, const uint8_t *choice, float *d_out, float *d_in, float *grad,
			   float *scratch)
{
	float *bias = grad + l->n_in * l->n_out;

	(void)choice;
	(void)scratch;
	activation_back(l->activation, out, d_out, n * l->n_out);
	memset(bias, 0, l->n_out * sizeof *bias);
	for (size_t i = 0; i < n; i++)
		for (size_t o = 0; o < l->n_out; o++)
			bias[o] += d_out[i * l->n_out + o];
	cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)l->n_in, (int)l->n_out, (int)n, 1.0f, in,
		    (int)l->n_in, d_out, (int)l->n_out, 0.0f, grad, (int)l->n_out);
	if (d_in)
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)l->n_in, (int)l->n_out,
			    1.0f, d_out, (int)l->n_out, param, (int)l->n_out, 0.0f, d_in, (int)l->n_in);
}

struct layer layer_dense(size_t n_in, size_t n_out, enum activation a)
{
	static const struct layer_ops ops = { "dense", none, none, dense_forward, dense_backward };

	return (struct layer){ .ops = &ops,
			       .n_in = n_in,
			       .n_out = n_out,
			       .n_params = n_in * n_out + n_out,
			       .fan_in = n_in,
			       .activation = a };
}
