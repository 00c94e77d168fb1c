/* A job object of the protocol as text: a block, a line or a row of a table. Shared by submit, status, list,
 * watch, wait and cancel. A view borrows from its JSON. Its texts come from other users and are cleaned when
 * they are printed. */
#ifndef SCHEDULER_CLI_CLIENT_JOB_VIEW_H
#define SCHEDULER_CLI_CLIENT_JOB_VIEW_H

#include <stdbool.h>

#include "common/json/json.h"
#include "common/strbuf.h"
#include "scheduler/cli/cli.h"
#include "scheduler/jobs/record.h"

struct job_view { /* what is not known is as job_json_read() leaves it */
	const char *id;              /* as text */
	struct job_record r;         /* without `params` and `batches`, which stay JSON */
	struct job_times t;
	struct job_live live;        /* seconds from when the object was made */
	const struct json *params;
};

bool job_view_read(const struct json *v, struct job_view *out); /* false: it is not a job object */
bool job_view_ended(const struct job_view *j);
/* The exit code of `wait` and `submit --wait`: that of the job; 1 if a signal ended it, or it was cancelled
 * or lost; 3 if it was rejected. */
int job_view_exit_code(const struct job_view *j);

/* A block of lines, as `status` prints it. `now_s` is the wall clock, seconds since 1970. */
void job_view_block(const struct job_view *j, double now_s, struct strbuf *out);
/* One line without its newline: the result or what is expected. `age_s`: how old the object is; estimates are
 * nearer by as much. */
void job_view_line(const struct job_view *j, double age_s, struct strbuf *out);

/* What became of a job that has ended: " after 12 s, accuracy 0.93, limit met, 3 s to spare". brief: an exit
 * code of 0 goes without saying. */
void job_view_result(const struct job_view *j, bool brief, struct strbuf *out);
/* How much of a running job is done, by the time that is left or its epochs; NaN: not known. */
double job_view_share(const struct job_view *j, double age_s, double now_s);

#define JOB_VIEW_ALIGN "rlllrrrrrrrlll" /* of the table that rows go into */
void job_view_header(struct cli_table *t);
void job_view_row(struct cli_table *t, const struct job_view *j, double age_s, double now_s);

void job_csv_header(struct strbuf *out);
void job_csv_row(const struct job_view *j, struct strbuf *out);
char *job_user(uid_t uid, char *buf, size_t size); /* the name of a user, or the number; returns buf */

/* "in 20 s (17 s to 24 s)"; buf of JOB_VIEW_SPAN bytes. */
#define JOB_VIEW_SPAN 160
char *job_view_end(const struct job_view *j, double age_s, char *buf);

/* "epoch 3 of 14, 80 s left, at most 95 s at 90 %"; empty where the job has told nothing yet. */
void job_view_progress(const struct job_view *j, double age_s, struct strbuf *out);

/* What becomes of a limit that was not promised, by the epochs of the job itself: its bounds lie before the
 * limit, around it, or behind it. */
enum job_outlook { OUTLOOK_NONE, OUTLOOK_HOLDS, OUTLOOK_OPEN, OUTLOOK_MISSED };
enum job_outlook job_view_outlook(const struct job_view *j, double age_s, double now_s);
/* As a sentence, with what would hold; nothing for OUTLOOK_NONE. */
void job_view_outlook_put(const struct job_view *j, double age_s, double now_s, struct strbuf *out);

bool job_id_valid(const char *text);                     /* digits, not too many */
bool job_moment(const char *rfc3339, double *out_s);     /* seconds since 1970; false: not a moment */
double job_now(void);                                    /* the wall clock, in seconds since 1970 */
#define JOB_CLOCK 64
char *job_clock(double s, const char *format, char *buf); /* strftime in local time; buf of JOB_CLOCK bytes */

#endif
