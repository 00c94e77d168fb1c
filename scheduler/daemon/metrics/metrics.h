/* What a monitoring system reads: counters since the start, histograms, and the present state, in the text
 * format of Prometheus (https://prometheus.io/docs/instrumenting/exposition_formats/). docs/METRICS.md lists
 * every name; a test holds the two together. What happens is counted in tally.h. No label is made of users,
 * jobs or parameters: label sets are as large as the configuration at most. */
#ifndef SCHEDULER_DAEMON_METRICS_METRICS_H
#define SCHEDULER_DAEMON_METRICS_METRICS_H

#include "common/strbuf.h"

struct daemon;

/* The whole text. A failed strbuf: out of memory. */
void metrics_text(struct daemon *d, struct strbuf *out);

/* ---- textfile.c: the same text as a file, for node_exporter ---- */
struct textfile;
/* Writes now and then every few seconds, in a thread. NULL path: returns NULL. If the file cannot be written,
 * the log says so, once until it can be written again. */
struct textfile *textfile_new(struct daemon *d, const char *path);
void textfile_free(struct textfile *t); /* removes the file: numbers of a daemon that is gone mislead */

#endif
