/* scheduler/daemon/server: lines in, replies out, in order, whatever the client does. */
#include "tests/support/test.h"
#include "tests/unit/daemon/server_harness.h"

#include "common/mem.h"
#include "common/rng.h"

static struct rig rig;

static void start(void)
{
	struct server_params p;

	rig_init(&rig);
	p = rig_params(&rig);
	rig_start(&rig, &p);
}

TEST(test_server_greets_and_answers)
{
	struct client c;

	start();
	client_open(&rig, &c);
	assert_int_equal(server_connections(rig.server), 1);
	client_puts(&c, "one\n");
	expect_line(&c, "3:one");
	client_puts(&c, "two\nthree\n");
	expect_line(&c, "3:two");
	expect_line(&c, "5:three");
	client_close(&c);
	rig_wait_for(&rig, 0);
	rig_release(&rig);
}

TEST(test_server_takes_lines_byte_by_byte)
{
	static const char text[] = "first\r\n\r\n\nsecond line\n\r\nthird\n";
	struct client c;

	start();
	client_open(&rig, &c);
	for (size_t i = 0; i < strlen(text); i++) {
		client_send(&c, text + i, 1);
		rig_pump(&rig);
	}
	expect_line(&c, "5:first");
	expect_line(&c, "11:second line");
	expect_line(&c, "5:third");
	expect_silence(&c); /* empty lines are not answered */
	client_close(&c);
	rig_release(&rig);
}

TEST(test_server_answers_a_thousand_pipelined_lines_in_order)
{
	struct strbuf text = { 0 };
	struct client c;
	char want[32];

	start();
	client_open(&rig, &c);
	for (int i = 0; i < 1000; i++)
		strbuf_printf(&text, "request %04d\n", i);
	client_send(&c, text.text, text.len);
	for (int i = 0; i < 1000; i++) {
		snprintf(want, sizeof want, "12:request %04d", i);
		expect_line(&c, want);
	}
	assert_int_equal(rig.n_lines, 1000);
	strbuf_release(&text);
	client_close(&c);
	rig_release(&rig);
}

static void send_long_line(struct client *c, size_t len, const char *end)
{
	struct strbuf text = { 0 };

	for (size_t i = 0; i < len; i++)
		strbuf_add(&text, "x", 1);
	strbuf_puts(&text, end);
	client_send(c, text.text, text.len);
	strbuf_release(&text);
}

static const char long_want[] = "65536:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
static const char too_long[] = "!line_too_long a line has at most 65536 bytes";

TEST(test_server_takes_65536_bytes_and_refuses_one_more)
{
	struct client c;

	start();
	client_open(&rig, &c);
	send_long_line(&c, SERVER_MAX_LINE, "\nafter\n");
	expect_line(&c, long_want);
	expect_line(&c, "5:after");
	send_long_line(&c, SERVER_MAX_LINE, "\r\n");
	expect_line(&c, long_want);
	send_long_line(&c, SERVER_MAX_LINE + 1, "\nafter\n");
	expect_line(&c, too_long);
	expect_line(&c, "5:after");
	send_long_line(&c, SERVER_MAX_LINE + 1, "\r\nafter\n");
	expect_line(&c, too_long);
	expect_line(&c, "5:after");
	/* the newline comes alone, when all the rest is there already */
	send_long_line(&c, SERVER_MAX_LINE, "\r");
	expect_silence(&c);
	client_puts(&c, "\n");
	expect_line(&c, long_want);
	send_long_line(&c, SERVER_MAX_LINE + 1, "");
	expect_line(&c, too_long);
	client_puts(&c, "\nafter\n");
	expect_line(&c, "5:after");
	client_close(&c);
	rig_release(&rig);
}

TEST(test_server_skips_a_mebibyte_without_newline)
{
	struct client c;

	start();
	client_open(&rig, &c);
	client_puts(&c, "before\n");
	send_long_line(&c, 1 << 20, "");
	client_puts(&c, "tail of it\ngood\n");
	expect_line(&c, "6:before");
	expect_line(&c, too_long); /* once */
	expect_line(&c, "4:good");
	expect_silence(&c);
	client_close(&c);
	rig_release(&rig);
}

