/* Little-endian bytes in and out of memory, bounds-checked: what model files are made of.
 * A reader that runs past its end sets `failed` and gives zeros from then on. */
#ifndef PREDICTORS_FILE_BYTES_H
#define PREDICTORS_FILE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/strbuf.h"

struct writer {
	struct strbuf out;
};
void write_u8(struct writer *w, uint8_t v);
void write_u16(struct writer *w, uint16_t v);
void write_u32(struct writer *w, uint32_t v);
void write_u64(struct writer *w, uint64_t v);
void write_f64(struct writer *w, double v);

struct reader {
	const unsigned char *bytes;
	size_t len, at;
	bool failed;
	uint32_t version; /* of the file, where the format has changed since; 0: the newest */
};
uint8_t read_u8(struct reader *r);
uint16_t read_u16(struct reader *r);
uint32_t read_u32(struct reader *r);
uint64_t read_u64(struct reader *r);
double read_f64(struct reader *r);
size_t read_left(const struct reader *r);

uint64_t bytes_crc64(const void *bytes, size_t len); /* ECMA-182, reflected (as in xz) */
/* The CRC of what gave `crc` followed by these bytes; 0 is the CRC of nothing. */
uint64_t bytes_crc64_more(uint64_t crc, const void *bytes, size_t len);

#endif
