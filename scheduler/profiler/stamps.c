/* Follows the logs of the copies of a run. See stamps.h. */
#include "scheduler/profiler/stamps.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/process/output.h"

#define MAX_PIECES 64 /* of a log in one look: the rest has to wait */

struct copy_stamps {
	struct job_output output;
	struct stamp {
		double epoch;
		int64_t at_ns; /* 0: several came at once, out of a buffer: nobody knows when each ended */
	} * stamp;
	size_t n, cap;
};

struct stamps {
	int64_t begun_ns;
	size_t n;
	char scratch[JOB_OUTPUT_MAX_LINE + 1];
	struct copy_stamps copy[];
};

static void on_epoch(void *owner, double epoch, int64_t written_ns)
{
	struct copy_stamps *c = owner;
	void *list = c->stamp;

	if (c->n >= PROFILE_MAX_EPOCHS || mem_grow(&list, &c->cap, c->n + 1, sizeof *c->stamp))
		return;
	c->stamp = list;
	if (c->n && c->stamp[c->n - 1].at_ns == written_ns)
		c->stamp[c->n - 1].at_ns = 0;
	c->stamp[c->n++] = (struct stamp){ epoch, written_ns };
}

struct stamps *stamps_new(const struct profile_run_params *p, size_t n_copies)
{
	const char *told = profile_value(p->design, p->point->level, "epochs");
	struct stamps *s = mem_calloc(1, sizeof *s + n_copies * sizeof *s->copy);
	char out[PATH_MAX], talk[PATH_MAX];
	double epochs = NAN;

	if (!s)
		return NULL;
	if (told && !text_number(told, &epochs))
		epochs = NAN;
	s->begun_ns = clock_wall_ns();
	for (; s->n < n_copies; s->n++) {
		struct copy_stamps *c = &s->copy[s->n];

		if (profile_log_path(p, s->n + 1, "out", out, NULL) ||
		    profile_log_path(p, s->n + 1, "err", talk, NULL) ||
		    job_output_open(&c->output, out, talk, &p->design->result, epochs, NULL))
			break;
		c->output.on_epoch = on_epoch;
		c->output.owner = c;
	}
	return s;
}

void stamps_free(struct stamps *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++) {
		job_output_release(&s->copy[i].output);
		free(s->copy[i].stamp);
	}
	free(s);
}

void stamps_look(struct stamps *s, bool ended)
{
	for (size_t i = 0; s && i < s->n; i++) {
		bool more = true;

		for (size_t k = 0; k < MAX_PIECES && more; k++)
			job_output_read(&s->copy[i].output, s->scratch, ended, &more);
	}
}

void stamps_give(const struct stamps *s, struct profile_outcome *o)
{
	for (size_t i = 0; s && i < s->n && i < o->n_copies; i++) {
		const struct copy_stamps *c = &s->copy[i];
		size_t at = 0;

		for (size_t k = 0; k < o->copy[i].n_epochs; k++) {
			struct profile_epoch *e = &o->copy[i].epoch[k];

			while (at < c->n && c->stamp[at].epoch < e->epoch)
				at++;
			if (isnan(e->elapsed_s) && at < c->n && c->stamp[at].epoch == e->epoch &&
			    c->stamp[at].at_ns)
				e->elapsed_s =
					fmin(fmax(1e-9 * (double)(c->stamp[at].at_ns - s->begun_ns), 0.0),
					     o->copy[i].time_s);
		}
	}
}
