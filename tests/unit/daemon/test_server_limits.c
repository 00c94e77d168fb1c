/* scheduler/daemon/server: who may listen, how many may connect, and what becomes of the slow and the
 * idle. */
#include "tests/support/test.h"
#include "tests/unit/daemon/server_harness.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct rig rig;

static struct server_params params(void)
{
	rig_init(&rig);
	return rig_params(&rig);
}

/* ---- output ---- */

TEST(test_server_does_not_read_who_does_not_read)
{
	enum { N_LINES = 60000 };
	struct server_params p = params();
	struct strbuf text = { 0 };
	struct client c;
	size_t sent = 0, stuck;

	p.max_output_bytes = 256 << 10;
	rig_start(&rig, &p);
	client_open(&rig, &c);
	for (int i = 0; i < N_LINES; i++)
		strbuf_puts(&text, "B100\n");
	for (int quiet = 0; quiet < 20;) {
		ssize_t n = send(c.fd, text.text + sent, text.len - sent, MSG_NOSIGNAL);

		quiet = n > 0 ? 0 : quiet + 1;
		sent += n > 0 ? (size_t)n : 0;
		rig_pump(&rig);
	}
	assert_true(sent < text.len);
	do { /* what is on its way may take a while beside other programs */
		stuck = rig.n_lines;
		rig_pump_for(&rig, 0.02);
	} while (rig.n_lines != stuck);
	/* a quarter of the limit, one line more, and what the socket itself holds */
	assert_true(stuck * 100 < (256 << 10) / 4 + 100 + (512 << 10));
	for (int i = 0; i < N_LINES; i++) {
		ssize_t n = sent < text.len ? send(c.fd, text.text + sent, text.len - sent, MSG_NOSIGNAL) : 0;
		const char *line = client_line(&c);

		sent += n > 0 ? (size_t)n : 0;
		assert_non_null(line);
		assert_int_equal(strlen(line), 99);
	}
	assert_int_equal(rig.n_lines, N_LINES);
	strbuf_release(&text);
	client_close(&c);
	rig_release(&rig);
}

TEST(test_server_reads_on_only_while_few_replies_wait)
{
	struct server_params p = params();
	struct strbuf text = { 0 };
	struct client c;
	size_t n;

	rig_start(&rig, &p);
	client_open(&rig, &c);
	for (int i = 0; i < 100; i++)
		client_puts(&c, "H\n");
	rig_pump_for(&rig, 0.01);
	n = rig.n_held;
	assert_true(n > 0 && n < 100);
	for (size_t i = 0; i < 100; i++) {
		char want[32];

		assert_true(i < rig.n_held);
		snprintf(want, sizeof want, "held %zu\n", i);
		reply_fill(rig.held[i], want, strlen(want));
		want[strlen(want) - 1] = '\0';
		expect_line(&c, want);
		rig_pump(&rig);
	}
	rig.n_held = 0;
	for (int i = 0; i < 3000; i++)
		strbuf_puts(&text, "T1\n");
	/* at once, since the socket takes a few hundred pieces only, however small */
	assert_int_equal(send(c.fd, text.text, text.len, MSG_NOSIGNAL), text.len);
	strbuf_release(&text);
	rig_pump_for(&rig, 0.01);
	assert_true(rig.n_lines < 3000);
	server_durable(rig.server, 1);
	for (int i = 0; i < 3000; i++)
		expect_line(&c, "2:T1");
	client_close(&c);
	rig_release(&rig);
}

/* An event of 1,000 bytes that says which one it is. */
static void push_event(struct conn *c, int i)
{
	char text[1001];

	snprintf(text, sizeof text, "event %07d %0985d\n", i, 0);
	conn_push(c, text, 1000);
}

