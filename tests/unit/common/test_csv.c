/* common/csv: RFC 4180 and its everyday relatives are read, everything else is refused with its place. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/csv.h"
#include "common/io.h"
#include "common/mem.h"
#include "common/rng.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

static int disarm(void **state)
{
	(void)state;
	mem_fail_at(0, false);
	io_fail_at(0, 0);
	return 0;
}

static struct csv *parse(const char *text)
{
	struct csv *t = NULL;
	struct err err = { 0 };

	if (csv_parse("t.csv", text, strlen(text), &t, &err))
		fail_msg("refused: %s", err.text);
	return t;
}

static void refuse_bytes(const char *text, size_t len, const char *want)
{
	struct csv *t = NULL;
	struct err err = { 0 };

	assert_int_equal(csv_parse("t.csv", text, len, &t, &err), -ERR_FORMAT);
	assert_int_equal(err.code, ERR_FORMAT);
	assert_string_equal(err.text, want);
	assert_null(t);
}

static void refuse(const char *text, const char *want)
{
	refuse_bytes(text, strlen(text), want);
}

/* All cells, row by row, as "a|b/c|d". */
static void assert_cells(const struct csv *t, const char *want)
{
	struct strbuf got = { 0 };

	for (size_t row = 0; row < t->n_rows; row++) {
		for (size_t c = 0; c < t->n_columns; c++)
			strbuf_printf(&got, "%s%s", c ? "|" : row ? "/" : "", csv_cell(t, row, c));
	}
	assert_string_equal(strbuf_text(&got), want);
	strbuf_release(&got);
}

TEST_WITH(test_csv_reads_a_plain_table, NULL, disarm)
{
	struct csv *t = parse("batch,time_s,host\n32,2.37,a\n64,4.1,b\n");

	assert_string_equal(t->name, "t.csv");
	assert_int_equal(t->n_columns, 3);
	assert_int_equal(t->n_rows, 2);
	assert_string_equal(t->header[1], "time_s");
	assert_cells(t, "32|2.37|a/64|4.1|b");
	assert_int_equal(t->line[0], 2);
	assert_int_equal(t->line[1], 3);
	assert_int_equal(csv_column(t, "host"), 2);
	assert_int_equal(csv_column(t, "Host"), -1);
	csv_free(t);
	csv_free(NULL);
}

TEST_WITH(test_csv_last_line_needs_no_end, NULL, disarm)
{
	struct csv *t = parse("a,b\n1,2");

	assert_cells(t, "1|2");
	csv_free(t);
	t = parse("a,b\r\n1,2\r");
	assert_cells(t, "1|2");
	csv_free(t);
	t = parse("a,b\n1,");
	assert_cells(t, "1|");
	csv_free(t);
	t = parse("a,b\n1,\"x\"");
	assert_cells(t, "1|x");
	csv_free(t);
}

TEST_WITH(test_csv_header_alone_is_a_table_without_rows, NULL, disarm)
{
	struct csv *t = parse("a");

	assert_int_equal(t->n_columns, 1);
	assert_int_equal(t->n_rows, 0);
	csv_free(t);
}

TEST_WITH(test_csv_reads_both_line_ends_and_skips_blank_lines, NULL, disarm)
{
	struct csv *t = parse("\n \t\r\na,b\r\n\r\n1,2\n\n   \n3,4\r\n\n\r\n  ");

	assert_cells(t, "1|2/3|4");
	assert_int_equal(t->line[0], 5);
	assert_int_equal(t->line[1], 8);
	csv_free(t);
}

TEST_WITH(test_csv_skips_a_byte_order_mark, NULL, disarm)
{
	struct csv *t = parse("\xef\xbb\xbf"
			      "a,b\n1,2\n");

	assert_int_equal(csv_column(t, "a"), 0);
	csv_free(t);
	refuse("\xef\xbb\xbf", "t.csv:1:1: empty: a header line with the names of the columns is needed");
	refuse("\xef\xbb\xbf"
	       "a\"",
	       "t.csv:1:2: a quote inside an unquoted cell: quote the whole cell and double it");
}

