/* Writing down what decisions are made from. See inputs.h. */
#include "scheduler/daemon/inputs.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "common/json/json.h"
#include "common/version.h"
#include "scheduler/daemon/daemon.h"

#define MOST_LOADS 4096 /* more than an hour of a machine whose load always changes */

/* What cannot be kept, for want of memory or because the store has failed, is missing in a later
 * verification, which says so. */
void inputs_add(struct daemon *d, const char *what, int64_t now_ns, const struct job *job, double number,
		const char *text)
{
	const struct store_input in = {
		.at_ns = now_ns, .what = what, .job = job ? job->id : 0, .number = number, .text = text
	};

	if (!d->params.played)
		store_add_input(d->store, &in, NULL);
}

/* ---- the setup ---- */

static void put_model(const struct model_slot *s, const struct setup *before, struct json_writer *w)
{
	bool same = false;
	struct stat st;

	for (size_t i = 0; before && i < before->n_slots; i++)
		same |= s->model && before->slot[i].model == s->model;
	json_open(w, '{');
	json_kv_string(w, "type", s->type);
	json_kv_string(w, "name", s->model ? s->name : NULL);
	json_kv_string(w, "path", s->path);
	json_kv_number(w, "bytes", s->path && !stat(s->path, &st) ? (double)st.st_size : NAN);
	json_kv_bool(w, "same", same);
	json_close(w, '}');
}

static void add_setup(struct daemon *d, const char *what, int64_t now_ns, const struct setup *s,
		      const struct setup *before)
{
	struct strbuf text = { 0 };
	struct json_writer w;

	if (d->params.played)
		return;
	json_begin(&w, &text, false);
	json_open(&w, '{');
	json_kv_string(&w, "version", postrider_version);
	json_kv_open(&w, "models", '[');
	for (size_t i = 0; i < s->n_slots; i++)
		put_model(&s->slot[i], before, &w);
	json_close(&w, ']');
	json_put_key(&w, "config");
	config_to_json(s->config, &w);
	json_close(&w, '}');
	if (!text.failed)
		inputs_add(d, what, now_ns, NULL, NAN, strbuf_text(&text));
	strbuf_release(&text);
}

void inputs_began(struct daemon *d)
{
	add_setup(d, INPUT_BEGAN, daemon_now_ns(d), d->setup, NULL);
	daemon_changed(d);
}

void inputs_reloaded(struct daemon *d, int64_t now_ns, const struct setup *fresh)
{
	inputs_flush(d);
	add_setup(d, INPUT_RELOADED, now_ns, fresh, d->setup);
	daemon_changed(d);
}

/* ---- other load ---- */

void inputs_load(struct daemon *d, int64_t now_ns, double processes)
{
	struct inputs *in = &d->inputs;

	if (processes == in->load || d->params.played)
		return;
	if (!in->n_loads)
		in->loads_from_ns = now_ns;
	in->load = processes;
	strbuf_printf(&in->loads, "%s%.9f:%.17g", in->n_loads ? " " : "",
		      (double)(now_ns - in->loads_from_ns) / 1e9, processes);
	if (++in->n_loads == MOST_LOADS)
		inputs_flush(d);
}

void inputs_flush(struct daemon *d)
{
	struct inputs *in = &d->inputs;

	if (!in->n_loads)
		return;
	if (!in->loads.failed)
		inputs_add(d, INPUT_LOADS, in->loads_from_ns, NULL, NAN, strbuf_text(&in->loads));
	strbuf_reset(&in->loads);
	in->n_loads = 0;
}

/* ---- a cluster ---- */

void inputs_cluster(struct daemon *d, int64_t now_ns, uint32_t slots, const struct sched_guest *guest,
		    size_t n)
{
	struct strbuf text = { 0 };

	for (size_t i = 0; i < n; i++) {
		strbuf_printf(&text, "%s%u:", i ? " " : "", guest[i].cpus);
		if (guest[i].end_ns == SCHED_NEVER)
			strbuf_puts(&text, "-");
		else
			strbuf_printf(&text, "%.9f", (double)(guest[i].end_ns - now_ns) / 1e9);
	}
	if (!text.failed)
		inputs_add(d, INPUT_CLUSTER, now_ns, NULL, slots, strbuf_text(&text));
	strbuf_release(&text);
}