TEST(test_server_closes_a_watcher_that_does_not_read)
{
	struct server_params p = params();
	const char *line, *last = NULL;
	struct client c;
	int n = 0;

	p.max_output_bytes = 100000;
	rig_start(&rig, &p);
	client_open(&rig, &c);
	client_puts(&c, "W\n");
	expect_line(&c, "1:W");
	for (int i = 0; i < 5000 && rig.conn[0]; i++) {
		push_event(rig.conn[0], i);
		if (i % 7 == 0)
			rig_pump(&rig);
	}
	/* It gets whole lines, in order, and the reason last. */
	while ((line = client_line(&c))) {
		char want[32];

		snprintf(want, sizeof want, "event %07d 0", n);
		if (strncmp(line, want, strlen(want)) == 0) {
			assert_int_equal(strlen(line), 999);
			n++;
		} else {
			assert_null(last);
			last = "seen";
			assert_string_equal(line, "!slow_reader too much output was not read");
		}
	}
	assert_non_null(last);
	assert_int_equal(c.read, c.got.len);
	assert_true(n >= 100 && n < 1500);
	client_close(&c);
	rig_release(&rig);
}

TEST(test_server_gives_a_watcher_a_chance_to_read)
{
	struct server_params p = params();
	struct client c;

	p.max_output_bytes = 100000;
	rig_start(&rig, &p);
	client_open(&rig, &c);
	for (int round = 0; round < 20; round++) {
		/* more in one turn than the limit, but not more than the socket takes and the limit */
		for (int i = 0; i < 150; i++)
			push_event(rig.conn[0], i);
		for (int i = 0; i < 150; i++)
			assert_non_null(client_line(&c));
	}
	assert_int_equal(rig.n_closed, 0);
	client_close(&c);
	rig_release(&rig);
}

TEST(test_server_answers_more_than_the_limit_at_once)
{
	struct server_params p = params();
	struct client c;
	const char *line;

	p.max_output_bytes = 10000;
	rig_start(&rig, &p);
	client_open(&rig, &c);
	client_puts(&c, "B3000000\nnext\n"); /* a reply is never cut: only reading stops until it is gone */
	line = client_line(&c);
	assert_non_null(line);
	assert_int_equal(strlen(line), 2999999);
	expect_line(&c, "4:next");
	client_close(&c);
	rig_release(&rig);
}

/* ---- time ---- */

static void keep_busy(struct client *c)
{
	client_puts(c, "b\n");
	expect_line(c, "1:b");
	rig_pump_for(c->rig, 0.02);
}

TEST(test_server_closes_the_idle_and_no_others)
{
	struct server_params p = params();
	struct client idle, watcher, waiter, busy, slow;

	p.idle_timeout_s = 0.15;
	rig_start(&rig, &p);
	client_open(&rig, &idle);
	client_open(&rig, &watcher);
	client_open(&rig, &waiter);
	client_open(&rig, &busy);
	client_open(&rig, &slow);
	client_puts(&watcher, "W\n");
	expect_line(&watcher, "1:W");
	client_puts(&waiter, "H\n");
	for (int i = 0; i < 20; i++) {
		if (!slow.eof) /* bytes are no request */
			(void)!send(slow.fd, "s", 1, MSG_NOSIGNAL);
		keep_busy(&busy);
		client_read(&slow);
	}
	expect_line(&idle, "!idle_timeout nothing was asked for too long");
	expect_end(&idle);
	expect_line(&slow, "!idle_timeout nothing was asked for too long");
	assert_int_equal(rig.n_closed, 2);
	reply_fill(rig.held[0], "held\n", 5);
	rig.n_held = 0;
	expect_line(&waiter, "held");
	client_puts(&watcher, "U\n");
	expect_line(&watcher, "1:U");
	for (int i = 0; i < 20; i++)
		keep_busy(&busy);
	expect_line(&waiter, "!idle_timeout nothing was asked for too long");
	expect_line(&watcher, "!idle_timeout nothing was asked for too long");
	/* a reload may turn it off */
	p.idle_timeout_s = 0.0;
	server_set_limits(rig.server, &p);
	rig_pump_for(&rig, 0.3);
	client_puts(&busy, "b\n");
	expect_line(&busy, "1:b");
	client_close(&idle);
	client_close(&watcher);
	client_close(&waiter);
	client_close(&busy);
	client_close(&slow);
	rig_release(&rig);
}

