/* Reads labelled pictures of digits from disk, a batch at a time. See data.h. */
#include "workloads/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "workloads/kernel.h"
#include "workloads/net.h"

/* Mean and standard deviation of all training pixels of MNIST, as shares of 255; the usual pair. */
#define PIXEL_MEAN 0.1307f
#define PIXEL_SD 0.3081f

static int open_one(const char *dir, const char *part, const char *what, size_t n_dims, bool direct,
		    struct idx *out, struct err *err)
{
	size_t size = strlen(dir) + strlen(part) + strlen(what) + 32;
	char *path = mem_alloc(size);
	int rc;

	if (!path)
		return err_nomem(err, "the name of a file in %s", text_tail(dir, 300));
	snprintf(path, size, "%s/%s-%s-idx%zu-ubyte", dir, part, what, n_dims);
	rc = idx_open(path, n_dims, direct, out, err);
	free(path);
	return rc;
}

static int read_labels(struct data *d, const struct idx *labels, struct err *err)
{
	int rc;

	d->label = mem_array(d->n, 1);
	if (!d->label)
		return err_nomem(err, "%zu labels", d->n);
	rc = idx_read_first(labels, d->n, d->label, err);
	for (size_t i = 0; !rc && i < d->n; i++)
		if (d->label[i] >= NET_CLASSES)
			rc = err_fail(err, ERR_FORMAT, "%s, byte %zu: label %u is not a digit",
				      text_tail(labels->path, 300), labels->header + i, d->label[i]);
	return rc;
}

int data_open(const char *dir, const char *part, size_t limit, bool direct, struct data *out, struct err *err)
{
	struct data d = { .image.fd = -1 };
	struct idx labels = { .fd = -1 };
	int rc = open_one(dir, part, "images", 3, direct, &d.image, err);

	if (!rc)
		rc = open_one(dir, part, "labels", 1, false, &labels, err);
	if (!rc && (d.image.record != NET_INPUTS || d.image.dim[1] != 28))
		rc = err_fail(err, ERR_FORMAT, "%s has pictures of %u x %u pixels; the networks take 28 x 28",
			      text_tail(d.image.path, 300), d.image.dim[1], d.image.dim[2]);
	if (!rc && d.image.n != labels.n)
		rc = err_fail(err, ERR_FORMAT, "%s has %zu pictures, but %zu labels belong to them",
			      text_tail(d.image.path, 300), d.image.n, labels.n);
	if (!rc && limit > d.image.n)
		rc = err_fail(err, ERR_ARG, "%zu samples are asked for, but %s has %zu", limit,
			      text_tail(d.image.path, 300), d.image.n);
	d.n = limit ? limit : d.image.n;
	if (!rc)
		rc = read_labels(&d, &labels, err);
	idx_close(&labels);
	if (rc)
		data_close(&d);
	else
		*out = d;
	return rc;
}

void data_close(struct data *d)
{
	if (!d)
		return;
	idx_close(&d->image);
	free(d->label);
	*d = (struct data){ .image.fd = -1 };
}

KERNEL_CLONES static void scale_pixels(const uint8_t *in, float *out)
{
	for (size_t i = 0; i < NET_INPUTS; i++)
		out[i] = (float)in[i] * (1.0f / (255.0f * PIXEL_SD)) - PIXEL_MEAN / PIXEL_SD;
}

int data_fetch(const struct data *d, const uint32_t *order, size_t first, size_t n, float *out_pixel,
	       uint8_t *out_label, struct err *err)
{
	uint8_t pixel[NET_INPUTS];

	for (size_t i = 0; i < n; i++) {
		size_t record = order ? order[i] : first + i;
		int rc = idx_read(&d->image, record, pixel, err);

		if (rc)
			return rc;
		scale_pixels(pixel, out_pixel + i * NET_INPUTS);
		out_label[i] = d->label[record];
	}
	return 0;
}
