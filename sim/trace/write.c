/* Traces in our own format, as CSV and as JSON lines. What is written reads back as the same trace. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/csv.h"
#include "common/json/json.h"
#include "common/text/text.h"
#include "sim/trace/trace.h"
#include "sim/trace/row.h"

/* Which fields say more than their default somewhere. */
static void find_used(const struct trace *t, bool used[TRACE_FIELDS])
{
	memset(used, 0, TRACE_FIELDS * sizeof *used);
	used[TRACE_ARRIVAL] = used[TRACE_SLO] = used[TRACE_CPUS] = used[TRACE_ID] = true;
	used[TRACE_TENANT] = t->n_tenants > 1 || strcmp(t->tenant[0], "default") != 0;
	used[TRACE_TYPE] = t->n_types > 0;
	for (size_t i = 0; i < t->n_tenants; i++)
		used[TRACE_WEIGHT] |= t->weight[i] != 1.0;
	for (size_t i = 0; i < t->n_kinds; i++) {
		used[TRACE_BATCHES] |= t->kind[i].n_batches > 0;
		used[TRACE_MEMORY] |= !isnan(t->kind[i].memory_mb);
		used[TRACE_MEMORY_PER_RECORD] |= !isnan(t->kind[i].memory_mb_per_record);
	}
	for (size_t i = 0; i < t->n_jobs; i++) {
		used[TRACE_CONFIDENCE] |= !isnan(t->job[i].confidence);
		used[TRACE_VALUE] |= trace_value(&t->job[i]) != 1.0;
		used[TRACE_PRIORITY] |= t->job[i].priority != 0;
		used[TRACE_MAY_STOP] |= t->job[i].may_stop;
		used[TRACE_STEER] |= t->job[i].steer;
		used[TRACE_CHANCE] |= t->job[i].chance > 0.0;
		used[TRACE_BEST_EFFORT] |= t->job[i].best_effort;
		used[TRACE_RECURRING] |= t->job[i].recurring != 0;
	}
}

static void put_list(struct strbuf *out, const struct trace_kind *k, const char *separator)
{
	char buf[32];

	for (size_t i = 0; i < k->n_batches; i++)
		strbuf_printf(out, "%s%s", i ? separator : "", text_shortest(k->batch[i], buf));
}

static void csv_field(const struct trace *t, const struct trace_job *j, enum trace_field f,
		      struct strbuf *out)
{
	const struct trace_kind *k = &t->kind[j->kind];
	char buf[80];

	switch (f) {
	case TRACE_ARRIVAL: strbuf_puts(out, trace_seconds_text(j->arrival_ns, buf)); break;
	case TRACE_SLO: csv_put_number(out, j->slo_s); break;
	case TRACE_CPUS: strbuf_printf(out, "%" PRIu32, k->cpus); break;
	case TRACE_ID: strbuf_printf(out, "%" PRIu64, j->id); break;
	case TRACE_CONFIDENCE: csv_put_number(out, j->confidence); break;
	case TRACE_TENANT: csv_put(out, t->tenant[j->tenant]); break;
	case TRACE_WEIGHT: csv_put_number(out, t->weight[j->tenant]); break;
	case TRACE_TYPE: csv_put(out, j->type >= 0 ? t->type[j->type] : ""); break;
	case TRACE_PRIORITY: strbuf_printf(out, "%" PRId32, j->priority); break;
	case TRACE_BEST_EFFORT: strbuf_puts(out, j->best_effort ? "true" : "false"); break;
	case TRACE_RECURRING: strbuf_printf(out, "%" PRIu64, j->recurring); break;
	case TRACE_BATCHES: put_list(out, k, "|"); break;
	case TRACE_EPOCHS: break; /* among the columns */
	case TRACE_MEMORY: csv_put_number(out, k->memory_mb); break;
	case TRACE_MEMORY_PER_RECORD: csv_put_number(out, k->memory_mb_per_record); break;
	case TRACE_MAY_STOP: strbuf_puts(out, j->may_stop ? "true" : "false"); break;
	case TRACE_STEER: strbuf_puts(out, j->steer ? "true" : "false"); break;
	case TRACE_CHANCE: csv_put_number(out, j->chance); break;
	case TRACE_VALUE: csv_put_number(out, trace_value(j)); break;
	case TRACE_FIELDS: break;
	}
}

/* A value of a column; open epochs stand in the column of that name. */
static const char *value_of(const struct trace *t, const struct trace_kind *k, size_t column,
			    char buf[TEXT_RANGE])
{
	if (k->value[column])
		return k->value[column];
	if (isnan(k->epochs_from) || strcmp(t->column[column], "epochs") != 0)
		return "";
	return text_range_put(k->epochs_from, k->epochs_to, buf);
}