/* ---- numbers ---- */

TEST(test_server_turns_away_too_many_connections)
{
	struct server_params p = params();
	struct client c[4];

	p.max_connections = 3;
	rig_start(&rig, &p);
	for (int i = 0; i < 3; i++)
		client_open(&rig, &c[i]);
	assert_int_equal(client_try(&rig, &c[3]), 0);
	client_puts(&c[3], "let me in\n");
	expect_line(&c[3], "!too_many_connections 3 connections are open, as many as are allowed");
	expect_end(&c[3]);
	client_close(&c[3]);
	client_close(&c[1]);
	rig_wait_for(&rig, 2);
	client_open(&rig, &c[1]);
	client_puts(&c[1], "room\n");
	expect_line(&c[1], "4:room");
	/* by user */
	p.max_connections = 100;
	p.max_connections_per_uid = 3;
	server_set_limits(rig.server, &p);
	assert_int_equal(client_try(&rig, &c[3]), 0);
	assert_non_null(strstr(client_line(&c[3]), "has 3 connections, as many as are allowed"));
	client_close(&c[3]);
	client_close(&c[0]);
	rig_wait_for(&rig, 2);
	client_open(&rig, &c[3]);
	for (int i = 1; i < 4; i++)
		client_close(&c[i]);
	rig_release(&rig);
}

TEST(test_server_serves_two_thousand_connections)
{
	enum { N_CLIENTS = 2000 };
	struct server_params p = params();
	struct client *c = calloc(N_CLIENTS, sizeof *c);
	struct rlimit l;

	assert_non_null(c);
	rig_start(&rig, &p);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &l), 0);
	assert_true(l.rlim_cur == l.rlim_max);
	if (l.rlim_cur < 2 * N_CLIENTS + 100) {
		print_message("skipped: only %lu descriptors are allowed\n", (unsigned long)l.rlim_cur);
		rig_release(&rig);
		free(c);
		skip();
	}
	for (int i = 0; i < N_CLIENTS; i++)
		client_open(&rig, &c[i]);
	assert_int_equal(server_connections(rig.server), N_CLIENTS);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < N_CLIENTS; i++)
			client_puts(&c[i], "ping\npong\n");
		for (int i = 0; i < N_CLIENTS; i++) {
			expect_line(&c[i], "4:ping");
			expect_line(&c[i], "4:pong");
		}
	}
	for (int i = 0; i < N_CLIENTS; i++)
		client_close(&c[i]);
	rig_wait_for(&rig, 0);
	free(c);
	rig_release(&rig);
}

TEST(test_server_lives_through_running_out_of_descriptors)
{
	struct server_params p = params();
	struct rlimit l, few;
	struct client first, c[3];
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int next;

	rig_start(&rig, &p);
	client_open(&rig, &first);
	snprintf(address.sun_path, sizeof address.sun_path, "%s", rig.path);
	for (int i = 0; i < 3; i++)
		c[i] = (struct client){
			.rig = &rig, .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
		};
	next = dup(0);
	assert_true(next > c[2].fd);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &l), 0);
	few = (struct rlimit){ (rlim_t)next, l.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_true(dup(0) < 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(connect(c[i].fd, (struct sockaddr *)&address, sizeof address), 0);
	for (int i = 0; i < 3; i++) {
		expect_line(&c[i], "!too_many_connections the daemon has no file descriptor left");
		expect_end(&c[i]);
	}
	client_puts(&first, "still here\n");
	expect_line(&first, "10:still here");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &l), 0);
	client_close(&c[0]);
	client_open(&rig, &c[0]);
	client_puts(&c[0], "better\n");
	expect_line(&c[0], "6:better");
	for (int i = 0; i < 3; i++)
		client_close(&c[i]);
	client_close(&first);
	rig_release(&rig);
}

