/* The output of a job: the daemon says where it is, and the client reads the files with the rights of its
 * user. */
#ifndef SCHEDULER_CLI_CLIENT_JOB_LOG_H
#define SCHEDULER_CLI_CLIENT_JOB_LOG_H

#include <sys/types.h>

#include "scheduler/cli/client/job_talk.h"

struct job_log {
	char *path[2];  /* standard output, standard error */
	int fd[2];      /* -1: not there yet */
	off_t at[2];    /* how far it was copied */
	bool raw;       /* bytes as they are, also on a terminal */
	bool inside;    /* the last of them ended no line */
	struct job_line line; /* below the output, where there is a terminal: when the job will end */
	/* Called with every news of the job that is followed; may be NULL. */
	void (*on_news)(void *owner, const struct job_view *job);
	void *owner;
};
/* Asks the daemon where the files are. */
int job_log_open(struct job_log *l, struct client *c, const char *id, struct client_fault *f);
void job_log_close(struct job_log *l);
/* Begins n lines before the end. */
void job_log_tail(struct job_log *l, uint64_t n);
/* Copies what is new to our own standard output and error. CLIENT_NOT_PERMITTED: the files belong to another
 * user. */
int job_log_copy(struct job_log *l, struct client_fault *f);
/* Copies until the job, which is watched and now in the state of `now`, has ended; as job_follow(). */
int job_log_follow(struct job_log *l, struct client *c, const struct job_view *now, struct json **out_last,
                   struct job_view *out_job, struct client_fault *f);

#endif
