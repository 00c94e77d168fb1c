/* Shared by the files of postrider-supervisor. Begin with supervisor_main.c, which has the order of things:
 *
 *   supervisor_options.c  the command line
 *   supervisor_child.c    the child, from fork() until it is the command
 *   supervisor_record.c   DIR.started and DIR.exit
 *   supervisor_place.c    the job's folder and cgroup
 *   supervisor_output.c   its output is not longer than allowed
 *   supervisor_terminal.c its output through a pseudo-terminal, where that is asked for
 *   supervisor_watch.c    waits for the end, stops the job, kills what it left behind
 *   supervisor_tools.c    clocks, texts, /proc */
#ifndef SCHEDULER_SUPERVISOR_SUPERVISOR_H
#define SCHEDULER_SUPERVISOR_SUPERVISOR_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>

#include "scheduler/process/record_format.h"

#define NS_PER_S INT64_C(1000000000)

struct options {
	const char *dir, *job, *identity, *work_dir, *cpus, *cgroup, *gate;
	uid_t uid;
	gid_t gid;
	char *user, *home; /* of uid; user NULL: it has no name */
	double grace_s, max_time_s; /* max_time_s 0: none */
	rlim_t fsize, as, nofile; /* 0: as they are */
	uint64_t max_output; /* bytes of each log; 0: any */
	int nice;
	bool all_env; /* the job gets our environment */
	bool pass_code; /* leave with the exit code of the job */
	bool terminal; /* its output goes through a pseudo-terminal */
	char **env; /* "NAME=value" */
	size_t n_env;
	char **argv;
};

struct moment {
	int64_t real_ns, boot_ns;
};

struct log {
	int fd; /* -1: not looked at */
	off_t hole_end; /* 0: there is no hole yet */
};

struct run {
	const struct options *opt;
	pid_t pid; /* of the job: leader of its session and group */
	/* the child waits at the first, and writes to the second why it cannot run the command */
	int go_fd, said_fd;
	struct moment started, ended; /* started 0: it never ran */
	siginfo_t end;
	struct log log[2];
	int master, slave, signals, terminal_log; /* of a job with a terminal */
	bool timed_out, stopped; /* stopped: the daemon asked for it */
	int64_t kill_at_ns, out_of_time_ns; /* boot time */
	bool made; /* the folder is there, and is ours */
	bool again; /* the command could not be run, and may the next time */
	char reason[RECORD_MAX_TEXT + 1], note[RECORD_MAX_TEXT + 1];
};

/* ---- supervisor_tools.c ---- */
int64_t clock_ns(clockid_t id);
struct moment moment_now(void);
int64_t after_s(int64_t from_ns, double s);
bool write_all(int fd, const char *text, size_t len);
/* A line for the daemon. If it does not listen any more, the records say the same. */
void report(const char *what, const char *text);
/* Of an error of the system: whether it is worth another try. */
bool passes(int error); /* the machine lacks something, and may have it the next time */
int code_of(int error);
/* Ends the supervisor before it has changed anything. */
void give_up(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));
void add_note(struct run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void set_reason(struct run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool process_stat(pid_t pid, long *out_parent, unsigned long long *out_ticks); /* from /proc/PID/stat */

/* ---- supervisor_options.c ---- */
void parse_options(int argc, char **argv, struct options *o); /* o->env has room for argc words */
void find_user(struct options *o); /* o->user and o->home */
void options_release(struct options *o);
bool parse_cpus(const char *s, cpu_set_t *out); /* "0-3,8" */

/* ---- supervisor_child.c ---- */
void fork_child(struct run *r);       /* it waits at go_fd */
void abandon_child(struct run *r);    /* instead of letting it run */
bool child_refused(struct run *r);    /* true: it cannot run the command, and the reason is set */

/* ---- supervisor_record.c ---- */
/* The path of a record; false: it is too long. */
bool record_path(const struct options *o, const char *suffix, char *out, size_t size);
void win_the_race(struct run *r);     /* makes DIR.started; ends this process if another one was first */
void sync_started(const struct run *r);
void withdraw_started(const struct run *r); /* the job never ran: another supervisor may start it */
int finish(struct run *r);            /* writes DIR.exit; returns the exit code for main() */

/* ---- supervisor_place.c ---- */
void remove_folder(const struct run *r); /* of a command that did not run */
bool make_folder(struct run *r);      /* false: the reason is set */
void enter_cgroup(struct run *r);
void kill_cgroup(const struct run *r);
void remove_cgroup(const struct run *r);

/* ---- supervisor_output.c ---- */
void open_output(struct run *r);
/* For writing; -1: it is not a file of the user. */
int open_log(const struct options *o, const char *name, int flags);
void cap_output(struct run *r);

/* ---- supervisor_terminal.c ---- */
void terminal_open(struct run *r);    /* before the child is forked, which has it as its output */
void terminal_begin(struct run *r);   /* the child has made its log */
void terminal_wait(struct run *r, int64_t until_ns); /* for a signal, copying meanwhile */
void terminal_end(struct run *r);     /* copies the rest */

/* ---- supervisor_watch.c ---- */
void watch(struct run *r);            /* until the job has ended */
void end_leftovers(struct run *r);

#endif
