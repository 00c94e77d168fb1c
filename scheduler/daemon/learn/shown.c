/* What learning tells of itself: the "learning" of `stats`, and the same as numbers for a monitoring system.
 * See learning.h. */
#include "scheduler/core/learn/adapt.h"
#include "scheduler/daemon/learn/learning_internal.h"

static void put_evidence(const struct learner *l, int type, struct json_writer *w)
{
	struct drift_evidence e;

	json_put_key(w, "drift");
	if (!l->drift || !drift_evidence(l->drift, type, &e)) {
		json_put_null(w);
		return;
	}
	json_open(w, '{');
	json_kv_bool(w, "alarm", e.alarm);
	json_kv_bool(w, "slower", e.slower);
	json_kv_int(w, "jobs", (long long)e.jobs);
	json_kv_int(w, "since", (long long)e.since);
	json_kv_fixed(w, "shift_percent", e.shift_percent, 3);
	json_kv_fixed(w, "statistic", e.statistic, 3);
	json_kv_fixed(w, "threshold", e.threshold, 3);
	json_close(w, '}');
}

static void put_types(const struct learning *l, struct json_writer *w)
{
	const struct config *c = l->d->setup->config;

	json_kv_open(w, "types", '[');
	for (size_t i = 0; i < c->n_types; i++) {
		const struct learner *e = l->learner[setup_slot_of(l->d->setup, c->type[i].name)];
		const struct adapt *a = sched_adapt(l->d->sched, e->slot);
		int type = names_number(&l->d->jobs.names, c->type[i].name);
		size_t known, strangers;

		strangers_ended(&e->strangers, type, "", &known, &strangers);
		if (known + strangers == 0)
			continue;
		json_open(w, '{');
		json_kv_string(w, "type", c->type[i].name);
		json_kv_int(w, "observed", (long long)(known + strangers));
		json_kv_int(w, "strangers", (long long)strangers);
		json_kv_fixed(w, "bias", a ? adapt_bias_shown(a, type) : 1.0, 6);
		put_evidence(e, type, w);
		json_close(w, '}');
	}
	json_close(w, ']');
}

/* What concerns one model. */
static void put_learner(const struct learner *e, struct json_writer *w, bool sums)
{
	json_kv_int(w, "since_training", (long long)e->since_training);
	json_kv_int(w, "retrain_after", (long long)learner_train_after(e));
	json_kv_string(w, "last", !sums && e->outcome[0] ? e->outcome : NULL);
	json_kv_fixed(w, "last_took_s", e->took_s, 3);
	json_kv_int(w, "current", e->in_use);
}

static void put_own_models(const struct learning *l, struct json_writer *w)
{
	json_kv_open(w, "models", '[');
	for (size_t i = 1; i < l->n; i++) {
		const struct learner *e = l->learner[i];

		json_open(w, '{');
		json_kv_string(w, "type", e->type);
		json_kv_string(w, "model", e->model_name[0] ? e->model_name : NULL);
		put_evidence(e, DRIFT_POOLED, w);
		json_kv_int(w, "alarms", (long long)e->alarms);
		put_learner(e, w, false);
		json_kv_bool(w, "training", learner_train_busy(e));
		json_close(w, '}');
	}
	json_close(w, ']');
}

static uint64_t alarms_of(const struct learning *l)
{
	uint64_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += l->learner[i]->alarms;
	return n;
}

void learning_json(struct learning *l, struct json_writer *w, bool sums)
{
	const struct learner *common = l->learner[0];
	bool adapts = false;

	for (uint32_t i = 0; i < l->n; i++)
		adapts |= sched_adapt(l->d->sched, i) != NULL;
	json_kv_open(w, "learning", '{');
	json_kv_bool(w, "adapt", adapts);
	tally_kept_json(&l->d->tally, w);
	put_evidence(common, DRIFT_POOLED, w);
	json_kv_int(w, "alarms", (long long)alarms_of(l));
	json_kv_int(w, "implausible", (long long)l->doubted);
	if (!sums)
		put_types(l, w);
	json_kv_int(w, "probes", (long long)l->probes);
	put_learner(common, w, sums);
	json_kv_bool(w, "training", learning_training(l));
	if (!sums && l->n > 1)
		put_own_models(l, w);
	json_close(w, '}');
}

bool learning_now(const struct learning *l, uint32_t slot, struct learning_now *out)
{
	const struct learner *e;

	if (slot >= l->n)
		return false;
	e = l->learner[slot];
	*out = (struct learning_now){
		.type = e->type,
		.version = e->in_use,
		.training = learner_train_busy(e),
		.alarms = e->alarms,
		.since_training = e->since_training,
	};
	out->has_drift = e->drift && drift_evidence(e->drift, DRIFT_POOLED, &out->drift);
	return true;
}

uint64_t learning_probes(const struct learning *l)
{
	return l->probes;
}