/* In a child, because the hard limit cannot be raised again: exit code 0, or the line that failed. */
#define MUST(claim)                                                                                          \
	do {                                                                                                 \
		if (!(claim))                                                                                \
			_exit(__LINE__ % 250 + 1);                                                           \
	} while (0)

static void live_without_a_spare(const struct server_params *p)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct rlimit few;
	struct client c;
	struct err err;
	int taken[64];

	MUST(client_try(&rig, &c) < 0); /* nobody listens yet: the descriptor is what counts */
	for (int i = 0; i < 64; i++) /* fills the gaps first */
		MUST((taken[i] = dup(0)) >= 0);
	few.rlim_cur = few.rlim_max = (rlim_t)taken[63] + 1;
	MUST(setrlimit(RLIMIT_NOFILE, &few) == 0);
	close(taken[63]); /* for the lock and the socket, and nothing is left */
	close(taken[62]);
	MUST(server_new(p, &rig.server, &err) == 0);
	MUST(dup(0) < 0);
	snprintf(address.sun_path, sizeof address.sun_path, "%s", rig.path);
	MUST(connect(c.fd, (struct sockaddr *)&address, sizeof address) == 0);
	rig_pump_for(&rig, 0.15);
	MUST(server_connections(rig.server) == 0);
	close(taken[61]); /* the spare one comes first */
	close(taken[60]);
	rig_pump_for(&rig, 0.25);
	MUST(server_connections(rig.server) == 1);
	MUST(send(c.fd, "room\n", 5, 0) == 5);
	rig_pump_for(&rig, 0.02);
	client_read(&c);
	MUST(c.got.len == strlen("hello\n4:room\n"));
	_exit(0);
}

TEST(test_server_accepts_again_when_there_are_descriptors)
{
	struct server_params p = params();
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		event_reinit(rig.base);
		live_without_a_spare(&p);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	rig_release(&rig);
}

/* ---- the path ---- */

static void expect_refused(const struct server_params *p, enum err_code code, const char *words)
{
	struct server *s = NULL;
	struct err err = { 0 };

	assert_int_equal(server_new(p, &s, &err), -(int)code);
	assert_null(s);
	if (!strstr(err.text, words))
		fail_msg("'%s' does not say '%s'", err.text, words);
}

