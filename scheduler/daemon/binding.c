/* Binding jobs to a configuration and a model. See binding.h. */
#include "scheduler/daemon/binding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/core/decide.h"

void binding_release(struct binding *b)
{
	job_bound_free(b->bound, b->type);
	free(b->batch);
	free(b->epochs);
	*b = (struct binding){ 0 };
}

static int compare_numbers(const void *a_, const void *b_)
{
	double a = *(const double *)a_, b = *(const double *)b_;

	return (a > b) - (a < b);
}

static bool allows(const struct job_type *t, double batch)
{
	for (size_t i = 0; i < t->n_batches; i++) {
		if (t->batch[i] == batch)
			return true;
	}
	return t->n_batches == 0;
}

/* The job's own list, or a copy of its type's: what is kept must outlive a configuration. */
static int read_batches(const struct json *v, struct binding *b, const char **out_field, struct err *err)
{
	size_t n = json_type(v) == JSON_ARRAY ? json_size(v) : b->type->n_batches;
	const struct json *item = json_first(v);

	*out_field = "batches";
	if (json_type(v) != JSON_ABSENT && json_type(v) != JSON_NULL && json_type(v) != JSON_ARRAY)
		return err_fail(err, ERR_ARG, "batches: need a list of numbers");
	if (json_type(v) == JSON_ARRAY && (n == 0 || n > JOB_TYPE_MAX_BATCHES))
		return err_fail(err, ERR_ARG, "batches: %zu of them; need 1 to %d", n, JOB_TYPE_MAX_BATCHES);
	if (n == 0)
		return 0;
	b->batch = mem_array(n, sizeof *b->batch);
	if (!b->batch)
		return err_nomem(err, "the batches of a job");
	b->n_batches = n;
	if (json_type(v) != JSON_ARRAY) {
		memcpy(b->batch, b->type->batch, n * sizeof *b->batch);
		return 0;
	}
	for (size_t i = 0; i < n; i++, item = json_next(item)) {
		double batch = json_number(item, NAN);

		if (!(batch >= 1.0 && batch <= 1e9 && batch == floor(batch)))
			return err_fail(err, ERR_ARG,
					"batches: element %zu: need a whole number from 1 to 1e9", i + 1);
		if (!allows(b->type, batch))
			return err_fail(err, ERR_ARG, "batches: %g is not allowed for jobs of type %s", batch,
					b->type->name);
		b->batch[i] = batch;
	}
	qsort(b->batch, n, sizeof *b->batch, compare_numbers);
	for (size_t i = 1; i < n; i++) {
		if (b->batch[i] == b->batch[i - 1])
			return err_fail(err, ERR_ARG, "batches: %g appears twice", b->batch[i]);
	}
	return 0;
}

/* Open epochs: as many of them as there is room for beside the batches. */
static int read_epochs(const struct setup *s, struct binding *b, const char **out_field, struct err *err)
{
	const struct model *m = s->slot[b->slot].model;
	const struct job_params *p = &b->bound->params;
	size_t n_batches = b->n_batches ? b->n_batches : m ? m->n_candidates : 1;
	double choice[DECIDE_MAX_CANDIDATES];

	*out_field = "params";
	if (!m)
		return err_fail(err, ERR_ARG,
				"%s: how many? Give one number, such as --epochs %.0f: %.0f..%.0f is open "
				"until there is a model to choose by",
				b->type->epochs_param, p->epochs_to, p->epochs_from, p->epochs_to);
	if (schema_role(m->schema, ROLE_EPOCHS) < 0)
		return err_fail(err, ERR_ARG, "%s: they cannot be left open: the model does not know epochs",
				b->type->epochs_param);
	b->n_epochs = job_type_epochs(b->type, p->epochs_from, p->epochs_to, choice,
				      DECIDE_MAX_CANDIDATES / n_batches);
	if (b->n_epochs == 0)
		return err_fail(err, ERR_ARG, "%s: the type allows none from %g to %g", b->type->epochs_param,
				p->epochs_from, p->epochs_to);
	b->epochs = mem_array(b->n_epochs, sizeof *b->epochs);
	if (!b->epochs)
		return err_nomem(err, "the epochs of a job");
	memcpy(b->epochs, choice, b->n_epochs * sizeof *b->epochs);
	return 0;
}

/* An engine that is not the configuration's own executor has its own slots. */
static bool is_apart(const struct config *c, const struct job_type *t)
{
	return t->executor && strcmp(t->executor, c->executor) && config_engine(c, t->executor);
}

