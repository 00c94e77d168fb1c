#include "common/progress.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/text/text.h"

#define PROGRESS_EVERY_NS 100000000 /* ten times a second */
#define PROGRESS_BAR_MAX 40
#define PROGRESS_ESTIMATE_AFTER_S 1.0 /* before that the time left is a guess that jumps about */

struct progress {
	char label[64];
	atomic_size_t total, done;
	int64_t start_ns;
	_Atomic int64_t next_ns; /* when to draw again */
	pthread_mutex_t drawing;
};

static void put(const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(STDERR_FILENO, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

static int terminal_width(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return 80;
}

static void draw(struct progress *p, int64_t now_ns)
{
	size_t total = atomic_load(&p->total), done = atomic_load(&p->done);
	double share = total ? (double)done / (double)total : 0.0;
	double elapsed_s = (double)(now_ns - p->start_ns) * 1e-9;
	char line[256], bar[PROGRESS_BAR_MAX + 1], left[48] = "", seconds[32];
	int width = terminal_width(), room, filled, n;

	if (share > 1.0)
		share = 1.0; /* the estimate was low */
	if (elapsed_s >= PROGRESS_ESTIMATE_AFTER_S && share > 0.0 && share < 1.0)
		snprintf(left, sizeof left, "  %s left",
			 text_seconds(elapsed_s / share - elapsed_s, seconds));
	/* "label [bar] 100%  2 h 05 min left" must fit into one line, or each redraw would scroll. */
	room = width - (int)strlen(p->label) - (int)strlen(left) - 10;
	if (room > PROGRESS_BAR_MAX)
		room = PROGRESS_BAR_MAX;
	if (room < 0)
		room = 0;
	filled = (int)(share * room);
	memset(bar, '.', (size_t)room);
	memset(bar, '#', (size_t)filled);
	bar[room] = '\0';
	n = snprintf(line, sizeof line, "\r%s [%s] %3d%%%s", p->label, bar, (int)(share * 100.0), left);
	if (n > width - 1)
		n = width - 1;
	if (n > (int)sizeof line - 4)
		n = (int)sizeof line - 4;
	if (n < 1)
		return;
	memcpy(line + n, "\033[K", 3); /* what the last one left behind it */
	put(line, (size_t)n + 3);
}

struct progress *progress_new(const char *label, size_t total)
{
	const char *term = getenv("TERM");
	struct progress *p;

	if (!isatty(STDERR_FILENO) || (term && strcmp(term, "dumb") == 0))
		return NULL;
	p = mem_calloc(1, sizeof *p);
	if (!p)
		return NULL; /* work without a bar beats no work */
	text_printable(label, p->label, sizeof p->label);
	atomic_init(&p->total, total);
	atomic_init(&p->done, 0);
	p->start_ns = clock_monotonic_ns();
	atomic_init(&p->next_ns, p->start_ns);
	pthread_mutex_init(&p->drawing, NULL);
	return p;
}

void progress_total(struct progress *p, size_t total)
{
	if (p)
		atomic_store(&p->total, total);
}

void progress_add(struct progress *p, size_t n)
{
	int64_t now_ns;

	if (!p)
		return;
	atomic_fetch_add(&p->done, n);
	now_ns = clock_monotonic_ns();
	if (now_ns < atomic_load(&p->next_ns))
		return;
	/* Somebody else is drawing: the number just added will be in the next picture. */
	if (pthread_mutex_trylock(&p->drawing) != 0)
		return;
	if (now_ns >= atomic_load(&p->next_ns)) {
		atomic_store(&p->next_ns, now_ns + PROGRESS_EVERY_NS);
		draw(p, now_ns);
	}
	pthread_mutex_unlock(&p->drawing);
}

void progress_free(struct progress *p)
{
	if (!p)
		return;
	put("\r\033[K", 4);
	pthread_mutex_destroy(&p->drawing);
	free(p);
}