TEST(test_server_sets_mode_and_group)
{
	struct server_params p = params();
	mode_t mask = umask(0077);
	struct stat st;

	p.mode = 0660;
	p.group = getegid();
	p.set_group = true;
	rig_start(&rig, &p);
	umask(mask);
	assert_int_equal(stat(rig.path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0660);
	assert_int_equal(st.st_gid, getegid());
	rig_release(&rig);
	assert_int_equal(stat(rig.path, &st), -1); /* it removes what it made */
}

TEST(test_server_never_steals_a_live_socket)
{
	struct server_params p = params();
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct client c;
	char lock[128];
	int fd;

	rig_start(&rig, &p);
	expect_refused(&p, ERR_BUSY, "another daemon listens");
	client_open(&rig, &c); /* the first one is unharmed */
	client_close(&c);
	rig_release(&rig);
	/* a program that knows nothing of our lock */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof address.sun_path, "%s", rig.path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(fd, 1), 0);
	rig.base = event_base_new();
	p.base = rig.base;
	expect_refused(&p, ERR_BUSY, "another program listens on");
	assert_int_equal(access(rig.path, F_OK), 0);
	close(fd);
	/* now it is stale, but somebody holds the lock */
	snprintf(lock, sizeof lock, "%s.lock", rig.path);
	fd = open(lock, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	expect_refused(&p, ERR_BUSY, ".lock");
	close(fd);
	event_base_free(rig.base);
}

TEST(test_server_replaces_a_stale_socket)
{
	struct server_params p = params();
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct client c;

	snprintf(address.sun_path, sizeof address.sun_path, "%s", rig.path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	close(fd);
	assert_int_equal(access(rig.path, F_OK), 0);
	rig_start(&rig, &p);
	client_open(&rig, &c);
	client_close(&c);
	rig_release(&rig);
}

TEST(test_server_refuses_paths_that_will_not_do)
{
	struct server_params p = params();
	char folder[90], inside[108], longer[300];
	FILE *f;

	f = fopen(rig.path, "w");
	assert_non_null(f);
	fclose(f);
	expect_refused(&p, ERR_ARG, "is not a socket");
	assert_int_equal(access(rig.path, F_OK), 0);
	unlink(rig.path);
	p.path = inside;
	snprintf(inside, sizeof inside, "%s/no/s", support_temp_dir());
	expect_refused(&p, ERR_NOTFOUND, "/no: No such file");
	snprintf(folder, sizeof folder, "%s/open", support_temp_dir());
	snprintf(inside, sizeof inside, "%s/s", folder);
	assert_int_equal(mkdir(folder, 0700), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(chmod(folder, i ? 0720 : 0702), 0);
		expect_refused(&p, ERR_PERM, i ? "(mode 720)" : "(mode 702)");
	}
	p.force = true;
	rig_start(&rig, &p);
	server_free(rig.server);
	p.force = false;
	assert_int_equal(chmod(folder, 01777), 0);
	rig_start(&rig, &p);
	server_free(rig.server);
	memset(longer, 'x', sizeof longer - 1);
	longer[0] = '/';
	longer[sizeof longer - 1] = '\0';
	p.path = longer;
	expect_refused(&p, ERR_ARG, "has 299 bytes, Linux allows 107");
	p.path = "";
	expect_refused(&p, ERR_ARG, "empty");
	rig.server = NULL;
	rig_release(&rig);
}

TEST(test_server_leaves_what_others_put_in_its_place)
{
	struct server_params p = params();
	struct stat st;
	FILE *f;

	rig_start(&rig, &p);
	unlink(rig.path);
	f = fopen(rig.path, "w");
	assert_non_null(f);
	fclose(f);
	rig_release(&rig);
	assert_int_equal(stat(rig.path, &st), 0);
	unlink(rig.path);
}

TEST(test_server_takes_a_socket_that_listens_already)
{
	struct server_params p = params();
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct client c;

	p.listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof address.sun_path, "%s", rig.path);
	assert_int_equal(bind(p.listen_fd, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(p.listen_fd, 10), 0);
	rig_start(&rig, &p);
	client_open(&rig, &c);
	client_close(&c);
	rig_release(&rig);
	assert_int_equal(access(rig.path, F_OK), 0); /* it is not ours to remove */
	unlink(rig.path);
}

TEST(test_server_stops_accepting_and_serves_on)
{
	struct server_params p = params();
	struct client c, late;

	rig_start(&rig, &p);
	client_open(&rig, &c);
	server_stop_accepting(rig.server);
	server_stop_accepting(rig.server);
	assert_int_equal(client_try(&rig, &late), -1);
	assert_int_equal(errno, ECONNREFUSED);
	client_puts(&c, "still\n");
	expect_line(&c, "5:still");
	client_close(&c);
	client_close(&late);
	rig_release(&rig);
}

TEST(test_server_sends_what_it_can_when_it_goes)
{
	struct server_params p = params();
	struct client c;

	rig_start(&rig, &p);
	client_open(&rig, &c);
	conn_push(rig.conn[0], "goodbye\n", 8);
	server_free(rig.server);
	rig.server = NULL;
	expect_line(&c, "goodbye");
	expect_end(&c);
	client_close(&c);
	rig_release(&rig);
}
