/* A configuration and its models, loaded together. See setup.h. */
#include "scheduler/daemon/setup.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "scheduler/store/store.h"

/* ---- models in memory ---- */

struct model_file {
	struct model *model;
	atomic_uint users;
	struct stat as; /* of the file when it was read; st_ino 0: it was handed over */
};

static void file_drop(struct model_file *f)
{
	if (!f || atomic_fetch_sub(&f->users, 1) > 1)
		return;
	model_free(f->model);
	free(f);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino && a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The model of the same slot before, if its file is the same: what was learnt of it goes on (sched_use()). */
static struct model_file *file_before(const struct setup *before, const struct model_slot *slot,
				      const struct stat *now)
{
	for (size_t i = 0; before && i < before->n_slots; i++) {
		const struct model_slot *was = &before->slot[i];
		bool same_slot = was->type && slot->type ? !strcmp(was->type, slot->type)
							 : was->type == slot->type;

		if (same_slot && was->file && was->path && !strcmp(was->path, slot->path) &&
		    same_file(&was->file->as, now)) {
			atomic_fetch_add(&was->file->users, 1);
			return was->file;
		}
	}
	return NULL;
}

/* Takes `model`, also on failure; NULL: the file is read. */
static int file_new(const char *path, struct model *model, const struct stat *as, struct model_file **out,
		    struct err *err)
{
	struct model_file *f = mem_calloc(1, sizeof *f);
	bool compiled = model != NULL;
	int rc = f ? 0 : err_nomem(err, "a model");

	if (!rc && !model)
		rc = model_load(path, &model, err);
	if (!rc && !model->time.predictor.ops)
		rc = err_fail(err, ERR_FORMAT, "%s: holds no model of time", path);
	if (!rc && !compiled)
		rc = model_compile(model, err);
	if (rc) {
		model_free(model);
		free(f);
		return rc;
	}
	f->model = model;
	f->as = *as;
	atomic_init(&f->users, 1);
	*out = f;
	return 0;
}

void setup_free(struct setup *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_slots; i++)
		file_drop(s->slot[i].file);
	free(s->slot);
	free(s->columns);
	config_free(s->config);
	free(s);
}

/* ---- slots ---- */

static const char *file_of(const struct setup *s)
{
	return s->config->path ? s->config->path : "configuration";
}

/* Is there a type without its own model, so that the configuration's is needed? */
static bool needs_common(const struct config *c)
{
	for (size_t i = 0; i < c->n_types; i++) {
		if (!job_type_has_model(&c->type[i]))
			return true;
	}
	return c->n_types == 0;
}

/* Takes `given` (may be NULL), also on failure. */
static int read_slot(struct setup *s, const struct setup *before, struct model_slot *slot, bool may_lack,
		     struct model *given, struct err *err)
{
	struct stat now = { 0 };
	int rc = 0;

	if (!slot->path || (stat(slot->path, &now) && errno == ENOENT && may_lack && !given)) {
		model_free(given);
		return 0;
	}
	slot->file = given ? NULL : file_before(before, slot, &now);
	if (!slot->file)
		rc = file_new(slot->path, given, &now, &slot->file, err);
	if (!rc)
		rc = policy_accepts(&s->policy, slot->file->model, err);
	if (rc)
		return slot->type ? err_prefix(err, "%s: types.%s.model", file_of(s), slot->type) : rc;
	slot->model = slot->file->model;
	snprintf(slot->name, sizeof slot->name, "%s-%016llx", slot->model->time.predictor.ops->name,
		 (unsigned long long)slot->model->data_fingerprint);
	return 0;
}

static int read_slots(struct setup *s, const struct setup_source *from, struct err *err)
{
	const struct config *c = s->config;
	bool wants = s->policy.policy->predictor != NULL;
	struct model *given = from->model;
	int rc = 0;

	s->slot = mem_calloc(c->n_types + 1, sizeof *s->slot);
	s->columns = mem_calloc(c->n_types + 1, sizeof *s->columns);
	if (!s->slot || !s->columns)
		rc = err_nomem(err, "the configuration");
	else if (wants && !c->model && needs_common(c) && (!given || from->type))
		rc = err_fail(err, ERR_FORMAT,
			      "%s: model: the policy %s decides by a model, and none is named", file_of(s),
			      s->policy.policy->name);
	for (size_t i = 0; i <= c->n_types && !rc; i++) {
		const struct job_type *t = i ? &c->type[i - 1] : NULL;
		struct model_slot *slot = &s->slot[s->n_slots];
		bool is_given = given && (t && from->type ? !strcmp(t->name, from->type) : !t && !from->type);

		if (t && !job_type_has_model(t))
			continue;
		slot->type = t ? t->name : NULL;
		slot->path = t ? t->model : c->model;
		s->n_slots++;
		if (t)
			s->columns[i - 1].slot = (uint32_t)(s->n_slots - 1);
		rc = read_slot(s, from->before, slot, t && t->first_after, is_given ? given : NULL, err);
		given = is_given ? NULL : given;
	}
	model_free(given);
	return rc;
}

