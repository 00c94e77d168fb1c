/* A workload manager of shell scripts, for tests of jobs at an engine. Its queue is a folder with a file
 * for each job, a line as the engine `command` polls it: "IDENTITY ID STATE [WORDS]". A test may write or
 * remove such a file: then that is the engine's word. The programs of Slurm are played on the same queue.
 *
 * The file `how` says what happens to jobs that are submitted: "no" (refused), "later" (not now), "deaf"
 * (taken and run, once, but there is no answer), "forget" (taken, and never heard of again), "hold" (it
 * stays in the queue), "broken" (it cannot be launched). Without it they run at once. */
#ifndef TESTS_UNIT_DAEMON_PLAYED_ENGINE_H
#define TESTS_UNIT_DAEMON_PLAYED_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/unit/daemon/local_daemon.h"

struct played_engine {
	char dir[120];
	char settings[1200]; /* members of the configuration: the engine runs all jobs */
	char types[800]; /* "work" with the parameters `gate` (1: it waits for the gate) and `code` */
	int gate; /* a line in it lets one job go on */
};

/* In the folder of the daemon. `more`: members of the engine, each with a comma before it. */
void played_open(struct played_engine *g, struct local_daemon *l, bool slurm, const char *more);
void played_close(struct played_engine *g); /* those that wait at the gate end */
void played_put(const struct played_engine *g, const char *file, const char *text); /* NULL: removes it */
size_t played_lines(const struct played_engine *g, const char *file); /* 0: it is not there */
bool played_has(const struct played_engine *g, const char *file, const char *text);
void played_open_gate(const struct played_engine *g);
/* The engine's word about its job ID, "memory too much"; NULL: it forgets the job. */
void played_word(const struct played_engine *g, unsigned id, const char *identity, const char *word);

#endif
