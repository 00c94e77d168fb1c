/* The screen of `postrider watch`: running jobs with their progress, those that wait and the latest that
 * ended, drawn again in its place. */
#ifndef SCHEDULER_CLI_CLIENT_WATCH_SCREEN_H
#define SCHEDULER_CLI_CLIENT_WATCH_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "scheduler/cli/client/job_view.h"

struct watch_row {
	struct json *line;    /* owned: what `job` borrows from */
	struct job_view job;
	double came_s;        /* when, by the wall clock */
};

struct watch_screen {
	struct watch_row *row; size_t n, cap;
	char notice[224];     /* the last thing the daemon said about itself */
	size_t kept, broken;  /* promises of jobs that ended meanwhile */
	size_t drawn;         /* lines on the screen now */
	bool colour, hidden;  /* the cursor */
	struct strbuf out;
};

/* Takes `line`, of which `job` is a part, and replaces an earlier state of the job. Of the jobs that have
 * ended, the latest few stay. Returns 0, or -1 without memory (the line is freed). */
int watch_screen_take(struct watch_screen *s, struct json *line, const struct json *job);
/* Writes to `out` what changes the last screen into this one, of at most width x height. */
void watch_screen_draw(struct watch_screen *s, size_t width, size_t height, double now_s);
void watch_screen_release(struct watch_screen *s);

#endif