/* Numbers go to number columns; anything may be a category, which is text. */
static int map_type(const struct setup *s, const struct job_type *t, struct type_columns *out,
		    struct err *err)
{
	const struct schema *schema = setup_schema(s, out->slot);

	out->cpus = schema ? schema_role(schema, ROLE_CPUS) : -1;
	for (size_t i = 0; i < t->n_params; i++) {
		const struct job_param *p = &t->param[i];
		int source = schema && !p->free ? schema_find_any(schema, p->name) : -1;

		out->param[i] = source;
		if (source < 0)
			continue;
		if (p->kind == PARAM_WORD &&
		    ((size_t)source >= schema->n_columns || schema->column[source].kind == COLUMN_NUMBER))
			return err_fail(err, ERR_FORMAT,
					"%s: types.%s.params.%s: a word here, but a number in the model %s",
					file_of(s), t->name, p->name, s->slot[out->slot].path);
	}
	return 0;
}

int setup_new(struct config *config, const struct setup_source *from, struct setup **out, struct err *err)
{
	struct setup *s = mem_calloc(1, sizeof *s);
	int rc;

	if (!s) {
		model_free(from->model);
		config_free(config);
		return err_nomem(err, "the configuration");
	}
	s->config = config;
	rc = policy_parse(config->policy, &s->policy, err);
	if (rc)
		model_free(from->model);
	else
		rc = read_slots(s, from, err);
	for (size_t i = 0; !rc && i < config->n_types; i++)
		rc = map_type(s, &config->type[i], &s->columns[i], err);
	if (rc) {
		setup_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

const char *models_named(const struct setup *s, char *buf, size_t size)
{
	const char *common = s->slot[0].name[0] ? s->slot[0].name : "none";

	if (s->n_slots == 1)
		snprintf(buf, size, "%s", common);
	else
		snprintf(buf, size, "%s and %zu of job types", common, s->n_slots - 1);
	return buf;
}

uint32_t setup_slot_of(const struct setup *s, const char *type)
{
	const struct job_type *t = type ? config_type(s->config, type) : NULL;

	return t ? s->columns[t - s->config->type].slot : 0;
}

/* Beside it and renamed: at no moment is there none. */
void setup_link_model(const struct setup *s)
{
	char link[PATH_MAX], fresh[PATH_MAX], *target;
	const char *dir = s->config->state_dir;
	size_t slot = 0;

	if (snprintf(link, sizeof link, "%s/" STORE_MODEL_LINK, dir) >= (int)sizeof link ||
	    snprintf(fresh, sizeof fresh, "%s/." STORE_MODEL_LINK ".new", dir) >= (int)sizeof fresh)
		return;
	while (slot < s->n_slots && !s->slot[slot].model)
		slot++;
	if (slot == s->n_slots) {
		unlink(link);
		return;
	}
	target = realpath(s->slot[slot].path, NULL);
	unlink(fresh);
	if (!target || symlink(target, fresh) || rename(fresh, link))
		log_warn("%s: no link to the model in use: %s", link, strerror(errno));
	free(target);
}

void setup_sched_params(const struct setup *s, const struct model **own, struct sched_params *out)
{
	const struct config *c = s->config;

	for (size_t i = 1; i < s->n_slots; i++)
		own[i - 1] = s->slot[i].model;
	*out = (struct sched_params){
		.policy = s->policy,
		.model = s->slot[0].model,
		.own_model = own,
		.n_own_models = s->n_slots - 1,
		.may_lack = true, /* a type without any model was refused above */
		.machine = { .cores = c->cores,
			     .slots = c->slots,
			     .memory_mb = c->memory_mb,
			     .devices = c->resources.gpus,
			     .device_memory_mb =
				     isnan(c->resources.gpu_memory_mb) ? 0.0 : c->resources.gpu_memory_mb },
		/* what runs is not queued: each holds at least one slot */
		.max_jobs = c->max_queued + c->slots,
		.seed = c->seed,
		.window_s = c->fair_window_s,
		.adapt = c->learning.adapt,
		.max_unstarted_cpus = c->max_unstarted_cpus_per_uid ? c->max_unstarted_cpus_per_uid
								    : (c->slots + 1) / 2,
	};
}

void setup_values_fill(const struct setup *s, const struct job_type *t, const struct job_params *params,
		       uint32_t cpus, struct job_values *out)
{
	const struct type_columns *columns = &s->columns[t - s->config->type];
	const struct schema *schema = setup_schema(s, columns->slot);

	job_values_reset(out, schema);
	for (size_t i = 0; i < t->n_params; i++) {
		if (params->value[i])
			job_values_put(out, schema, columns->param[i], params->value[i], params->number[i]);
	}
	job_values_put(out, schema, columns->cpus, NULL, cpus);
}