TEST(test_server_survives_noise)
{
	struct rng r = rng_stream(99, 0);
	struct strbuf noise = { 0 };
	size_t lines = 0, len = 0;
	struct client c;

	start();
	client_open(&rig, &c);
	for (int i = 0; i < 300000; i++) {
		char byte = (char)rng_next(&r);

		/* lines that mean something to the handler are another test */
		if (len == 0 && strchr("HTCXWUB", byte))
			byte = 'n';
		if (byte == '\n') {
			lines += len > 0 && !(len == 1 && noise.text[noise.len - 1] == '\r');
			len = 0;
		} else {
			len++;
		}
		strbuf_add(&noise, &byte, 1);
	}
	client_send(&c, noise.text, noise.len);
	client_puts(&c, "\nend\n");
	lines += (len > 0) + 1;
	for (const char *line = client_line(&c); strcmp(line, "3:end") != 0; line = client_line(&c))
		assert_non_null(line);
	assert_int_equal(rig.n_lines, lines);
	client_send(&c, "a\0b\n", 4);
	expect_line(&c, "3:a"); /* the length tells of the NUL byte */
	strbuf_release(&noise);
	client_close(&c);
	rig_release(&rig);
}

TEST(test_server_keeps_replies_in_order)
{
	struct client c, other;

	start();
	client_open(&rig, &c);
	client_open(&rig, &other);
	client_puts(&c, "now\nT5 five\nH\nbehind\nT3 three\nH\nlast\n");
	expect_line(&c, "3:now");
	expect_silence(&c);
	client_puts(&other, "mine\n"); /* others do not notice */
	expect_line(&other, "4:mine");
	reply_fill(rig.held[1], "second held\n", 12);
	expect_silence(&c);
	server_durable(rig.server, 4);
	expect_silence(&c);
	server_durable(rig.server, 5);
	expect_line(&c, "7:T5 five");
	expect_silence(&c);
	reply_fill(rig.held[0], "first held\n", 11);
	expect_line(&c, "first held");
	expect_line(&c, "6:behind");
	expect_line(&c, "8:T3 three");
	expect_line(&c, "second held");
	expect_line(&c, "4:last");
	client_puts(&c, "T5 again\n"); /* durable already */
	expect_line(&c, "8:T5 again");
	rig.n_held = 0;
	client_close(&c);
	client_close(&other);
	rig_release(&rig);
}

TEST(test_server_orders_any_mixture)
{
	struct rng r = rng_stream(17, 0);
	struct client c;

	start();
	client_open(&rig, &c);
	for (int round = 0; round < 50; round++) {
		char kind[40];
		size_t n = 1 + rng_next(&r) % 40, n_held;
		uint64_t base = (uint64_t)round * 100;

		rig.n_held = 0;
		for (size_t i = 0; i < n; i++) {
			char text[32];

			kind[i] = "nnTH"[rng_next(&r) % (i < 30 ? 4 : 3)];
			snprintf(text, sizeof text,
				 kind[i] == 'H'   ? "H\n"
				 : kind[i] == 'T' ? "T%05llu %zu\n"
						  : "n%05llu %zu\n",
				 (unsigned long long)(base + i + 1), i);
			client_puts(&c, text);
		}
		n_held = (size_t)(memchr(kind, 'H', n) != NULL);
		for (size_t i = 0; i < 5; i++)
			rig_pump(&rig);
		assert_true(rig.n_held >= n_held);
		/* the held ones backwards, the tickets in between */
		for (size_t i = rig.n_held; i-- > 0;) {
			char text[32];

			server_durable(rig.server, base + 1 + rng_next(&r) % n);
			snprintf(text, sizeof text, "held %zu\n", i);
			reply_fill(rig.held[i], text, strlen(text));
			rig_pump(&rig);
		}
		server_durable(rig.server, base + n);
		n_held = 0;
		for (size_t i = 0; i < n; i++) {
			char want[40];

			if (kind[i] == 'H')
				snprintf(want, sizeof want, "held %zu", n_held++);
			else
				snprintf(want, sizeof want, "%d:%c%05llu %zu", i < 10 ? 8 : 9, kind[i],
					 (unsigned long long)(base + i + 1), i);
			expect_line(&c, want);
		}
	}
	rig.n_held = 0;
	client_close(&c);
	rig_release(&rig);
}