void trace_write_csv(const struct trace *t, struct strbuf *out)
{
	bool used[TRACE_FIELDS];
	char buf[TEXT_RANGE];

	find_used(t, used);
	for (int f = 0; f < TRACE_FIELDS; f++)
		if (used[f])
			strbuf_printf(out, "%s%s", f ? "," : "", trace_field_name[f]);
	for (size_t i = 0; i < t->n_columns; i++) {
		strbuf_puts(out, ",");
		csv_put(out, t->column[i]);
	}
	strbuf_puts(out, "\n");
	for (size_t i = 0; i < t->n_jobs; i++) {
		const struct trace_job *j = &t->job[i];

		for (int f = 0; f < TRACE_FIELDS; f++) {
			if (!used[f])
				continue;
			strbuf_puts(out, f ? "," : "");
			csv_field(t, j, (enum trace_field)f, out);
		}
		for (size_t c = 0; c < t->n_columns; c++) {
			strbuf_puts(out, ",");
			csv_put(out, value_of(t, &t->kind[j->kind], c, buf));
		}
		strbuf_puts(out, "\n");
	}
}

/* ---- JSON lines ---- */

/* As a number where that says the same, as text otherwise: "4.0" stays what it is. */
static void json_value(struct json_writer *w, const char *text)
{
	char buf[32];
	double v;

	if (text_number(text, &v) && strcmp(text_shortest(v, buf), text) == 0)
		json_put_number(w, v);
	else
		json_put_string(w, text);
}

static void json_id(struct json_writer *w, const char *key, uint64_t id)
{
	char buf[32];

	if (id < (uint64_t)1 << 53) {
		json_kv_int(w, key, (long long)id);
	} else { /* JSON's numbers are doubles */
		snprintf(buf, sizeof buf, "%" PRIu64, id);
		json_kv_string(w, key, buf);
	}
}

/* Ten digits before the point and nine behind it are more than a double carries: text where that matters. */
static void json_arrival(struct json_writer *w, int64_t ns)
{
	char text[32], shortest[32];
	double v = 0.0;
	int64_t back = 0;

	trace_seconds_text(ns, text);
	json_put_key(w, trace_field_name[TRACE_ARRIVAL]);
	if (text_number(text, &v) && trace_seconds_parse(text_shortest(v, shortest), &back) && back == ns)
		json_put_number(w, v);
	else
		json_put_string(w, text);
}

static void json_number_given(struct json_writer *w, enum trace_field f, double v)
{
	if (!isnan(v))
		json_kv_number(w, trace_field_name[f], v);
}

static void json_kind(struct json_writer *w, const struct trace *t, const struct trace_kind *k, bool all)
{
	char buf[TEXT_RANGE];

	if (k->n_batches) {
		json_kv_open(w, trace_field_name[TRACE_BATCHES], '[');
		for (size_t i = 0; i < k->n_batches; i++)
			json_put_number(w, k->batch[i]);
		json_close(w, ']');
	}
	json_number_given(w, TRACE_MEMORY, k->memory_mb);
	json_number_given(w, TRACE_MEMORY_PER_RECORD, k->memory_mb_per_record);
	for (size_t i = 0; i < t->n_columns; i++) {
		const char *value = value_of(t, k, i, buf);

		if (!*value && !all)
			continue;
		json_put_key(w, t->column[i]);
		if (*value)
			json_value(w, value);
		else
			json_put_null(w);
	}
}

static void json_job(struct json_writer *w, const struct trace *t, const struct trace_job *j, bool tenants,
		     bool all)
{
	const struct trace_kind *k = &t->kind[j->kind];

	json_open(w, '{');
	json_arrival(w, j->arrival_ns);
	json_number_given(w, TRACE_SLO, j->slo_s);
	json_kv_int(w, trace_field_name[TRACE_CPUS], k->cpus);
	json_id(w, trace_field_name[TRACE_ID], j->id);
	json_number_given(w, TRACE_CONFIDENCE, j->confidence);
	if (tenants)
		json_kv_string(w, trace_field_name[TRACE_TENANT], t->tenant[j->tenant]);
	if (t->weight[j->tenant] != 1.0)
		json_kv_number(w, trace_field_name[TRACE_WEIGHT], t->weight[j->tenant]);
	if (j->type >= 0)
		json_kv_string(w, trace_field_name[TRACE_TYPE], t->type[j->type]);
	if (j->priority)
		json_kv_int(w, trace_field_name[TRACE_PRIORITY], j->priority);
	if (j->best_effort)
		json_kv_bool(w, trace_field_name[TRACE_BEST_EFFORT], true);
	if (j->recurring)
		json_id(w, trace_field_name[TRACE_RECURRING], j->recurring);
	if (j->may_stop)
		json_kv_bool(w, trace_field_name[TRACE_MAY_STOP], true);
	if (j->steer)
		json_kv_bool(w, trace_field_name[TRACE_STEER], true);
	if (j->chance > 0.0)
		json_kv_number(w, trace_field_name[TRACE_CHANCE], j->chance);
	if (trace_value(j) != 1.0)
		json_kv_number(w, trace_field_name[TRACE_VALUE], j->value);
	json_kind(w, t, k, all);
	json_close(w, '}');
	strbuf_puts(w->out, "\n");
}

void trace_write_jsonl(const struct trace *t, struct strbuf *out)
{
	bool used[TRACE_FIELDS];

	find_used(t, used);
	for (size_t i = 0; i < t->n_jobs; i++) {
		struct json_writer w;

		json_begin(&w, out, false);
		/* The first line names every column, so that they keep their order. */
		json_job(&w, t, &t->job[i], used[TRACE_TENANT], i == 0);
	}
}
