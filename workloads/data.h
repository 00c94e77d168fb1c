/* Labelled pictures of digits on disk: DIR/train-images-idx3-ubyte and its three siblings. Labels are a byte
 * each and kept in memory; pictures are fetched from the file whenever a batch needs them, which is the
 * disk's part in the cycle of a training job. */
#ifndef WORKLOADS_DATA_H
#define WORKLOADS_DATA_H

#include "workloads/idx.h"

#define DATA_TRAIN "train"
#define DATA_TEST "t10k"

struct data {
	struct idx image;
	uint8_t *label;
	size_t n; /* how many of the records are used: the first ones */
};

/* `limit` 0: all records. More than there are is ERR_ARG. */
int data_open(const char *dir, const char *part, size_t limit, bool direct, struct data *out,
              struct err *err);
void data_close(struct data *d);

/* Records order[0..n) (order NULL: from `first` on), pixels scaled to mean 0 and deviation 1 over MNIST. */
int data_fetch(const struct data *d, const uint32_t *order, size_t first, size_t n, float *out_pixel,
               uint8_t *out_label, struct err *err);

#endif