TEST(test_server_calls_on_turn_once_for_what_came_together)
{
	struct strbuf text = { 0 };
	struct client c;

	start();
	client_open(&rig, &c);
	assert_int_equal(rig.n_turns, 0); /* nothing was asked yet */
	for (int i = 0; i < 100; i++)
		strbuf_puts(&text, "T7 commit\n");
	rig.commit = 7; /* on_turn makes it durable at once: replies leave in the same turn */
	client_send(&c, text.text, text.len);
	rig_pump(&rig);
	client_read(&c);
	assert_int_equal(c.got.len - c.read, 100 * strlen("9:T7 commit\n"));
	assert_int_equal(rig.n_turns, 1);
	strbuf_release(&text);
	client_close(&c);
	rig_release(&rig);
}

TEST(test_server_lets_nobody_be_starved)
{
	enum { N_GREEDY = 20000 };
	struct strbuf text = { 0 };
	struct client greedy, modest;
	size_t before;

	start();
	client_open(&rig, &greedy);
	client_open(&rig, &modest);
	for (int i = 0; i < N_GREEDY; i++)
		strbuf_puts(&text, "g\n");
	/* it fits the socket's buffer as one piece */
	assert_int_equal(send(greedy.fd, text.text, text.len, 0), text.len);
	rig_pump(&rig);
	before = rig.n_lines;
	assert_true(before <= 256);
	assert_int_equal(send(modest.fd, "m\n", 2, 0), 2);
	rig_pump(&rig);
	client_read(&modest);
	assert_int_equal(modest.got.len - modest.read, 4);
	assert_true(rig.n_lines - before <= 257);
	for (int i = 0; i < N_GREEDY; i++)
		expect_line(&greedy, "1:g");
	strbuf_release(&text);
	client_close(&greedy);
	client_close(&modest);
	rig_release(&rig);
}

TEST(test_server_handles_the_last_line_without_newline)
{
	struct client c;

	start();
	client_open(&rig, &c);
	client_puts(&c, "H\nT9 later\nwhole\npart");
	shutdown(c.fd, SHUT_WR);
	expect_silence(&c);
	assert_int_equal(rig.n_lines, 4);
	reply_fill(rig.held[0], "held\n", 5);
	expect_line(&c, "held");
	expect_silence(&c);
	server_durable(rig.server, 9);
	expect_line(&c, "8:T9 later");
	expect_line(&c, "5:whole");
	expect_line(&c, "4:part");
	expect_end(&c);
	rig.n_held = 0;
	client_close(&c);
	/* at once, with nothing behind; and with more lines than one turn takes */
	client_open(&rig, &c);
	for (int i = 0; i < 1000; i++)
		client_puts(&c, "l\n");
	client_puts(&c, "end\r");
	shutdown(c.fd, SHUT_WR);
	for (int i = 0; i < 1000; i++)
		expect_line(&c, "1:l");
	expect_line(&c, "3:end");
	expect_end(&c);
	client_close(&c);
	rig_release(&rig);
}

TEST(test_server_half_closed_watcher_hears_on_until_it_is_gone)
{
	struct server_params p;
	struct client c;

	rig_init(&rig);
	p = rig_params(&rig);
	p.idle_timeout_s = 0.08;
	rig_start(&rig, &p);
	client_open(&rig, &c);
	client_puts(&c, "W\n");
	shutdown(c.fd, SHUT_WR);
	expect_line(&c, "1:W");
	rig_pump_for(&rig, 0.2);
	conn_push(rig.conn[0], "event\n", 6);
	expect_line(&c, "event");
	client_close(&c);
	rig_wait_for(&rig, 0);
	rig_release(&rig);
}

TEST(test_server_connection_may_go_before_its_replies)
{
	struct client c;

	start();
	for (int i = 0; i < 3; i++) {
		client_open(&rig, &c);
		client_puts(&c, "H\nT50 x\nH\nT60 y\nH\n");
		rig_pump_for(&rig, 0.005);
		assert_int_equal(rig.n_held, 3);
		if (i == 0) { /* filled in the middle of it */
			reply_fill(rig.held[1], "x\n", 2);
			rig.held[1] = rig.held[--rig.n_held];
		}
		if (i == 2) {
			server_free(rig.server); /* the server goes first */
			rig.server = NULL;
		}
		client_close(&c);
		rig_pump_for(&rig, 0.005);
		while (rig.n_held > 0)
			reply_fill(rig.held[--rig.n_held], "late\n", 5);
		if (rig.server)
			server_durable(rig.server, 60);
		rig_pump_for(&rig, 0.005);
	}
	assert_int_equal(rig.n_closed, 3);
	rig_release(&rig);
}

