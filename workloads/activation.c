/* ReLU and tanh between layers, and their derivatives. See layer.h. */
#include "workloads/layer.h"

#include <string.h>

#include "workloads/kernel.h"

/* tanh x = e / (e + 2) with e = expm1(2|x|), which keeps small results exact to their own last digits where 1
 * - 2 / (exp(2x) + 1) would cancel. expm1(y) = 2^n expm1(r) + 2^n - 1 with y = n ln 2 + r. Within 3 units in
 * the last place of tanh(), and a loop without branches, which tanhf() is not. */
#define ROUND_MAGIC 12582912.0f /* 1.5 * 2^23: adding it rounds a float to a whole number */
#define LN2_HIGH 0.693359375f /* 9 bits: its multiples by n are exact */
#define LN2_LOW -2.12194440e-4f

KERNEL_INLINE float tanh_one(float x)
{
	float a = __builtin_fabsf(x), y, n, r, p, scale, e;
	union {
		float f;
		int32_t i;
	} bits;

	a = a < 10.0f ? a
		      : 10.0f; /* past 9.02 the nearest float is 1; NaN stays out here and comes back below */
	y = a + a;
	n = y * 1.44269504f + ROUND_MAGIC;
	bits.f = n;
	n -= ROUND_MAGIC;
	bits.i = (int32_t)((uint32_t)bits.i << 23) + 0x3f800000; /* 2^n: n sits in the low bits */
	scale = bits.f;
	r = y - n * LN2_HIGH;
	r -= n * LN2_LOW;
	/* Taylor's series: |r| <= 0.35, so the first term left out is 2e-9 of the result. */
	p = 1.0f / 5040;
	p = p * r + 1.0f / 720;
	p = p * r + 1.0f / 120;
	p = p * r + 1.0f / 24;
	p = p * r + 1.0f / 6;
	p = p * r + 0.5f;
	p = p * r * r + r;
	e = scale * p + (scale - 1.0f);
	e = e / (e + 2.0f);
	e = __builtin_copysignf(e, x);
	return x == x ? e : x;
}

KERNEL_CLONES static void tanh_all(float *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		v[i] = tanh_one(v[i]);
}

KERNEL_CLONES static void tanh_back(const float *y, float *d, size_t n)
{
	for (size_t i = 0; i < n; i++)
		d[i] *= 1.0f - y[i] * y[i];
}

KERNEL_CLONES static void relu_all(float *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		v[i] = v[i] < 0.0f ? 0.0f : v[i];
}

KERNEL_CLONES static void relu_back(const float *y, float *d, size_t n)
{
	for (size_t i = 0; i < n; i++)
		d[i] = y[i] > 0.0f ? d[i] : 0.0f;
}

void activation_apply(enum activation a, float *v, size_t n)
{
	if (a == ACTIVATION_TANH)
		tanh_all(v, n);
	else if (a == ACTIVATION_RELU)
		relu_all(v, n);
}

void activation_back(enum activation a, const float *y, float *d, size_t n)
{
	if (a == ACTIVATION_TANH)
		tanh_back(y, d, n);
	else if (a == ACTIVATION_RELU)
		relu_back(y, d, n);
}
