/* A pseudo-terminal between the job and its log, where the type asks for one: some programs write a line when
 * it ends only to a terminal, and keep it back from a file. Standard output and standard error are then one
 * stream, the log of standard output. The supervisor copies; it adds nothing and turns no line end into
 * another. The terminal controls no process, so no key of anybody reaches the job. */
#define _GNU_SOURCE
#include "scheduler/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#define PIECE 16384
#define COLUMNS 120 /* a progress bar is as wide as the terminal */
#define ROWS 40
#define HOUR_MS 3600000

void terminal_open(struct run *r)
{
	struct winsize size = { .ws_row = ROWS, .ws_col = COLUMNS };
	struct termios mode;
	char name[64];
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	r->signals = signalfd(-1, &set, SFD_CLOEXEC);
	r->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (r->signals < 0 || r->master < 0 || grantpt(r->master) || unlockpt(r->master) ||
	    ptsname_r(r->master, name, sizeof name) || fcntl(r->master, F_SETFL, O_NONBLOCK) ||
	    (r->slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0 || tcgetattr(r->slave, &mode))
		give_up(code_of(errno), "cannot open a terminal: %s", strerror(errno));
	mode.c_oflag &= ~(tcflag_t)OPOST;
	mode.c_lflag &= ~(tcflag_t)ECHO;
	if (tcsetattr(r->slave, TCSANOW, &mode) || ioctl(r->slave, TIOCSWINSZ, &size))
		give_up(code_of(errno), "cannot set up a terminal: %s", strerror(errno));
}

/* False: there is nothing more for now, or for ever. A disk that is full loses lines, and does not stop the
 * job. */
static bool copy_piece(struct run *r)
{
	char piece[PIECE];
	ssize_t n = read(r->master, piece, sizeof piece);

	if (n > 0)
		write_all(r->terminal_log, piece, (size_t)n);
	return n > 0 || (n < 0 && errno == EINTR);
}

void terminal_begin(struct run *r)
{
	close(r->slave); /* with the last one the job has, reading ends */
	r->terminal_log = open_log(r->opt, JOB_STDOUT, O_APPEND);
}

void terminal_wait(struct run *r, int64_t until_ns)
{
	struct pollfd fd[2] = { { .fd = r->signals, .events = POLLIN },
				{ .fd = r->master, .events = POLLIN } };
	int64_t left_ns = until_ns - clock_ns(CLOCK_BOOTTIME);
	int64_t left_ms = left_ns <= 0 ? 0 : left_ns / 1000000 + 1;

	if (poll(fd, 2, left_ms < HOUR_MS ? (int)left_ms : HOUR_MS) > 0 && fd[1].revents)
		(void)copy_piece(r);
	/* Nobody has it open at the moment: a look now and then, or this would spin. */
	if (fd[1].revents & POLLHUP && !(fd[1].revents & POLLIN))
		poll(fd, 1, 20);
}

void terminal_end(struct run *r)
{
	while (copy_piece(r))
		;
}
