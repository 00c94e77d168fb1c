/* What happens is counted here; scrape.c writes it down. See metrics.h. */
#include "scheduler/daemon/metrics/metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/core/outcome.h"
#include "scheduler/daemon/metrics/metrics_internal.h"

/* docs/PROTOCOL.md, "Error codes". */
const char *const metrics_error_code[] = {
	"bad_json",
	"line_too_long",
	"bad_version",
	"unknown_op",
	"unknown_field",
	"bad_field",
	"unknown_type",
	"unknown_job",
	"wrong_state",
	"not_permitted",
	"queue_full",
	"draining",
	"storage_failed",
	"too_many_connections",
	"idle_timeout",
	"slow_reader",
	"no_model",
	"internal",
	NULL,
};

_Static_assert(sizeof metrics_error_code / sizeof *metrics_error_code <= METRICS_ERROR_CODES, "room for all");

static const double ratios[] = {
	0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0
};

void metrics_init(struct metrics *m)
{
	*m = (struct metrics){ 0 };
	histogram_init(&m->decision_s, histogram_short_s, histogram_n_short);
	histogram_init(&m->loop_busy_s, histogram_short_s, histogram_n_short);
	histogram_init(&m->loop_lag_s, histogram_short_s, histogram_n_short);
	histogram_init(&m->scrape_s, histogram_short_s, histogram_n_short);
	histogram_init(&m->error_ratio, ratios, sizeof ratios / sizeof *ratios);
	histogram_init(&m->wait_s, histogram_long_s, histogram_n_long);
	histogram_init(&m->run_s, histogram_long_s, histogram_n_long);
	histogram_init(&m->response_s, histogram_long_s, histogram_n_long);
}

void metrics_decided(struct metrics *m, enum sched_verdict v, const struct decision *d)
{
	m->verdict[v]++;
	if (v == SCHED_REJECTED) {
		unsigned reason = life_rejected_by(d);
		int bit = reason ? __builtin_ctz(reason) : METRICS_ERROR_CODES - 1;

		m->rejected[bit]++;
	}
}

static struct metrics_level *level_of(struct metrics *m, double confidence)
{
	int percent = (int)lround(100.0 * confidence);

	for (size_t i = 0; i < m->n_levels; i++) {
		if (m->level[i].percent == percent)
			return &m->level[i];
	}
	if (m->n_levels == METRICS_MAX_LEVELS)
		return NULL;
	m->level[m->n_levels].percent = percent;
	return &m->level[m->n_levels++];
}

static struct metrics_type *type_of(struct metrics *m, const char *name)
{
	for (size_t i = 0; i < m->n_types; i++) {
		if (!strcmp(m->type[i].name, name))
			return &m->type[i];
	}
	if (m->n_types == CONFIG_MAX_TYPES)
		return NULL; /* of many configurations, one after the other */
	snprintf(m->type[m->n_types].name, sizeof m->type[0].name, "%s", name);
	return &m->type[m->n_types++];
}

/* Was the job within its bound? By confidence, and by type. */
static void count_bound(struct metrics *m, const struct job_record *row, bool within)
{
	struct metrics_level *level = level_of(m, row->confidence);
	struct metrics_type *type = type_of(m, row->type);

	if (level) {
		level->n++;
		level->inside += within;
	}
	if (type) {
		type->n++;
		type->inside += within;
		type->expected += row->confidence;
	}
}

void metrics_ended(struct metrics *m, const struct job_record *row)
{
	struct job_times t = job_times(row);
	bool done = row->state == JOB_DONE, met = row->slo_outcome == SLO_MET, within;

	m->ended[row->state]++;
	if (row->slo_outcome && row->verdict == VERDICT_PROMISED) {
		m->met += met;
		m->missed += !met;
	} else if (row->slo_outcome && row->verdict == VERDICT_CHANCE) {
		m->chances_met += met;
		m->chances_missed += !met;
	}
	/* A job that failed says nothing about how long it would have taken. */
	if (!done)
		return;
	histogram_add(&m->run_s, t.run_s);
	histogram_add(&m->response_s, t.response_s);
	if (outcome_bounded(t.run_s, row->run_upper_s, &within))
		count_bound(m, row, within);
	if (row->run_predicted_s > 0.0)
		histogram_add(&m->error_ratio, outcome_error(row->run_predicted_s, t.run_s));
}

void metrics_error(struct metrics *m, const char *code)
{
	for (size_t i = 0; metrics_error_code[i]; i++) {
		if (!strcmp(metrics_error_code[i], code)) {
			m->error[i]++;
			return;
		}
	}
}
