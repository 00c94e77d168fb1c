/* Little-endian bytes and their checksum, the same on every machine. Used by model_write.c, model_read.c and
 * by the save and load of every predictor. */
#include "predictors/file/bytes.h"

#include <pthread.h>
#include <string.h>

static void put(struct writer *w, uint64_t v, size_t width)
{
	unsigned char b[8];

	for (size_t i = 0; i < width; i++)
		b[i] = (unsigned char)(v >> (8 * i));
	strbuf_add(&w->out, b, width);
}

void write_u8(struct writer *w, uint8_t v)
{
	put(w, v, 1);
}

void write_u16(struct writer *w, uint16_t v)
{
	put(w, v, 2);
}

void write_u32(struct writer *w, uint32_t v)
{
	put(w, v, 4);
}

void write_u64(struct writer *w, uint64_t v)
{
	put(w, v, 8);
}

void write_f64(struct writer *w, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof bits);
	put(w, bits, 8);
}

/* Spelt out: the compiler makes one load of it, which it does not of a loop. */
static inline uint32_t load_u32(const unsigned char *b)
{
	return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static inline uint64_t load_u64(const unsigned char *b)
{
	return (uint64_t)load_u32(b) | (uint64_t)load_u32(b + 4) << 32;
}

/* The next `width` bytes, or NULL past the end. */
static inline const unsigned char *take(struct reader *r, size_t width)
{
	if (r->failed || r->len - r->at < width) {
		r->failed = true;
		return NULL;
	}
	r->at += width;
	return r->bytes + r->at - width;
}

uint8_t read_u8(struct reader *r)
{
	const unsigned char *b = take(r, 1);

	return b ? b[0] : 0;
}

uint16_t read_u16(struct reader *r)
{
	const unsigned char *b = take(r, 2);

	return b ? (uint16_t)(b[0] | b[1] << 8) : 0;
}

uint32_t read_u32(struct reader *r)
{
	const unsigned char *b = take(r, 4);

	return b ? load_u32(b) : 0;
}

uint64_t read_u64(struct reader *r)
{
	const unsigned char *b = take(r, 8);

	return b ? load_u64(b) : 0;
}

double read_f64(struct reader *r)
{
	uint64_t bits = read_u64(r);
	double v;

	memcpy(&v, &bits, sizeof v);
	return v;
}

size_t read_left(const struct reader *r)
{
	return r->failed ? 0 : r->len - r->at;
}

/* Slicing-by-8 (Kounavis, Berry, ISCC 2005): table[k][b] is the CRC of byte b followed by k zero
 * bytes, so eight bytes cost eight look-ups that do not wait for each other. Large forests are tens
 * of megabytes, and byte by byte the checksum would be the slowest part of loading one. */
static uint64_t crc_table[8][256];
static pthread_once_t crc_once = PTHREAD_ONCE_INIT;

static void crc_build(void)
{
	const uint64_t poly = 0xc96c5795d7870f42ULL; /* ECMA-182 with its bits reversed */

	for (unsigned b = 0; b < 256; b++) {
		uint64_t c = b;
		for (int bit = 0; bit < 8; bit++)
			c = c & 1 ? (c >> 1) ^ poly : c >> 1;
		crc_table[0][b] = c;
	}
	for (unsigned b = 0; b < 256; b++)
		for (int k = 1; k < 8; k++)
			crc_table[k][b] = (crc_table[k - 1][b] >> 8) ^
					  crc_table[0][crc_table[k - 1][b] & 0xff];
}

uint64_t bytes_crc64_more(uint64_t crc, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	uint64_t c = ~crc;

	pthread_once(&crc_once, crc_build);
	for (; len >= 8; len -= 8, p += 8) {
		c ^= load_u64(p);
		c = crc_table[7][c & 0xff] ^ crc_table[6][c >> 8 & 0xff] ^ crc_table[5][c >> 16 & 0xff] ^
		    crc_table[4][c >> 24 & 0xff] ^ crc_table[3][c >> 32 & 0xff] ^
		    crc_table[2][c >> 40 & 0xff] ^ crc_table[1][c >> 48 & 0xff] ^ crc_table[0][c >> 56];
	}
	for (; len; len--, p++)
		c = (c >> 8) ^ crc_table[0][(c ^ *p) & 0xff];
	return ~c;
}

uint64_t bytes_crc64(const void *bytes, size_t len)
{
	return bytes_crc64_more(0, bytes, len);
}