void inputs_lag(struct daemon *d, double lag_s)
{
	bool cluster = cluster_known(d);

	if (lag_s == d->inputs.lag_s || (!cluster && !(d->inputs.lag_s > 0.0)))
		return;
	d->inputs.lag_s = cluster ? lag_s : 0.0;
	inputs_add(d, INPUT_LAG, daemon_now_ns(d), NULL, cluster ? lag_s : NAN, NULL);
}

/* ---- jobs ---- */

void inputs_progress(struct daemon *d, const struct job *job, int64_t now_ns, double done,
		     const struct life_progress *p, bool asks)
{
	char text[160];
	int n = 0;

	if (p)
		n = snprintf(text, sizeof text, "%.17g %.17g %.17g", p->epoch, p->epochs, p->accuracy);
	if (p && asks)
		snprintf(text + n, sizeof text - (size_t)n, " asks %.17g", p->batch);
	inputs_add(d, INPUT_PROGRESS, now_ns, job, done, p ? text : NULL);
}

/* Seconds after the moment of the row: a number keeps nanoseconds of that. */
static void put_moment(struct json_writer *w, const char *key, int64_t at_ns, int64_t now_ns)
{
	json_kv_fixed(w, key, at_ns ? (double)(at_ns - now_ns) / 1e9 : NAN, 9);
}

void inputs_ended(struct daemon *d, int64_t now_ns, const struct exec_outcome *o)
{
	const struct job *job = jobs_find(&d->jobs, o->id);
	struct strbuf text = { 0 };
	struct json_writer w;

	if (!job || d->params.played)
		return;
	json_begin(&w, &text, false);
	json_open(&w, '{');
	if (o->lost)
		json_kv_bool(&w, "lost", true);
	json_kv_int(&w, "exit_code", o->exit_code);
	json_kv_int(&w, "exit_signal", o->exit_signal);
	if (o->timed_out)
		json_kv_bool(&w, "timed_out", true);
	if (o->stopped)
		json_kv_bool(&w, "stopped", true);
	if (o->rounded)
		json_kv_bool(&w, "rounded", true);
	put_moment(&w, "started_s", o->started_ns, now_ns);
	put_moment(&w, "ended_s", o->ended_ns, now_ns);
	json_kv_number(&w, "run_s", o->run_s);
	json_kv_number(&w, "accuracy", o->accuracy);
	json_kv_number(&w, "max_rss_mb", o->max_rss_mb);
	json_kv_number(&w, "cpu_s", o->cpu_s);
	if (o->reason[0])
		json_kv_string(&w, "reason", o->reason);
	json_close(&w, '}');
	if (!text.failed)
		inputs_add(d, INPUT_ENDED, now_ns, job, NAN, strbuf_text(&text));
	strbuf_release(&text);
}

void inputs_event(struct daemon *d, const struct life_event *e)
{
	switch (e->kind) {
	case LIFE_SUBMITTED:
		if (e->waits)
			inputs_add(d, INPUT_WAITS, e->now_ns, e->job, NAN, NULL);
		break;
	case LIFE_ADMITTED: inputs_add(d, INPUT_ADMITTED, e->now_ns, e->job, NAN, NULL); break;
	case LIFE_CANCEL: inputs_add(d, INPUT_CANCEL, e->now_ns, e->job, NAN, e->text); break;
	case LIFE_HOPELESS: inputs_add(d, INPUT_HOPELESS, e->now_ns, e->job, NAN, NULL); break;
	case LIFE_UNSTARTED: inputs_add(d, INPUT_UNSTARTED, e->now_ns, e->job, NAN, NULL); break;
	case LIFE_DELAYED: inputs_add(d, INPUT_DELAYED, e->now_ns, e->job, NAN, e->text); break;
	case LIFE_WAITS: inputs_add(d, INPUT_AT_ENGINE, e->now_ns, e->job, NAN, e->text); break;
	case LIFE_ENDED: inputs_ended(d, e->now_ns, e->outcome); break;
	default: break;
	}
}
