/* `hello`: version, policy, model and the job types that there are. */
#include <math.h>

#include "common/text/text.h"
#include "common/version.h"
#include "scheduler/daemon/ops/ops.h"

static void put_param(struct json_writer *w, const struct job_param *p)
{
	static const char *const kind[] = { "integer", "number", "word" };

	json_open(w, '{');
	json_kv_string(w, "name", p->name);
	json_kv_string(w, "kind", kind[p->kind]);
	json_kv_bool(w, "required", p->required);
	if (p->kind != PARAM_WORD) {
		double number = NAN;

		if (p->otherwise)
			text_number(p->otherwise, &number);
		json_kv_number(w, "default", number);
		json_kv_number(w, "min", p->min);
		json_kv_number(w, "max", p->max);
	} else {
		json_kv_string(w, "default", p->otherwise);
		json_kv_open(w, "values", '[');
		for (size_t i = 0; i < p->n_words; i++)
			json_put_string(w, p->word[i]);
		json_close(w, ']');
	}
	json_close(w, '}');
}

static void put_model(struct json_writer *w, const char *key, const struct model_slot *s)
{
	json_put_key(w, key);
	if (!s->model) {
		json_put_null(w);
		return;
	}
	json_open(w, '{');
	json_kv_string(w, "fingerprint", s->name);
	json_kv_string(w, "kind", s->model->time.predictor.ops->name);
	json_kv_string(w, "created", s->model->created);
	json_kv_int(w, "rows", (long long)s->model->data_rows);
	json_close(w, '}');
}

static void put_type(struct json_writer *w, const struct setup *s, const struct job_type *t)
{
	uint32_t slot = setup_slot_of(s, t->name);

	json_open(w, '{');
	json_kv_string(w, "name", t->name);
	json_kv_string(w, "about", t->about);
	json_kv_open(w, "mode", '[');
	if (t->n_argv)
		json_put_string(w, "run");
	json_put_string(w, "advise");
	json_close(w, ']');
	json_kv_open(w, "params", '[');
	for (size_t i = 0; i < t->n_params; i++)
		put_param(w, &t->param[i]);
	json_close(w, ']');
	json_kv_open(w, "cpus", '{');
	json_kv_int(w, "min", t->cpus_min);
	json_kv_int(w, "max", t->cpus_max);
	json_kv_int(w, "default", t->cpus_default);
	json_close(w, '}');
	json_kv_open(w, "gpus", '{');
	json_kv_int(w, "default", t->gpus);
	json_kv_int(w, "max", t->max_gpus);
	json_kv_number(w, "records_each", t->records_per_gpu);
	json_close(w, '}');
	json_kv_open(w, "batches", '[');
	for (size_t i = 0; i < t->n_batches; i++)
		json_put_number(w, t->batch[i]);
	json_close(w, ']');
	if (slot)
		put_model(w, "own_model", &s->slot[slot]);
	json_close(w, '}');
}

void op_hello(struct request *r)
{
	const struct config *c = r->d->setup->config;

	reply_begin(r);
	json_kv_string(&r->w, "version", postrider_version);
	json_kv_int(&r->w, "protocol", 1);
	json_kv_string(&r->w, "policy", c->policy);
	put_model(&r->w, "model", &r->d->setup->slot[0]);
	json_kv_open(&r->w, "types", '[');
	for (size_t i = 0; i < c->n_types; i++)
		put_type(&r->w, r->d->setup, &c->type[i]);
	json_close(&r->w, ']');
	json_kv_int(&r->w, "uid", (long long)conn_uid(r->conn));
	json_kv_bool(&r->w, "admin", request_admin(r));
	json_kv_string(&r->w, "state_dir", c->state_dir);
	reply_send(r, 0);
}
