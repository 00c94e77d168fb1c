/* Writes the text format of Prometheus: a family, then its samples. */
#ifndef SCHEDULER_DAEMON_METRICS_EXPOSITION_H
#define SCHEDULER_DAEMON_METRICS_EXPOSITION_H

#include "common/histogram.h"
#include "common/strbuf.h"

/* type: "counter", "gauge", "histogram". The name stays valid while samples are written. */
void exposition_family(struct strbuf *out, const char *name, const char *type, const char *help);
/* labels: "" or what stands between the braces, values already escaped. NaN: the sample is left out. */
void exposition_sample(struct strbuf *out, const char *name, const char *labels, double v);
/* The same with one label, whose value is escaped here. */
void exposition_labelled(struct strbuf *out, const char *name, const char *label, const char *value,
                         double v);
void exposition_histogram(struct strbuf *out, const char *name, const struct histogram *h);
void exposition_escape(struct strbuf *out, const char *value); /* a label's value, without its quotes */

#endif
