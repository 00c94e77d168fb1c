/* predictors/file/bytes: what is written reads back, and damaged bytes are refused. */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/file/bytes.h"
#include "tests/support/test.h"

TEST(test_crc64_gives_the_published_check_value)
{
	/* CRC-64/XZ in the catalogue of parametrised CRC algorithms */
	assert_true(bytes_crc64("123456789", 9) == 0x995dc9bbdf1939faULL);
	assert_true(bytes_crc64("", 0) == 0);
}

/* Bit by bit, straight from the polynomial. */
static uint64_t crc_slowly(const unsigned char *p, size_t n)
{
	uint64_t c = ~0ULL;

	for (size_t i = 0; i < n; i++) {
		c ^= p[i];
		for (int k = 0; k < 8; k++)
			c = c & 1 ? (c >> 1) ^ 0xc96c5795d7870f42ULL : c >> 1;
	}
	return ~c;
}

TEST(test_crc64_agrees_with_the_definition_at_every_length_and_alignment)
{
	unsigned char b[64];

	for (size_t i = 0; i < sizeof b; i++)
		b[i] = (unsigned char)(i * 37 + 11);
	for (size_t from = 0; from < 9; from++)
		for (size_t n = 0; n + from <= sizeof b; n++)
			assert_true(bytes_crc64(b + from, n) == crc_slowly(b + from, n));
}

TEST(test_crc64_in_pieces_is_the_crc_of_the_whole)
{
	const char text[] = "which batch size gives the best accuracy";

	for (size_t cut = 0; cut < sizeof text; cut++)
		assert_true(bytes_crc64_more(bytes_crc64(text, cut), text + cut, sizeof text - cut) ==
			    bytes_crc64(text, sizeof text));
}

TEST(test_bytes_are_little_endian)
{
	static const unsigned char want[] = { 0xfe, 0x34, 0x12, 0x78, 0x56, 0x34, 0x12, 0xef,
					      0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01, 0,
					      0,    0,    0,    0,    0,    0xf8, 0xbf };
	struct writer w = { 0 };

	write_u8(&w, 0xfe);
	write_u16(&w, 0x1234);
	write_u32(&w, 0x12345678);
	write_u64(&w, 0x0123456789abcdefULL);
	write_f64(&w, -1.5);
	assert_false(w.out.failed);
	assert_int_equal(w.out.len, sizeof want);
	assert_memory_equal(w.out.text, want, sizeof want);
	strbuf_release(&w.out);
}

TEST(test_what_is_written_reads_back)
{
	static const double number[] = { 0.0, -0.0, 2.37, -1e308, 5e-324, INFINITY };
	struct writer w = { 0 };
	struct reader r;

	write_u8(&w, 255);
	write_u16(&w, 65535);
	write_u32(&w, UINT32_MAX);
	write_u64(&w, UINT64_MAX);
	for (size_t i = 0; i < 6; i++)
		write_f64(&w, number[i]);
	write_f64(&w, NAN);
	r = (struct reader){ .bytes = (unsigned char *)w.out.text, .len = w.out.len };
	assert_int_equal(read_u8(&r), 255);
	assert_int_equal(read_u16(&r), 65535);
	assert_true(read_u32(&r) == UINT32_MAX);
	assert_true(read_u64(&r) == UINT64_MAX);
	for (size_t i = 0; i < 6; i++) {
		double v = read_f64(&r);
		assert_memory_equal(&v, &number[i], sizeof v); /* -0 too */
	}
	assert_true(isnan(read_f64(&r)));
	assert_false(r.failed);
	assert_int_equal(read_left(&r), 0);
	strbuf_release(&w.out);
}

TEST(test_reading_past_the_end_gives_zeros_from_then_on)
{
	const unsigned char b[] = { 1, 2, 3 };
	struct reader r = { .bytes = b, .len = 3 };

	assert_int_equal(read_u16(&r), 0x0201);
	assert_int_equal(read_left(&r), 1);
	assert_int_equal(read_u16(&r), 0);
	assert_true(r.failed);
	assert_int_equal(read_u8(&r), 0); /* though a byte is there */
	assert_int_equal(read_left(&r), 0);
	assert_true(read_f64(&r) == 0.0);
}

TEST(test_a_reader_of_nothing_fails_at_once)
{
	struct reader r = { 0 };

	assert_int_equal(read_u8(&r), 0);
	assert_true(r.failed);
}

TEST(test_a_writer_remembers_that_memory_ran_out)
{
	struct writer w = { 0 };

	mem_fail_at(1, false);
	write_u32(&w, 7);
	mem_fail_at(0, false);
	assert_true(w.out.failed);
	write_u32(&w, 8);
	assert_true(w.out.failed);
	strbuf_release(&w.out);
}