TEST_WITH(test_csv_reads_quoted_cells, NULL, disarm)
{
	struct csv *t = parse(
		"a,\"b,c\",d\n\"say \"\"hi\"\"\",\"two\nlines\",\"\"\n\" kept \", \"x\" ,\"\"\"\"\nlast,,\n");

	assert_string_equal(t->header[1], "b,c");
	assert_cells(t, "say \"hi\"|two\nlines|/ kept |x|\"/last||");
	assert_int_equal(t->line[0], 2);
	assert_int_equal(t->line[1], 4); /* the row before took two lines */
	assert_int_equal(t->line[2], 5);
	csv_free(t);
}

TEST_WITH(test_csv_trims_blank_around_unquoted_cells, NULL, disarm)
{
	struct csv *t = parse(" a ,\tb\t\n  1 2  ,\t\n");

	assert_string_equal(t->header[0], "a");
	assert_string_equal(t->header[1], "b");
	assert_cells(t, "1 2|");
	csv_free(t);
}

TEST_WITH(test_csv_quoted_nothing_is_a_row_where_a_blank_line_is_none, NULL, disarm)
{
	struct csv *t = parse("a\n\"\"\n\nx\n");

	assert_int_equal(t->n_rows, 2);
	assert_cells(t, "/x");
	csv_free(t);
}

TEST_WITH(test_csv_errors_name_line_and_column, NULL, disarm)
{
	refuse("", "t.csv:1:1: empty: a header line with the names of the columns is needed");
	refuse("\n\n", "t.csv:3:1: empty: a header line with the names of the columns is needed");
	refuse("a,b\n1,2\n3\n", "t.csv:3:1: 1 cells in this row, but 2 columns in the header");
	refuse("a;b\n1,5;2\n", "t.csv:1:1: the cells are separated by semicolons here; they have to be by "
			       "commas, and numbers "
			       "need a decimal point");
	refuse("a\tb\n1\t2\n", "t.csv:1:1: the cells are separated by tabs here; they have to be by commas, "
			       "and numbers need a "
			       "decimal point");
	refuse("a,b\n1,2,3\n", "t.csv:2:5: more cells in this row than the 2 columns of the header");
	refuse("a,b\n1,x\"y\n",
	       "t.csv:2:4: a quote inside an unquoted cell: quote the whole cell and double it");
	refuse("a,b\n1,\"x\"y\n", "t.csv:2:6: text after the closing quote of a cell");
	refuse("a,b\n1,\"x\"\"\n2\n", "t.csv:2:3: the quoted cell that starts here is not closed");
	refuse("a,b\n\"1\n\n2\",\"", "t.csv:4:4: the quoted cell that starts here is not closed");
	refuse("a,b\n\"1\n\n2\",x\"",
	       "t.csv:4:5: a quote inside an unquoted cell: quote the whole cell and double it");
	refuse("a,b\r1,2\r", "t.csv:1:4: a carriage return without a line feed");
	refuse("a,b\r\r\n", "t.csv:1:4: a carriage return without a line feed");
	refuse_bytes("a,b\n1,\0\n", 8, "t.csv:2:3: a NUL byte: this is not a text file");
	refuse_bytes("a,b\n1,\"\0\"\n", 10, "t.csv:2:4: a NUL byte: this is not a text file");
	refuse_bytes("\0", 1, "t.csv:1:1: a NUL byte: this is not a text file");
}

TEST_WITH(test_csv_refuses_headers_that_do_not_name_their_columns, NULL, disarm)
{
	refuse("a,,c\n", "t.csv:1:1: column 2 has no name");
	refuse("\na,b, \n", "t.csv:2:1: column 3 has no name");
	refuse("\"\"\n", "t.csv:1:1: column 1 has no name");
	refuse("a,b,\"a\"\n", "t.csv:1:1: two columns are called 'a'");
	csv_free(parse("a,A,a b\n"));
}

