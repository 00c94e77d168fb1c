/* A fully connected layer: a matrix product, biases and an activation. See layer.h. */
#include <cblas.h>
#include <string.h>

#include "workloads/layer.h"

static size_t none(const struct layer *l)
{
	(void)l;
	return 0;
}

static void dense_forward(const struct layer *l, const struct layer_pass *p)
{
	const float *bias = p->param + l->n_in * l->n_out;

	for (size_t i = 0; i < p->n; i++)
		memcpy(p->out + i * l->n_out, bias, l->n_out * sizeof *bias);
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)p->n, (int)l->n_out, (int)l->n_in, 1.0f,
		    p->in, (int)l->n_in, p->param, (int)l->n_out, 1.0f, p->out, (int)l->n_out);
	activation_apply(l->activation, p->out, p->n * l->n_out);
}

static void dense_backward(const struct layer *l, const struct layer_pass *p)
{
	float *bias = p->grad + l->n_in * l->n_out;

	activation_back(l->activation, p->out, p->d_out, p->n * l->n_out);
	memset(bias, 0, l->n_out * sizeof *bias);
	for (size_t i = 0; i < p->n; i++)
		for (size_t o = 0; o < l->n_out; o++)
			bias[o] += p->d_out[i * l->n_out + o];
	cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)l->n_in, (int)l->n_out, (int)p->n, 1.0f,
		    p->in, (int)l->n_in, p->d_out, (int)l->n_out, 0.0f, p->grad, (int)l->n_out);
	if (p->d_in)
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)p->n, (int)l->n_in, (int)l->n_out,
			    1.0f, p->d_out, (int)l->n_out, p->param, (int)l->n_out, 0.0f, p->d_in,
			    (int)l->n_in);
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
