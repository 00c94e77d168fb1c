/* IDX files, the format MNIST comes in (LeCun, Cortes, Burges): two zero bytes, the type of a value (8:
 * unsigned byte, the only one here), the number of dimensions, each dimension in four bytes, most significant
 * first, then the values, record by record. Reading is by record, with pread, so that a large file never has
 * to fit into memory. */
#ifndef WORKLOADS_IDX_H
#define WORKLOADS_IDX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define IDX_MAX_DIMS 3
#define IDX_MAX_RECORDS 100000000u
#define IDX_MAX_RECORD 65536u /* bytes */
#define IDX_HEADER_MAX (4 + 4 * IDX_MAX_DIMS)

struct idx {
	char *path;
	int fd;             /* -1: not open */
	size_t n;           /* records */
	uint32_t dim[IDX_MAX_DIMS]; /* dim[0] is n */
	size_t record;      /* bytes of one */
	size_t header;      /* bytes before the first */
	uint8_t *aligned;   /* where direct reads land; NULL without direct I/O */
};

/* The file must have that many dimensions and exactly the length its header says: what is cut or has
 * something behind its end is ERR_FORMAT, with the offset. `direct`: reads go to the disk, past the page
 * cache. */
int idx_open(const char *path, size_t n_dims, bool direct, struct idx *out, struct err *err);
void idx_close(struct idx *f);

/* The record number i < n. Safe from several processes that share the descriptor. */
int idx_read(const struct idx *f, size_t i, uint8_t *out, struct err *err);

/* All records from 0 to n - 1 at once; for labels. */
int idx_read_first(const struct idx *f, size_t n, uint8_t *out, struct err *err);

/* Writes the header of n_dims dimensions into out (IDX_HEADER_MAX bytes will do); returns its length. */
size_t idx_put_header(uint8_t *out, const uint32_t *dim, size_t n_dims);

#endif