TEST_WITH(test_csv_columns_end_at_their_limit, NULL, disarm)
{
	struct strbuf text = { 0 };
	struct csv *t = NULL;
	struct err err = { 0 };

	for (int i = 0; i < CSV_MAX_COLUMNS; i++)
		strbuf_printf(&text, "%sc%d", i ? "," : "", i);
	assert_int_equal(csv_parse("wide", text.text, text.len, &t, &err), 0);
	assert_int_equal(t->n_columns, CSV_MAX_COLUMNS);
	assert_int_equal(csv_column(t, "c4095"), 4095);
	csv_free(t);
	t = NULL;
	strbuf_puts(&text, ",onemore");
	assert_int_equal(csv_parse("wide", text.text, text.len, &t, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "more than 4096 columns"));
	assert_null(t);
	strbuf_release(&text);
}

TEST_WITH(test_csv_refuses_a_length_beyond_its_limit_before_touching_it, NULL, disarm)
{
	struct csv *t = NULL;
	struct err err = { 0 };

	assert_int_equal(csv_parse("huge", "x", CSV_MAX_BYTES + 1, &t, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "limit"));
	assert_null(t);
}

TEST_WITH(test_csv_number_reads_finite_numbers_and_gaps, NULL, disarm)
{
	struct csv *t = parse("a,b,c,d,e,f\n2.37,-1e-3,,NA,nan,NaN\n");
	struct err err = { 0 };
	double v = 0.0;

	assert_int_equal(csv_number(t, 0, 0, &v, &err), 0);
	assert_true(v == 2.37);
	assert_int_equal(csv_number(t, 0, 1, &v, &err), 0);
	assert_true(v == -1e-3);
	for (size_t c = 2; c < 6; c++) {
		v = 0.0;
		assert_int_equal(csv_number(t, 0, c, &v, &err), 0);
		assert_true(isnan(v));
	}
	csv_free(t);
}

TEST_WITH(test_csv_number_refuses_the_rest_and_says_where, NULL, disarm)
{
	static const char *const bad[] = { "1.5x", "inf", "0x10", "1 2", "n/a", "-", "1e999", "\xc2\xb5" };
	char text[80], want[120];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct err err = { 0 };
		struct csv *t;
		double v = 4.25;

		snprintf(text, sizeof text, "a,time_s\n1,2\n3,%s\n", bad[i]);
		snprintf(want, sizeof want, "t.csv:3: column time_s: '%s' is not a number", bad[i]);
		t = parse(text);
		assert_int_equal(csv_number(t, 1, 1, &v, &err), -ERR_FORMAT);
		assert_string_equal(err.text, want);
		assert_true(v == 4.25);
		csv_free(t);
	}
}

TEST_WITH(test_csv_put_writes_what_reads_back, NULL, disarm)
{
	static const char *const cells[] = { "plain", "with,comma", "\"quoted\"",    "a\"b",
					     " lead", "trail\t",    "two\nlines",    "cr\rhere",
					     "",      "\"",         "\xe2\x82\xac 5" };
	enum { N = sizeof cells / sizeof *cells };
	struct strbuf text = { 0 };
	struct csv *t;

	for (int i = 0; i < N; i++)
		strbuf_printf(&text, "%sc%d", i ? "," : "", i);
	strbuf_puts(&text, "\n");
	for (int i = 0; i < N; i++) {
		strbuf_puts(&text, i ? "," : "");
		csv_put(&text, cells[i]);
	}
	t = parse(text.text);
	assert_int_equal(t->n_rows, 1);
	for (size_t i = 0; i < N; i++)
		assert_string_equal(csv_cell(t, 0, i), cells[i]);
	csv_free(t);
	strbuf_reset(&text);
	csv_put(&text, "no need");
	assert_string_equal(text.text, "no need");
	strbuf_reset(&text);
	csv_put(&text, "5\" disk");
	assert_string_equal(text.text, "\"5\"\" disk\"");
	strbuf_release(&text);
}

