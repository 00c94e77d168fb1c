/* workloads/idx and workloads/data: what is read is what was written, and files that lie are refused. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/io.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "workloads/data.h"
#include "workloads/idx.h"
#include "workloads/net.h"

#define N 7
#define ROWS 28
#define COLS 28
#define HEADER 16

static uint8_t file[HEADER + N * ROWS * COLS + 1];
static size_t file_len;
static uint8_t label_file[8 + N];

static void make_files(void)
{
	const uint32_t dim[] = { N, ROWS, COLS };

	assert_int_equal(idx_put_header(file, dim, 3), HEADER);
	assert_int_equal(idx_put_header(label_file, dim, 1), 8);
	for (size_t i = 0; i < N * ROWS * COLS; i++)
		file[HEADER + i] = (uint8_t)(i * 37 % 251);
	for (size_t i = 0; i < N; i++)
		label_file[8 + i] = (uint8_t)(i * 3 % 10);
	file_len = sizeof file - 1;
}

/* Writes the first `len` bytes of `file` and opens them. */
static int open_bytes(size_t len, struct idx *out, struct err *err)
{
	const char *path = support_path(support_temp_dir(), "some-idx");

	assert_int_equal(io_write_file(path, file, len, err), 0);
	return idx_open(path, 3, false, out, err);
}

TEST(test_idx_reads_back_every_record)
{
	uint8_t got[ROWS * COLS], all[N * ROWS * COLS];
	struct err err = { 0 };
	struct idx f;

	make_files();
	assert_int_equal(open_bytes(file_len, &f, &err), 0);
	assert_int_equal(f.n, N);
	assert_int_equal(f.record, ROWS * COLS);
	for (size_t i = N; i-- > 0;) {
		assert_int_equal(idx_read(&f, i, got, &err), 0);
		assert_memory_equal(got, file + HEADER + i * ROWS * COLS, sizeof got);
	}
	assert_int_equal(idx_read_first(&f, N, all, &err), 0);
	assert_memory_equal(all, file + HEADER, sizeof all);
	idx_close(&f);
	idx_close(&f);
	idx_close(NULL);
}

TEST(test_idx_direct_reads_give_the_same_bytes)
{
	uint8_t got[ROWS * COLS];
	struct err err = { 0 };
	struct idx f;
	const char *path;

	make_files();
	path = support_path("build", ".test-idx-direct"); /* /tmp may be a file system without direct I/O */
	if (io_write_file(path, file, file_len, &err))
		skip();
	if (idx_open(path, 3, true, &f, &err)) {
		print_message("skipped: %s\n", err.text);
		remove(path);
		skip();
	}
	for (size_t i = 0; i < N; i++) {
		assert_int_equal(idx_read(&f, i, got, &err), 0);
		assert_memory_equal(got, file + HEADER + i * ROWS * COLS, sizeof got);
	}
	idx_close(&f);
	remove(path);
}

TEST(test_idx_refuses_a_file_cut_anywhere_in_its_header)
{
	make_files();
	for (size_t len = 0; len < HEADER; len++) {
		struct err err = { 0 };
		struct idx f;
		char at[32];

		assert_int_equal(open_bytes(len, &f, &err), -ERR_FORMAT);
		snprintf(at, sizeof at, "ends at byte %zu,", len);
		assert_non_null(strstr(err.text, at));
	}
}

TEST(test_idx_refuses_a_file_cut_or_longer_behind_its_header)
{
	static const size_t len[] = { HEADER, HEADER + 1, HEADER + N * ROWS * COLS - 1,
				      HEADER + N * ROWS * COLS + 1 };

	make_files();
	for (size_t k = 0; k < sizeof len / sizeof len[0]; k++) {
		struct err err = { 0 };
		struct idx f;

		assert_int_equal(open_bytes(len[k], &f, &err), -ERR_FORMAT);
		assert_non_null(strstr(err.text, k == 3 ? "longer than it says" : "cut short"));
	}
}

TEST(test_idx_refuses_every_changed_byte_of_its_header)
{
	for (size_t at = 0; at < HEADER; at++) {
		for (unsigned change = 1; change < 256; change <<= 1) {
			struct err err = { 0 };
			struct idx f;

			make_files();
			file[at] ^= (uint8_t)change;
			assert_int_equal(open_bytes(file_len, &f, &err), -ERR_FORMAT);
		}
	}
}

