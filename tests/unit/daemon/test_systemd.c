/* scheduler/daemon/notify: the datagrams systemd gets, and the socket it hands over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "scheduler/daemon/net/systemd.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

static int clear(void **state)
{
	static const char *const name[] = { "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
					    "LISTEN_FDS",    "LISTEN_PID",    "LISTEN_FDNAMES" };

	(void)state;
	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		unsetenv(name[i]);
	return 0;
}

/* A datagram socket as systemd has one; `name` starts with @ for the abstract name space. */
static int receiver(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	size_t len = strlen(name);

	assert_true(fd >= 0 && len < sizeof address.sun_path);
	memcpy(address.sun_path, name, len);
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	assert_int_equal(bind(fd, (struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
			 0);
	setenv("NOTIFY_SOCKET", name, 1);
	return fd;
}

static const char *receive(int fd)
{
	static char text[256];
	ssize_t n = recv(fd, text, sizeof text - 1, 0);

	assert_true(n >= 0);
	text[n] = '\0';
	return text;
}

TEST_WITH(test_notify_sends_one_datagram, clear, clear)
{
	int fd = receiver(support_path(support_temp_dir(), "notify"));
	struct err err = { 0 };

	assert_int_equal(notify_send("READY=1\nSTATUS=3 jobs run", &err), 0);
	assert_string_equal(receive(fd), "READY=1\nSTATUS=3 jobs run");
	close(fd);
}

TEST_WITH(test_notify_knows_abstract_sockets, clear, clear)
{
	char name[64];
	int fd;

	snprintf(name, sizeof name, "@postrider-test-%ld", (long)getpid());
	fd = receiver(name);
	assert_int_equal(notify_send("STOPPING=1", NULL), 0);
	assert_string_equal(receive(fd), "STOPPING=1");
	close(fd);
}

TEST_WITH(test_notify_reloading_carries_the_time, clear, clear)
{
	int fd = receiver(support_path(support_temp_dir(), "reload"));
	struct timespec before, after;
	long long us, low, high;

	clock_gettime(CLOCK_MONOTONIC, &before);
	assert_int_equal(notify_reloading(NULL), 0);
	clock_gettime(CLOCK_MONOTONIC, &after);
	assert_int_equal(sscanf(receive(fd), "RELOADING=1\nMONOTONIC_USEC=%lld", &us), 1);
	low = (long long)before.tv_sec * 1000000 + before.tv_nsec / 1000;
	high = (long long)after.tv_sec * 1000000 + after.tv_nsec / 1000;
	assert_true(us >= low && us <= high);
	close(fd);
}

TEST_WITH(test_notify_without_systemd_is_nothing, clear, clear)
{
	int fd = 7;

	assert_int_equal(notify_send("READY=1", NULL), 0);
	setenv("NOTIFY_SOCKET", "", 1);
	assert_int_equal(notify_send("READY=1", NULL), 0);
	assert_true(notify_watchdog_s() == 0.0);
	assert_int_equal(notify_listen_fd(&fd, NULL), 0);
	assert_int_equal(fd, -1);
}

TEST_WITH(test_notify_says_what_is_wrong, clear, clear)
{
	char longer[200];
	struct err err = { 0 };

	setenv("NOTIFY_SOCKET", support_path(support_temp_dir(), "nobody"), 1);
	assert_int_equal(notify_send("READY=1", &err), -ERR_IO);
	assert_non_null(strstr(err.text, "nobody: No such file"));
	setenv("NOTIFY_SOCKET", "relative", 1);
	assert_int_equal(notify_send("READY=1", &err), -ERR_ARG);
	setenv("NOTIFY_SOCKET", "@", 1);
	assert_int_equal(notify_send("READY=1", &err), -ERR_ARG);
	memset(longer, '/', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	setenv("NOTIFY_SOCKET", longer, 1);
	assert_int_equal(notify_send("READY=1", &err), -ERR_ARG);
}

TEST_WITH(test_notify_watchdog_is_for_us_alone, clear, clear)
{
	char pid[32];

	setenv("WATCHDOG_USEC", "2370000", 1);
	assert_true(notify_watchdog_s() == 2.37);
	snprintf(pid, sizeof pid, "%ld", (long)getpid());
	setenv("WATCHDOG_PID", pid, 1);
	assert_true(notify_watchdog_s() == 2.37);
	setenv("WATCHDOG_PID", "1", 1);
	assert_true(notify_watchdog_s() == 0.0);
	unsetenv("WATCHDOG_PID");
	setenv("WATCHDOG_USEC", "soon", 1);
	assert_true(notify_watchdog_s() == 0.0);
	setenv("WATCHDOG_USEC", "-5", 1);
	assert_true(notify_watchdog_s() == 0.0);
}

static int listening(int domain, int type, bool listens)
{
	int fd = socket(domain, type | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (domain == AF_UNIX && bind(fd, (struct sockaddr *)&address, sizeof address.sun_family) < 0)
		return -1; /* an abstract name the kernel chooses */
	if (listens && listen(fd, 5) < 0)
		return -1;
	return fd;
}

/* In a child with `passed` as descriptor 3: the code of notify_listen_fd, 100 with a socket, 101 without. */
static int handed_over(int passed, const char *fds, bool for_us)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		char pid[32];
		int fd = -7, rc;

		if (passed >= 0 && passed != 3)
			dup2(passed, 3);
		snprintf(pid, sizeof pid, "%ld", for_us ? (long)getpid() : 1L);
		setenv("LISTEN_PID", pid, 1);
		setenv("LISTEN_FDS", fds, 1);
		setenv("LISTEN_FDNAMES", "x", 1);
		rc = notify_listen_fd(&fd, NULL);
		if (getenv("LISTEN_PID") || getenv("LISTEN_FDS") || getenv("LISTEN_FDNAMES"))
			_exit(99);
		_exit(rc ? -rc : fd == 3 ? 100 : fd == -1 ? 101 : 98);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST_WITH(test_notify_takes_a_listening_unix_socket_only, clear, clear)
{
	int good = listening(AF_UNIX, SOCK_STREAM, true), deaf = listening(AF_UNIX, SOCK_STREAM, false);
	int datagram = listening(AF_UNIX, SOCK_DGRAM, false), inet = listening(AF_INET, SOCK_STREAM, true);
	int null = dup(0);

	assert_true(good >= 0 && deaf >= 0 && datagram >= 0);
	assert_int_equal(handed_over(good, "1", true), 100);
	assert_int_equal(handed_over(good, "1", false), 101);
	assert_int_equal(handed_over(good, "0", true), 101);
	assert_int_equal(handed_over(good, "many", true), 101);
	assert_int_equal(handed_over(good, "2", true), ERR_ARG);
	assert_int_equal(handed_over(deaf, "1", true), ERR_ARG);
	assert_int_equal(handed_over(datagram, "1", true), ERR_ARG);
	if (inet >= 0)
		assert_int_equal(handed_over(inet, "1", true), ERR_ARG);
	assert_int_equal(handed_over(null, "1", true), ERR_ARG);
	close(good);
	close(deaf);
	close(datagram);
	close(null);
	if (inet >= 0)
		close(inet);
}