TEST_WITH(test_csv_put_number_survives_the_round_trip, NULL, disarm)
{
	struct rng r = rng_stream(4180, 0);
	struct strbuf text = { 0 };
	struct err err = { 0 };
	double wrote[1000], v;
	struct csv *t;

	strbuf_puts(&text, "k,v\n");
	for (int i = 0; i < 1000; i++) {
		wrote[i] = i % 100 == 7 ? NAN : rng_normal(&r) * pow(10.0, (double)rng_below(&r, 40) - 20.0);
		strbuf_printf(&text, "%d,", i);
		csv_put_number(&text, wrote[i]);
		strbuf_puts(&text, "\n");
	}
	t = parse(text.text);
	assert_int_equal(t->n_rows, 1000);
	for (size_t i = 0; i < 1000; i++) {
		assert_int_equal(csv_number(t, i, 1, &v, &err), 0);
		assert_true(isnan(wrote[i]) ? isnan(v) : v == wrote[i]);
	}
	csv_free(t);
	strbuf_release(&text);
}

TEST_WITH(test_csv_reads_files, NULL, disarm)
{
	const char *path = support_path(support_temp_dir(), "runs.csv");
	struct csv *t = NULL;
	struct err err = { 0 };

	assert_int_equal(io_write_file(path, "a,b\n1,2\n", 8, &err), 0);
	assert_int_equal(csv_read_file(path, &t, &err), 0);
	assert_string_equal(t->name, path);
	assert_cells(t, "1|2");
	csv_free(t);
	t = NULL;
	assert_int_equal(io_write_file(path, "a,b\n1\n", 6, &err), 0);
	assert_int_equal(csv_read_file(path, &t, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "runs.csv:2:1: 1 cells"));
	assert_int_equal(csv_read_file(support_path(support_temp_dir(), "none.csv"), &t, &err),
			 -ERR_NOTFOUND);
	assert_null(t);
	unlink(path);
}

TEST_WITH(test_csv_survives_every_failed_allocation, NULL, disarm)
{
	struct strbuf text = { 0 };
	unsigned long k;

	for (int i = 0; i < 20; i++)
		strbuf_printf(&text, "%scol%d", i ? "," : "", i);
	strbuf_puts(&text, "\n");
	for (int row = 0; row < 40; row++)
		for (int i = 0; i < 20; i++)
			strbuf_printf(&text, "%d%s", row * i, i < 19 ? "," : "\n");
	for (k = 1;; k++) {
		struct csv *t = NULL;
		struct err err = { 0 };
		int rc;

		mem_fail_at(k, false);
		rc = csv_parse("t.csv", text.text, text.len, &t, &err);
		if (!mem_failed()) {
			assert_int_equal(rc, 0);
			assert_int_equal(t->n_rows, 40);
			csv_free(t);
			break;
		}
		assert_int_equal(rc, -ERR_NOMEM);
		assert_int_equal(err.code, ERR_NOMEM);
		assert_null(t);
	}
	assert_true(k > 8); /* text, table, name, header twice, check, cells and lines several times */
	strbuf_release(&text);
}

TEST_WITH(test_csv_reads_a_hundred_thousand_rows_in_no_time, NULL, disarm)
{
	struct strbuf text = { 0 };
	struct csv *t = NULL;
	struct err err = { 0 };
	double v = 0.0, sum = 0.0;
	clock_t start;

	strbuf_puts(&text, "a,b,c,d,e,f,g,h,i,j\n");
	for (int row = 0; row < 100000; row++)
		strbuf_printf(&text, "%d,2.37,1e-3,44.125,\"5\",x,0.1,17,%d.5,host\n", row, row);
	start = clock();
	assert_int_equal(csv_parse("big", text.text, text.len, &t, &err), 0);
	assert_int_equal(t->n_rows, 100000);
	for (size_t row = 0; row < t->n_rows; row++) {
		assert_int_equal(csv_number(t, row, 8, &v, &err), 0);
		sum += v;
	}
	/* a twentieth of a second on an old laptop; loose for sanitizers */
	assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 5.0);
	assert_true(sum == 100000.0 * 99999.0 / 2.0 + 50000.0);
	csv_free(t);
	strbuf_release(&text);
}
