/* Counts, rings and quantiles of what `stats` reports. See outcome_stats.h. */
#include "scheduler/daemon/outcome_stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/core/outcome.h"

void outcome_stats_verdict(struct outcome_stats *t, enum sched_verdict v)
{
	t->verdict[v]++;
}

static void ring_add(struct stats_ring *r, double v)
{
	r->value[r->n++ % OUTCOME_STATS_RING] = (float)v;
}

void outcome_stats_submit(struct outcome_stats *t, double cpu_us)
{
	t->submits++;
	t->submit_us_sum += cpu_us;
	ring_add(&t->submit_us, cpu_us);
}

void outcome_stats_decision(struct outcome_stats *t, double took_us)
{
	t->decisions++;
	t->decision_us_sum += took_us;
	ring_add(&t->decision_us, took_us);
}

void outcome_stats_wait(struct outcome_stats *t, double wait_s)
{
	ring_add(&t->wait_s, wait_s);
}

static struct stats_type *type_of(struct outcome_stats *t, const char *name)
{
	for (size_t i = 0; i < t->n_types; i++) {
		if (!strcmp(t->type[i].name, name))
			return &t->type[i];
	}
	if (t->n_types == OUTCOME_STATS_MAX_TYPES)
		return NULL;
	snprintf(t->type[t->n_types].name, sizeof t->type[0].name, "%s", name);
	return &t->type[t->n_types++];
}

static struct stats_level *level_of(struct outcome_stats *t, double confidence)
{
	int percent = (int)lround(100.0 * confidence);

	for (size_t i = 0; i < t->n_levels; i++) {
		if (t->level[i].percent == percent)
			return &t->level[i];
	}
	if (t->n_levels == OUTCOME_STATS_MAX_LEVELS)
		return NULL;
	t->level[t->n_levels].percent = percent;
	return &t->level[t->n_levels++];
}

void outcome_stats_ended(struct outcome_stats *t, const struct job_record *row)
{
	struct stats_type *type = type_of(t, row->type);
	bool promised = row->verdict == VERDICT_PROMISED;
	bool met = row->slo_outcome == SLO_MET;
	double run_s = row->started_ns && row->ended_ns ? (double)(row->ended_ns - row->started_ns) / 1e9
							: NAN;
	bool done = row->state == JOB_DONE, within;
	struct stats_level *level;

	if (type)
		type->ended++;
	if (promised && row->slo_outcome) {
		t->met += met;
		t->missed += !met;
		if (type) {
			type->promised++;
			type->met += met;
		}
	}
	if (row->verdict == VERDICT_CHANCE && row->slo_outcome) {
		t->chances_met += met;
		t->chances_missed += !met;
	}
	/* A job that failed says nothing about how long it would have taken. */
	if (done && outcome_bounded(run_s, row->run_upper_s, &within) &&
	    (level = level_of(t, row->confidence)) != NULL) {
		level->n++;
		level->inside += within;
	}
	if (type && done && row->run_predicted_s > 0.0 && run_s > 0.0) {
		type->predicted++;
		type->sum_ape += outcome_error(row->run_predicted_s, run_s);
		type->sum_log += log(run_s / row->run_predicted_s);
	}
	if (type && done && isfinite(row->accuracy)) {
		type->with_accuracy++;
		type->sum_accuracy += row->accuracy;
	}
}

/* ---- telling ---- */

static int compare_floats(const void *a_, const void *b_)
{
	float a = *(const float *)a_, b = *(const float *)b_;

	return (a > b) - (a < b);
}

static double ring_quantile(const struct stats_ring *r, double q)
{
	size_t n = r->n < OUTCOME_STATS_RING ? (size_t)r->n : OUTCOME_STATS_RING;
	float sorted[OUTCOME_STATS_RING];

	if (n == 0)
		return NAN;
	memcpy(sorted, r->value, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, compare_floats);
	return sorted[(size_t)(q * (double)(n - 1) + 0.5)];
}

static double ring_mean(const struct stats_ring *r)
{
	size_t n = r->n < OUTCOME_STATS_RING ? (size_t)r->n : OUTCOME_STATS_RING;
	double sum = 0.0;

	for (size_t i = 0; i < n; i++)
		sum += r->value[i];
	return n ? sum / (double)n : NAN;
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : NAN;
}

void outcome_stats_types_json(const struct outcome_stats *t, struct json_writer *w)
{
	json_kv_open(w, "types", '[');
	for (size_t i = 0; i < t->n_types; i++) {
		const struct stats_type *y = &t->type[i];
		double n = (double)y->predicted;

		json_open(w, '{');
		json_kv_string(w, "type", y->name);
		json_kv_int(w, "n", (long long)y->ended);
		json_kv_number(w, "mape", n > 0 ? y->sum_ape / n : NAN);
		json_kv_number(w, "bias", n > 0 ? exp(y->sum_log / n) - 1.0 : NAN);
		json_kv_number(w, "attainment", share(y->met, y->promised));
		json_kv_number(w, "mean_accuracy",
			       y->with_accuracy ? y->sum_accuracy / (double)y->with_accuracy : NAN);
		json_close(w, '}');
	}
	json_close(w, ']');
}

void outcome_stats_sums_json(const struct outcome_stats *t, struct json_writer *w)
{
	json_kv_open(w, "submissions", '{');
	for (int v = SCHED_PROMISED; v <= SCHED_CHANCE; v++)
		json_kv_int(w, sched_verdict_name((enum sched_verdict)v), (long long)t->verdict[v]);
	json_kv_int(w, "duplicates", (long long)t->duplicates);
	json_close(w, '}');

	json_kv_open(w, "slo", '{');
	json_kv_int(w, "promised", (long long)(t->met + t->missed));
	json_kv_int(w, "met", (long long)t->met);
	json_kv_int(w, "missed", (long long)t->missed);
	json_kv_number(w, "attainment", share(t->met, t->met + t->missed));
	json_close(w, '}');

	json_kv_open(w, "by_chance", '{');
	json_kv_int(w, "ended", (long long)(t->chances_met + t->chances_missed));
	json_kv_int(w, "met", (long long)t->chances_met);
	json_kv_int(w, "missed", (long long)t->chances_missed);
	json_close(w, '}');

	json_kv_open(w, "coverage", '[');
	for (size_t i = 0; i < t->n_levels; i++) {
		json_open(w, '{');
		json_kv_number(w, "confidence", t->level[i].percent / 100.0);
		json_kv_int(w, "n", (long long)t->level[i].n);
		json_kv_int(w, "inside", (long long)t->level[i].inside);
		json_kv_number(w, "share", share(t->level[i].inside, t->level[i].n));
		json_close(w, '}');
	}
	json_close(w, ']');

	json_kv_open(w, "wait", '{');
	json_kv_number(w, "mean_s", ring_mean(&t->wait_s));
	json_kv_number(w, "p95_s", ring_quantile(&t->wait_s, 0.95));
	json_close(w, '}');

	json_kv_open(w, "decision", '{');
	json_kv_int(w, "n", (long long)t->decisions);
	json_kv_number(w, "mean_us", t->decisions ? t->decision_us_sum / (double)t->decisions : NAN);
	json_kv_number(w, "p99_us", ring_quantile(&t->decision_us, 0.99));
	json_close(w, '}');
	json_kv_open(w, "submit", '{');
	json_kv_int(w, "n", (long long)t->submits);
	json_kv_number(w, "mean_us", t->submits ? t->submit_us_sum / (double)t->submits : NAN);
	json_kv_number(w, "p99_us", ring_quantile(&t->submit_us, 0.99));
	json_close(w, '}');
}
