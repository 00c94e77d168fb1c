/* A decision as JSON. See decision_json.h. */
#include "scheduler/daemon/ops/decision_json.h"

#include <math.h>
#include <stdio.h>

#include "common/text/text.h"

#define N_REASONS 14 /* bits of enum decide_reason */

/* The column that makes it extrapolated. */
static void put_out_of_range(struct json_writer *w, const struct decide_out_of_range *o)
{
	if (!o->column)
		return;
	json_kv_open(w, "outside", '{');
	json_kv_string(w, "column", o->column);
	json_kv_bool(w, "category", o->category);
	json_kv_number(w, "value", o->value);
	json_kv_number(w, "least", o->least);
	json_kv_number(w, "most", o->most);
	json_close(w, '}');
}

static void put_candidate(struct json_writer *w, const struct decision *d, const struct candidate *c,
			  const struct decision_about *a)
{
	struct decide_out_of_range out_of_range = decide_out_of_range(d, c);
	char id[24];

	json_open(w, '{');
	json_kv_fixed(w, "batch", c->decision, 6);
	json_kv_fixed(w, "epochs", isnan(c->epochs) ? a->epochs : c->epochs, 6);
	json_kv_fixed(w, "lr", a->type ? job_type_lr(a->type, c->decision) : NAN, 9);
	json_kv_fixed(w, "wait_s", c->wait_s, 6);
	json_kv_fixed(w, "wait_upper_s", c->wait_upper_s, 6);
	json_kv_fixed(w, "time_s", c->time_s, 6);
	json_kv_fixed(w, "upper_s", c->upper_s, 6);
	json_kv_fixed(w, "accuracy", c->accuracy, 6);
	json_kv_fixed(w, "chance", c->chance, 6);
	if (c->cost > 0.0) {
		json_kv_fixed(w, "harm", c->harm, 6);
		json_kv_fixed(w, "cost", c->cost, 6);
	}
	json_kv_fixed(w, "memory_mb", c->memory_mb, 3);
	if (c->devices)
		json_kv_int(w, "gpus", c->devices);
	json_kv_fixed(w, "delays_s", c->delays_s, 6);
	if (c->breaks)
		snprintf(id, sizeof id, "%llu", (unsigned long long)c->breaks);
	json_kv_string(w, "breaks", c->breaks ? id : NULL);
	if (c->behind)
		snprintf(id, sizeof id, "%llu", (unsigned long long)c->behind);
	json_kv_string(w, "behind", c->behind ? id : NULL);
	json_kv_fixed(w, "headroom_s", a->slo_s - c->wait_upper_s - c->upper_s, 6);
	json_kv_bool(w, "extrapolated", c->extrapolated);
	put_out_of_range(w, &out_of_range);
	json_kv_bool(w, "feasible", c->feasible);
	json_kv_open(w, "reasons", '[');
	for (int i = 0; i < N_REASONS; i++) {
		if (c->reasons & 1u << i)
			json_put_string(w, decide_reason_text((enum decide_reason)(1u << i)));
	}
	json_close(w, ']');
	json_close(w, '}');
}

/* What the job could take without a promise. */
static void put_offer(struct json_writer *w, const struct decision *d, const struct decision_about *a)
{
	json_put_key(w, "offer");
	if (d->chosen >= 0 || isnan(d->offer.chance)) {
		json_put_null(w);
		return;
	}
	json_open(w, '{');
	json_kv_fixed(w, "batch", d->offer.decision, 6);
	json_kv_fixed(w, "epochs", isnan(d->offer.epochs) ? a->epochs : d->offer.epochs, 6);
	json_kv_fixed(w, "chance", d->offer.chance, 6);
	json_kv_fixed(w, "accuracy", d->offer.accuracy, 6);
	json_kv_fixed(w, "time_s", d->offer.time_s, 6);
	json_close(w, '}');
}

/* The column that the model cannot carry a promise for, whatever the batch. */
static void put_beyond(struct json_writer *w, const struct decision *d)
{
	json_put_key(w, "beyond_model");
	if (!d->beyond) {
		json_put_null(w);
		return;
	}
	json_open(w, '{');
	json_kv_string(w, "column", d->beyond);
	json_kv_number(w, "value", d->beyond_value);
	json_kv_number(w, "least", d->beyond_least);
	json_kv_number(w, "most", d->beyond_most);
	json_close(w, '}');
}

void decision_json(struct json_writer *w, const struct decision *d, const struct decision_about *a)
{
	struct alternatives beside;
	char at[40];

	alternatives_find(d, a->epochs, &beside);
	if (a->shorter)
		beside.shorter = *a->shorter;
	json_open(w, '{');
	json_kv_string(w, "at", text_utc(a->at_ns, at));
	json_kv_string(w, "when", a->when);
	json_kv_string(w, "policy", a->policy);
	json_kv_string(w, "model", a->model && *a->model ? a->model : NULL);
	json_kv_fixed(w, "confidence", d->confidence, 6);
	json_kv_fixed(w, "slo_s", a->slo_s, 6);
	json_put_key(w, "chosen");
	if (d->chosen >= 0)
		json_put_int(w, d->chosen);
	else
		json_put_null(w);
	/* rounded up: what is typed back must be enough */
	json_kv_fixed(w, "smallest_slo_s", ceil(d->smallest_slo_s * 1e6) / 1e6, 6);
	put_offer(w, d, a);
	alternatives_json(w, &beside);
	if (a->n_failing) {
		json_put_key(w, "failing");
		json_open(w, '[');
		for (size_t i = 0; i < a->n_failing; i++)
			json_put_fixed(w, a->failing[i], 6);
		json_close(w, ']');
	}
	put_beyond(w, d);
	json_kv_fixed(w, "other_load", d->other_load, 3);
	json_kv_fixed(w, "other_factor", d->other_factor, 3);
	if (d->price > 0.0)
		json_kv_number(w, "price", d->price);
	if (d->value != 1.0)
		json_kv_fixed(w, "value", d->value, 6);
	json_kv_fixed(w, "accuracy_error", a->accuracy_error > 0.0 ? a->accuracy_error : NAN, 6);
	json_kv_fixed(w, "took_us", a->took_us, 1);
	json_kv_open(w, "candidates", '[');
	for (size_t i = 0; i < d->n_candidates; i++)
		put_candidate(w, d, &d->candidate[i], a);
	json_close(w, ']');
	json_close(w, '}');
}