TEST(test_idx_refuses_sizes_that_would_overflow)
{
	static const uint32_t dim[][3] = {
		{ 0xffffffff, 0xffffffff, 0xffffffff },
		{ 0xffffffff, 28, 28 },
		{ 7, 0x10000, 0x10000 },
		{ 7, 0, 28 },
		{ 0, 28, 28 },
		{ 1, 65536, 65536 },
	};

	make_files();
	for (size_t k = 0; k < sizeof dim / sizeof dim[0]; k++) {
		struct err err = { 0 };
		struct idx f;

		idx_put_header(file, dim[k], 3);
		assert_int_equal(open_bytes(file_len, &f, &err), -ERR_FORMAT);
	}
}

TEST(test_idx_says_what_is_missing_compressed_or_no_file)
{
	struct err err = { 0 };
	struct idx f;

	assert_int_equal(idx_open("/nowhere/at-all", 3, false, &f, &err), -ERR_NOTFOUND);
	assert_int_equal(idx_open(support_temp_dir(), 3, false, &f, &err), -ERR_FORMAT);
	make_files();
	file[0] = 0x1f;
	file[1] = 0x8b;
	assert_int_equal(open_bytes(file_len, &f, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "gunzip"));
}

TEST(test_idx_notices_a_file_cut_while_open)
{
	const char *path = support_path(support_temp_dir(), "shrinking");
	uint8_t got[ROWS * COLS], all[N * ROWS * COLS];
	struct err err = { 0 };
	struct idx f;
	FILE *again;

	make_files();
	assert_int_equal(io_write_file(path, file, file_len, &err), 0);
	assert_int_equal(idx_open(path, 3, false, &f, &err), 0);
	again = fopen(path, "w"); /* the same file, now empty */
	assert_non_null(again);
	fclose(again);
	assert_int_equal(idx_read(&f, 2, got, &err), -ERR_FORMAT);
	assert_int_equal(idx_read_first(&f, N, all, &err), -ERR_FORMAT);
	idx_close(&f);
}

/* ---- data: pictures and labels together ---- */

static const char *data_dir(void)
{
	static char dir[600];
	struct err err = { 0 };

	snprintf(dir, sizeof dir, "%s/data", support_temp_dir());
	mkdir(dir, 0777);
	assert_int_equal(io_write_file(support_path(dir, "train-images-idx3-ubyte"), file, file_len, &err),
			 0);
	assert_int_equal(io_write_file(support_path(dir, "train-labels-idx1-ubyte"), label_file,
				       sizeof label_file, &err),
			 0);
	return dir;
}

TEST(test_data_fetches_in_the_order_asked_for_and_scales)
{
	const uint32_t order[] = { 5, 0, 3 };
	float x[3 * NET_INPUTS];
	uint8_t label[3];
	struct err err = { 0 };
	struct data d;

	make_files();
	assert_int_equal(data_open(data_dir(), DATA_TRAIN, 6, false, &d, &err), 0);
	assert_int_equal(d.n, 6);
	assert_int_equal(data_fetch(&d, order, 0, 3, x, label, &err), 0);
	for (size_t k = 0; k < 3; k++) {
		assert_int_equal(label[k], order[k] * 3 % 10);
		for (size_t i = 0; i < NET_INPUTS; i += 41) {
			double want = (file[HEADER + order[k] * NET_INPUTS + i] / 255.0 - 0.1307) / 0.3081;

			assert_float_equal(x[k * NET_INPUTS + i], (float)want, 1e-6);
		}
	}
	assert_int_equal(data_fetch(&d, NULL, 2, 2, x, label, &err), 0);
	assert_int_equal(label[1], 3 * 3 % 10);
	data_close(&d);
	data_close(&d);
}

TEST(test_data_refuses_what_does_not_fit_together)
{
	const uint32_t small[] = { N, 14, 56 }, fewer[] = { N - 1, ROWS, COLS };
	struct err err = { 0 };
	struct data d;

	make_files();
	assert_int_equal(data_open(data_dir(), DATA_TRAIN, N + 1, false, &d, &err), -ERR_ARG);
	assert_int_equal(data_open(data_dir(), DATA_TEST, 0, false, &d, &err), -ERR_NOTFOUND);
	label_file[8 + 4] = 10;
	assert_int_equal(data_open(data_dir(), DATA_TRAIN, 0, false, &d, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "byte 12: label 10"));
	make_files();
	idx_put_header(file, small, 3);
	assert_int_equal(data_open(data_dir(), DATA_TRAIN, 0, false, &d, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "14 x 56"));
	make_files();
	idx_put_header(file, fewer, 3);
	file_len -= ROWS * COLS;
	assert_int_equal(data_open(data_dir(), DATA_TRAIN, 0, false, &d, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "6 pictures, but 7 labels"));
}
