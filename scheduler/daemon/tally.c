/* Counts, rings, histograms and quantiles. See tally.h. */
#include "scheduler/daemon/tally.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/core/outcome.h"
#include "scheduler/jobs/life.h"

/* docs/PROTOCOL.md, "Error codes". */
const char *const tally_error_code[] = {
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

_Static_assert(sizeof tally_error_code / sizeof *tally_error_code <= TALLY_CODES, "room for all");

static const double ratios[] = {
	0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0
};

static void init_ended(struct tally *t)
{
	histogram_init(&t->run_h, histogram_long_s, histogram_n_long);
	histogram_init(&t->response_h, histogram_long_s, histogram_n_long);
	histogram_init(&t->error_ratio_h, ratios, sizeof ratios / sizeof *ratios);
}

void tally_init(struct tally *t)
{
	struct histogram *shorts[] = { &t->decision_h, &t->loop_busy_h, &t->loop_lag_h, &t->scrape_h };

	*t = (struct tally){ 0 };
	for (size_t i = 0; i < sizeof shorts / sizeof *shorts; i++)
		histogram_init(shorts[i], histogram_short_s, histogram_n_short);
	histogram_init(&t->wait_h, histogram_long_s, histogram_n_long);
	init_ended(t);
}

void tally_begins(struct tally *t)
{
	t->here = (struct tally_counts){ 0 };
	init_ended(t);
}

void tally_verdict(struct tally *t, enum sched_verdict v, const struct decision *d)
{
	t->verdict[v]++;
	if (v == SCHED_REJECTED) {
		unsigned reason = life_rejected_by(d);

		t->rejected[reason ? __builtin_ctz(reason) : TALLY_CODES - 1]++;
	}
}

static void ring_add(struct tally_ring *r, double v)
{
	r->value[r->n++ % TALLY_RING] = (float)v;
}

void tally_submit(struct tally *t, double cpu_us)
{
	t->submits++;
	t->submit_us_sum += cpu_us;
	ring_add(&t->submit_us, cpu_us);
}

void tally_decision(struct tally *t, double took_us)
{
	t->decisions++;
	t->decision_us_sum += took_us;
	ring_add(&t->decision_us, took_us);
	histogram_add(&t->decision_h, took_us / 1e6);
}

void tally_wait(struct tally *t, double wait_s)
{
	ring_add(&t->wait_s, wait_s);
	histogram_add(&t->wait_h, wait_s);
}

void tally_error(struct tally *t, const char *code)
{
	for (size_t i = 0; tally_error_code[i]; i++) {
		if (!strcmp(tally_error_code[i], code)) {
			t->error[i]++;
			return;
		}
	}
}

/* ---- ended jobs ---- */

static struct tally_type *type_of(struct tally_counts *t, const char *name)
{
	for (size_t i = 0; i < t->n_types; i++) {
		if (!strcmp(t->type[i].name, name))
			return &t->type[i];
	}
	if (t->n_types == CONFIG_MAX_TYPES)
		return NULL;
	snprintf(t->type[t->n_types].name, sizeof t->type[0].name, "%s", name);
	return &t->type[t->n_types++];
}

static void count_level(struct tally_levels *l, double confidence, bool within)
{
	int percent = (int)lround(100.0 * confidence);
	struct tally_level *v = l->item;

	while (v < l->item + l->n && v->percent != percent)
		v++;
	if (v == l->item + TALLY_LEVELS)
		return;
	if (v == l->item + l->n)
		l->item[l->n++] = (struct tally_level){ .percent = percent };
	v->recent[v->n++ % TALLY_RECENT] = within;
	v->inside += within;
}

/* A job that failed says nothing about how long it would have taken. */
static void count_done(struct tally_counts *t, struct tally_type *type, const struct job_record *row,
		       double run_s)
{
	bool within;

	if (outcome_bounded(run_s, row->run_upper_s, &within)) {
		count_level(&t->levels, row->confidence, within);
		type->bounded++;
		type->inside += within;
		type->expected += row->confidence;
	}
	if (row->run_predicted_s > 0.0 && run_s > 0.0) {
		type->predicted++;
		type->sum_ape += outcome_error(row->run_predicted_s, run_s);
		type->sum_log += log(run_s / row->run_predicted_s);
	}
	if (isfinite(row->accuracy)) {
		type->with_accuracy++;
		type->sum_accuracy += row->accuracy;
	}
}

static void count_ended(struct tally_counts *t, const struct job_record *row, double run_s)
{
	struct tally_type none = { 0 }, *type;
	int missed = row->slo_outcome == SLO_MISSED;

	t->ended[row->state]++;
	if (row->state == JOB_CANCELLED && !row->slo_outcome)
		return; /* by request: it says nothing; one that was given up has missed its limit */
	type = type_of(t, row->type);
	if (!type)
		type = &none;
	type->ended++;
	if (row->slo_outcome && row->verdict == VERDICT_PROMISED) {
		t->slo[missed]++;
		type->promised++;
		type->met += !missed;
	} else if (row->slo_outcome && row->verdict == VERDICT_CHANCE) {
		t->chances[missed]++;
	}
	if (row->state == JOB_DONE)
		count_done(t, type, row, run_s);
}

void tally_ended(struct tally *t, const struct job_record *row, int64_t now_ns)
{
	struct job_times times = job_times(row);

	count_ended(&t->ever, row, times.run_s);
	count_ended(&t->here, row, times.run_s);
	history_ended(&t->history, row, now_ns);
	if (row->state != JOB_DONE)
		return;
	histogram_add(&t->run_h, times.run_s);
	histogram_add(&t->response_h, times.response_s);
	if (row->run_predicted_s > 0.0)
		histogram_add(&t->error_ratio_h, outcome_error(row->run_predicted_s, times.run_s));
}

void tally_kept(struct tally *t, const struct job_record *row)
{
	bool kept;

	if (outcome_bounded(job_times(row).run_s, row->run_upper_s, &kept) && row->confidence > 0.0 &&
	    row->confidence < 1.0)
		count_level(&t->kept, row->confidence, kept);
}

/* ---- telling ---- */

static int compare_floats(const void *a_, const void *b_)
{
	float a = *(const float *)a_, b = *(const float *)b_;

	return (a > b) - (a < b);
}

static double ring_quantile(const struct tally_ring *r, double q)
{
	size_t n = r->n < TALLY_RING ? (size_t)r->n : TALLY_RING;
	float sorted[TALLY_RING];

	if (n == 0)
		return NAN;
	memcpy(sorted, r->value, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, compare_floats);
	return sorted[(size_t)(q * (double)(n - 1) + 0.5)];
}

static double ring_mean(const struct tally_ring *r)
{
	size_t n = r->n < TALLY_RING ? (size_t)r->n : TALLY_RING;
	double sum = 0.0;

	for (size_t i = 0; i < n; i++)
		sum += r->value[i];
	return n ? sum / (double)n : NAN;
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : NAN;
}

void tally_types_json(const struct tally *t, struct json_writer *w)
{
	json_kv_open(w, "types", '[');
	for (size_t i = 0; i < t->ever.n_types; i++) {
		const struct tally_type *y = &t->ever.type[i];
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

void tally_sums_json(const struct tally *t, struct json_writer *w)
{
	const uint64_t *slo = t->ever.slo, *chances = t->ever.chances;
	const struct tally_levels *levels = &t->ever.levels;

	json_kv_open(w, "submissions", '{');
	for (int v = SCHED_PROMISED; v <= SCHED_CHANCE; v++)
		json_kv_int(w, sched_verdict_name((enum sched_verdict)v), (long long)t->verdict[v]);
	json_kv_int(w, "duplicates", (long long)t->duplicates);
	json_close(w, '}');

	json_kv_open(w, "slo", '{');
	json_kv_int(w, "promised", (long long)(slo[0] + slo[1]));
	json_kv_int(w, "met", (long long)slo[0]);
	json_kv_int(w, "missed", (long long)slo[1]);
	json_kv_number(w, "attainment", share(slo[0], slo[0] + slo[1]));
	json_close(w, '}');

	json_kv_open(w, "by_chance", '{');
	json_kv_int(w, "ended", (long long)(chances[0] + chances[1]));
	json_kv_int(w, "met", (long long)chances[0]);
	json_kv_int(w, "missed", (long long)chances[1]);
	json_close(w, '}');

	json_kv_open(w, "coverage", '[');
	for (size_t i = 0; i < levels->n; i++) {
		json_open(w, '{');
		json_kv_number(w, "confidence", levels->item[i].percent / 100.0);
		json_kv_int(w, "n", (long long)levels->item[i].n);
		json_kv_int(w, "inside", (long long)levels->item[i].inside);
		json_kv_number(w, "share", share(levels->item[i].inside, levels->item[i].n));
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

void tally_kept_json(const struct tally *t, struct json_writer *w)
{
	json_kv_open(w, "kept", '[');
	for (size_t i = 0; i < t->kept.n; i++) {
		const struct tally_level *v = &t->kept.item[i];
		size_t recent = v->n < TALLY_RECENT ? (size_t)v->n : TALLY_RECENT, kept = 0;

		for (size_t k = 0; k < recent; k++)
			kept += v->recent[k];
		json_open(w, '{');
		json_kv_number(w, "confidence", v->percent / 100.0);
		json_kv_int(w, "n", (long long)v->n);
		json_kv_int(w, "kept", (long long)v->inside);
		json_kv_fixed(w, "share", (double)v->inside / (double)v->n, 6);
		json_kv_fixed(w, "recent_share", (double)kept / (double)recent, 6);
		json_close(w, '}');
	}
	json_close(w, ']');
}