TEST(test_server_closes_after_what_is_queued)
{
	struct client c;

	start();
	client_open(&rig, &c);
	client_puts(&c, "one\nH\nT4 four\nC\nignored\n");
	expect_line(&c, "3:one");
	expect_silence(&c);
	assert_int_equal(rig.n_lines, 4);
	reply_fill(rig.held[0], "held\n", 5);
	rig.n_held = 0;
	expect_line(&c, "held");
	expect_silence(&c);
	assert_int_equal(rig.n_closed, 0);
	server_durable(rig.server, 4);
	expect_line(&c, "7:T4 four");
	expect_end(&c); /* the answer after the closing is not sent */
	assert_int_equal(rig.n_closed, 1);
	client_close(&c);
	rig_release(&rig);
}

TEST(test_server_handler_may_close_others)
{
	struct client c[5];

	start();
	for (int i = 0; i < 5; i++)
		client_open(&rig, &c[i]);
	for (int i = 0; i < 5; i++)
		client_puts(&c[i], i == 2 ? "X\n" : "H\n");
	expect_line(&c[2], "1:X");
	for (size_t i = 0; i < rig.n_held; i++)
		reply_fill(rig.held[i], "x\n", 2);
	rig.n_held = 0;
	for (int i = 0; i < 5; i++) {
		if (i != 2)
			while (client_line(&c[i]))
				;
	}
	assert_int_equal(server_connections(rig.server), 1);
	for (int i = 0; i < 5; i++)
		client_close(&c[i]);
	rig_release(&rig);
}

static int disarm(void **state)
{
	(void)state;
	mem_fail_at(0, false);
	return 0;
}

TEST_WITH(test_server_asks_for_no_memory_once_it_runs, NULL, disarm)
{
	struct client c;

	start();
	client_open(&rig, &c);
	for (int i = 0; i < 500; i++) {
		mem_fail_at(i < 100 ? 0 : 1, true);
		assert_int_equal(send(c.fd, "one\ntwo\nthr", 11, 0), 11);
		rig_pump(&rig);
		assert_int_equal(send(c.fd, "ee\n", 3, 0), 3);
		rig_pump(&rig);
		assert_false(mem_failed());
		mem_fail_at(0, false);
		expect_line(&c, "3:one");
		expect_line(&c, "3:two");
		expect_line(&c, "5:three");
	}
	mem_fail_at(0, false);
	client_close(&c);
	rig_release(&rig);
}

TEST_WITH(test_server_survives_every_failed_allocation, NULL, disarm)
{
	for (unsigned long k = 1;; k++) {
		struct server_params p;
		struct err err = { 0 };
		struct client c = { .fd = -1 };
		bool failed;

		rig_init(&rig);
		p = rig_params(&rig);
		mem_fail_at(k, false);
		if (server_new(&p, &rig.server, &err) == 0) {
			assert_int_equal(client_try(&rig, &c), 0);
			assert_int_equal(send(c.fd, "one\nH\nT3 x\nB5000\nW\npart", 23, MSG_NOSIGNAL), 23);
			for (int i = 0; i < 5; i++)
				rig_pump(&rig);
			(void)!send(c.fd, "ial\n", 4, MSG_NOSIGNAL);
			for (size_t i = 0; i < rig.n_conns; i++)
				if (rig.conn[i])
					conn_push(rig.conn[i], "event\n", 6);
			for (size_t i = 0; i < rig.n_held; i++)
				reply_fill(rig.held[i], "held\n", 5);
			rig.n_held = 0;
			server_durable(rig.server, 3);
			for (int i = 0; i < 5; i++)
				rig_pump(&rig);
		} else {
			assert_int_equal(err.code, ERR_NOMEM);
		}
		failed = mem_failed();
		mem_fail_at(0, false);
		client_close(&c);
		rig_release(&rig);
		if (!failed) {
			assert_true(k > 8);
			break;
		}
	}
}

TEST(test_server_tells_who_asks)
{
	gid_t group[256];
	int n = getgroups(256, group);
	struct client c;

	start();
	client_open(&rig, &c);
	assert_int_equal(conn_uid(rig.conn[0]), geteuid());
	assert_int_equal(conn_gid(rig.conn[0]), getegid());
	assert_true(conn_in_group(rig.conn[0], getegid()));
	for (int i = 0; i < n; i++)
		assert_true(conn_in_group(rig.conn[0], group[i]));
	assert_false(conn_in_group(rig.conn[0], 4000000001));
	client_close(&c);
	rig_release(&rig);
}