int binding_make(const struct setup *s, const struct binding_input *in, struct binding *out,
		 const char **out_field, struct err *err)
{
	int rc;

	*out = (struct binding){ 0 };
	*out_field = "type";
	out->type = config_type(s->config, in->type);
	if (!out->type)
		return err_fail(err, ERR_NOTFOUND, "there is no job type %s", in->type);
	out->slot = setup_slot_of(s, in->type);
	out->apart = is_apart(s->config, out->type);
	*out_field = "params";
	out->bound = mem_calloc(1, sizeof *out->bound);
	rc = out->bound ? job_params_read(out->type, json_type(in->params) == JSON_NULL ? NULL : in->params,
					  in->epochs, &out->bound->params, out_field, err)
			: err_nomem(err, "the parameters of a job");
	if (rc) {
		out->type = NULL; /* no parameter was read, none is to be released */
		binding_release(out);
		return rc;
	}
	rc = read_batches(in->batches, out, out_field, err);
	if (!rc && out->n_batches == 0 && !s->slot[out->slot].model) {
		*out_field = "batches";
		rc = err_fail(err, ERR_ARG,
			      "batches: there is no model, so the type or the job must say them");
	}
	if (!rc && job_params_open(&out->bound->params))
		rc = read_epochs(s, out, out_field, err);
	if (!rc)
		rc = job_values_init(&out->bound->values, setup_schema(s, out->slot), err);
	if (rc) {
		binding_release(out);
		return rc;
	}
	setup_values_fill(s, out->type, &out->bound->params, in->cpus, &out->bound->values);
	return 0;
}

int binding_of_row(const struct setup *s, const struct job_record *row, struct binding *out, struct err *err)
{
	struct json *params = NULL, *batches = NULL;
	const char *field;
	int rc = 0;

	*out = (struct binding){ 0 };
	if (row->params)
		rc = json_parse("params", row->params, strlen(row->params), &params, err);
	if (!rc && row->batches)
		rc = json_parse("batches", row->batches, strlen(row->batches), &batches, err);
	if (!rc) {
		struct binding_input in = {
			.type = row->type, .params = params, .batches = batches, .cpus = row->cpus
		};

		rc = binding_make(s, &in, out, &field, err);
	}
	json_free(params);
	json_free(batches);
	return rc;
}

int binding_without_type(const struct setup *s, const struct job_record *row, struct binding *out,
			 struct err *err)
{
	int rc;

	*out = (struct binding){ .bound = mem_calloc(1, sizeof *out->bound),
				 .batch = mem_array(1, sizeof *out->batch),
				 .n_batches = 1 };
	rc = out->bound && out->batch ? job_values_init(&out->bound->values, setup_schema(s, 0), err)
				      : err_nomem(err, "the batch of a job");
	if (rc) {
		binding_release(out);
		return rc;
	}
	out->batch[0] = row->batch;
	return 0;
}

void binding_give(struct binding *b, struct job *job)
{
	char *decided = job->decision_text;

	job->decision_text = NULL;
	job_drop_live_parts(job);
	job->decision_text = decided;
	job->type = b->type;
	job->bound = b->bound;
	job->slot = b->slot;
	job->apart = b->apart;
	job->batch = b->batch;
	job->n_batches = b->n_batches;
	job->epoch_choice = b->epochs;
	job->n_epoch_choices = b->n_epochs;
	*b = (struct binding){ 0 };
}

void binding_request(const struct job *job, struct sched_request *out)
{
	const struct job_record *r = &job->row;
	bool advised = r->mode && !strcmp(r->mode, "advise");

	*out = (struct sched_request){
		.id = job->id,
		.model = job->slot,
		.guess_s = job->guess_s,
		.values = job_values(job),
		.cpus = r->cpus,
		.batch = job->n_batches ? job->batch : NULL,
		.n_batches = job->n_batches,
		.epochs = job->n_epoch_choices ? job->epoch_choice : NULL,
		.n_epochs = job->n_epoch_choices,
		.apart = job->apart && !advised,
		.tenant = job->tenant,
		.owner = job->limited && advised ? (uint64_t)r->uid + 1 : 0,
		.priority = r->priority,
		.may_stop = r->may_stop && job->type && job->type->early_stop,
		.type = job->type_number,
		.user = r->uid,
		.slo_s = r->slo_s,
		.confidence = r->confidence,
		.best_effort = r->best_effort,
		.chance = isnan(r->chance) ? 0.0 : r->chance,
		.value = isnan(r->value) ? 1.0 : r->value,
		.memory_mb = job->type ? job->type->memory_mb : NAN,
		.memory_mb_per_record = job->type ? job->type->memory_mb_per_record : NAN,
		.max_memory_mb = r->max_memory_mb,
		.device = { .least = r->gpus_least },
	};
	if (job->type && (r->gpus_least || job->type->records_per_gpu > 0.0)) {
		out->device.records_each = isnan(job->type->records_per_gpu) ? 0.0
									     : job->type->records_per_gpu;
		out->device.memory_mb = job->type->gpu_memory_mb;
		out->device.memory_mb_per_record = job->type->gpu_memory_mb_per_record;
	}
}
