/* What a page shows of the logs of a job: its epochs as a curve, and its last lines. See output.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "scheduler/process/output.h"

struct adding {
	struct output_curve *curve;
	const struct job_output *from;
	bool failed;
};

/* Every other point goes, and from now on every other one is not taken. */
static void thin_out(struct output_curve *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i += 2)
		c->point[n++] = c->point[i];
	c->n = n;
	c->skip = 2 * c->skip + 1;
}

static void add_epoch(void *owner, double epoch, int64_t written_ns)
{
	struct adding *a = owner;
	struct output_curve *c = a->curve;
	void *points = c->point;

	(void)written_ns;
	if (c->seen++ & c->skip)
		return;
	if (c->n == OUTPUT_MAX_POINTS)
		thin_out(c);
	if (mem_grow(&points, &c->cap, c->n + 1, sizeof *c->point)) {
		a->failed = true;
		return;
	}
	c->point = points;
	c->point[c->n++] = (struct output_point){ .accuracy = a->from->epoch_accuracy,
						  .epoch = epoch,
						  .loss = a->from->epoch_loss,
						  .elapsed_s = a->from->epoch_elapsed_s };
}

int output_curve_read(struct job_output *o, struct output_curve *out, struct err *err)
{
	struct adding a = { .curve = out, .from = o };
	char *scratch = mem_alloc(JOB_OUTPUT_MAX_LINE + 1);
	bool more = true;

	if (!scratch)
		return err_nomem(err, "a job's output");
	o->on_epoch = add_epoch;
	o->owner = &a;
	/* A log that grows meanwhile does not keep us: that much is all that is looked at. */
	for (size_t left = 4 * JOB_OUTPUT_MAX_BEHIND / JOB_OUTPUT_MAX_LINE; more && left > 0; left--)
		job_output_read(o, scratch, false, &more);
	job_output_read(o, scratch, true, &more);
	free(scratch);
	return a.failed ? err_nomem(err, "a job's output") : 0;
}

void output_curve_release(struct output_curve *c)
{
	free(c->point);
	*c = (struct output_curve){ 0 };
}

void output_tail(const char *dir, const char *name, size_t max, struct strbuf *out)
{
	struct strbuf path = { 0 };
	struct stat st;
	char *text = NULL, *from;
	ssize_t n = 0;
	int fd = -1;

	strbuf_printf(&path, "%s/%s", dir, name);
	if (!path.failed)
		fd = open(path.text, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	strbuf_release(&path);
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink == 1 && (text = mem_alloc(max + 1)))
		n = pread(fd, text, max, st.st_size > (off_t)max ? st.st_size - (off_t)max : 0);
	close(fd);
	if (n > 0) {
		from = st.st_size > (off_t)max ? memchr(text, '\n', (size_t)n) : NULL;
		from = from ? from + 1 : text;
		for (char *p = from; p < text + n; p++)
			*p = *p ? *p : ' '; /* a NUL byte would end the text */
		strbuf_add(out, from, (size_t)(text + n - from));
	}
	free(text);
}
