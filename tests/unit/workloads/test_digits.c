/* workloads/digits: the same digits for the same seed, all ten of them, in files that workloads/data
 * reads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/io.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "workloads/data.h"
#include "workloads/digits.h"

#define PIXELS (DIGITS_SIDE * DIGITS_SIDE)
#define KNOWN_SUM 25.295744 /* of digits-1 */

TEST(test_digits_depend_on_seed_and_number_alone)
{
	uint8_t a[PIXELS], b[PIXELS];

	for (uint64_t i = 0; i < 50; i++) {
		assert_int_equal(digits_draw(7, 0, i, a), digits_draw(7, 0, i, b));
		assert_memory_equal(a, b, PIXELS);
		digits_draw(8, 0, i, b);
		assert_memory_not_equal(a, b, PIXELS);
		digits_draw(7, 1, i, b);
		assert_memory_not_equal(a, b, PIXELS);
		digits_draw(7, 0, i + 1, b);
		assert_memory_not_equal(a, b, PIXELS);
	}
}

TEST(test_digits_are_ten_in_equal_shares)
{
	size_t of[10] = { 0 };
	uint8_t pixel[PIXELS];

	for (uint64_t i = 0; i < 3000; i++) {
		uint8_t digit = digits_draw(1, 0, i, pixel);

		assert_true(digit < 10);
		of[digit]++;
	}
	for (size_t k = 0; k < 10; k++)
		assert_in_range(of[k], 230, 370); /* 300, give or take four deviations of 16.4 */
}

TEST(test_digits_are_ink_on_a_dark_ground)
{
	for (uint64_t i = 0; i < 300; i++) {
		uint8_t pixel[PIXELS];
		size_t bright = 0;

		digits_draw(2, 0, i, pixel);
		for (size_t k = 0; k < PIXELS; k++)
			bright += pixel[k] > 100;
		assert_in_range(bright, 8, 350);
	}
}

/* A change of the drawings must not go unnoticed: caches are named after CACHE_VERSION. The sum allows for a
 * libm that rounds another way. */
TEST(test_digits_look_as_they_did)
{
	double sum = 0.0;
	uint8_t pixel[PIXELS];

	for (uint64_t i = 0; i < 200; i++) {
		digits_draw(1, 0, i, pixel);
		for (size_t k = 0; k < PIXELS; k++)
			sum += (double)pixel[k] * (double)(k % 13);
	}
	assert_float_equal(sum / 1e6, KNOWN_SUM, 1e-4);
}

TEST(test_digits_files_are_read_back)
{
	const char *dir = support_path(support_temp_dir(), "new");
	char *bytes, *again;
	size_t len, len_again;
	struct err err = { 0 };
	struct data d;
	uint8_t pixel[PIXELS], label;

	assert_int_equal(digits_write(dir, 40, 11, 9, &err), 0);
	assert_int_equal(data_open(dir, DATA_TRAIN, 0, false, &d, &err), 0);
	assert_int_equal(d.n, 40);
	label = digits_draw(9, 0, 39, pixel);
	assert_int_equal(d.label[39], label);
	data_close(&d);
	assert_int_equal(data_open(dir, DATA_TEST, 0, false, &d, &err), 0);
	assert_int_equal(d.n, 11);
	label = digits_draw(9, 1, 10, pixel);
	assert_int_equal(d.label[10], label);
	data_close(&d);

	assert_int_equal(
		io_read_file(support_path(dir, "train-images-idx3-ubyte"), 1 << 20, &bytes, &len, &err), 0);
	assert_int_equal(digits_write(dir, 60, 11, 9, &err), 0); /* over the old ones */
	assert_int_equal(
		io_read_file(support_path(dir, "train-images-idx3-ubyte"), 1 << 20, &again, &len_again, &err),
		0);
	assert_int_equal(len, 16 + 40 * PIXELS);
	assert_int_equal(len_again, 16 + 60 * PIXELS);
	assert_memory_equal(bytes + 16, again + 16, len - 16); /* a larger set begins like a smaller */
	free(bytes);
	free(again);
}

TEST(test_digits_write_says_why_it_cannot)
{
	struct err err = { 0 };

	assert_int_equal(digits_write(support_temp_dir(), 0, 1, 1, &err), -ERR_ARG);
	assert_int_equal(digits_write(support_temp_dir(), 1, (size_t)DIGITS_MAX + 1, 1, &err), -ERR_ARG);
	assert_int_equal(digits_write("/nowhere/at/all", 1, 1, 1, &err), -ERR_NOTFOUND);
	io_fail_at(3, 28 /* ENOSPC */);
	assert_true(digits_write(support_path(support_temp_dir(), "full"), 5, 5, 1, &err) < 0);
	io_fail_at(0, 0);
}

static int noticed;

static void notice(const char *dir)
{
	assert_non_null(dir);
	noticed++;
}

TEST(test_digits_cache_needs_a_place)
{
	struct err err = { 0 };
	char *dir;

	setenv("XDG_CACHE_HOME", "relative", 1);
	unsetenv("HOME");
	assert_int_equal(digits_cached(&dir, NULL, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "--data"));
	assert_int_equal(noticed, 0);
}

TEST(test_digits_cache_that_is_there_is_used)
{
	const char *base = support_path(support_temp_dir(), "cache");
	char inside[700];
	struct err err = { 0 };
	char *dir = NULL;

	setenv("XDG_CACHE_HOME", base, 1);
	snprintf(inside, sizeof inside, "%s/postrider/digits-1", base);
	assert_int_equal(digits_write(base, 3, 3, 1, &err), 0); /* makes base, too */
	assert_int_equal(digits_write(support_path(base, "postrider"), 3, 3, 1, &err), 0);
	assert_int_equal(digits_write(inside, 3, 3, 1, &err), 0);
	assert_int_equal(digits_cached(&dir, notice, &err), 0);
	assert_string_equal(dir, inside);
	assert_int_equal(noticed, 0); /* nothing was drawn */
	free(dir);
}
