/* Whether what a configuration names is there and fits together. Reading a configuration looks at the text
 * alone; this looks at the machine, so it belongs to `postrider check-config` and to the daemon's start. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "predictors/model.h"
#include "scheduler/config/config.h"
#include "common/json/fields.h"
#include "scheduler/core/policy/policy.h"

#define USUAL_PATH "/usr/local/bin:/usr/bin:/bin"

struct check {
	const struct config *config;
	config_finding *tell;
	void *owner;
	size_t n_errors;
};

__attribute__((format(printf, 4, 5))) static void find(struct check *k, bool is_error, const char *key,
						       const char *fmt, ...)
{
	const char *file = k->config->path ? text_tail(k->config->path, FIELDS_FILE_SHOWN) : "configuration";
	char reason[512], text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, sizeof reason, fmt, ap);
	va_end(ap);
	snprintf(text, sizeof text, "%.150s: %.200s: %s", file, key, reason);
	k->n_errors += is_error;
	k->tell(k->owner, is_error, text);
}

/* "types.NAME.REST" */
static const char *type_key(const struct job_type *t, const char *rest, char *buf, size_t size)
{
	snprintf(buf, size, "types.%s%s%s", t->name, *rest ? "." : "", rest);
	return buf;
}
#define TYPE_KEY_SIZE 256

/* ---- folders and programs ---- */

static bool may(const char *path, int mode)
{
	return !faccessat(AT_FDCWD, path, mode, AT_EACCESS);
}

/* The folder that holds `path`, in `out`. */
static void parent_of(const char *path, char *out, size_t size)
{
	const char *slash = strrchr(path, '/');

	snprintf(out, size, "%.*s", (int)(slash && slash > path ? slash - path : 1), slash ? path : ".");
}

/* A folder that is not there yet can be made if the nearest one above it may be written to. */
static void check_can_be_made(struct check *k, const char *key, const char *path)
{
	char above[PATH_MAX];
	struct stat st;

	parent_of(path, above, sizeof above);
	while (stat(above, &st) && errno == ENOENT && strcmp(above, "/") && strcmp(above, ".")) {
		char next[PATH_MAX];

		parent_of(above, next, sizeof next);
		memcpy(above, next, strlen(next) + 1);
	}
	if (!may(above, W_OK | X_OK))
		find(k, true, key, "%s is not there and can not be made: %s: %s", text_tail(path, 80),
		     text_tail(above, 60), strerror(errno));
}

static void check_state_dir(struct check *k)
{
	const char *path = k->config->state_dir;
	struct stat st;

	if (strlen(path) > CONFIG_MAX_STATE_DIR) {
		find(k, true, "state_dir", "a path of %zu bytes, at most %d are possible", strlen(path),
		     CONFIG_MAX_STATE_DIR);
	} else if (stat(path, &st)) {
		if (errno == ENOENT)
			check_can_be_made(k, "state_dir", path);
		else
			find(k, true, "state_dir", "%s: %s", text_tail(path, 120), strerror(errno));
	} else if (!S_ISDIR(st.st_mode)) {
		find(k, true, "state_dir", "%s is not a folder", text_tail(path, 120));
	} else if (!may(path, W_OK | X_OK)) {
		find(k, true, "state_dir", "%s can not be written to: %s", text_tail(path, 120),
		     strerror(errno));
	} else if (st.st_uid != geteuid()) {
		find(k, true, "state_dir", "%s belongs to uid %u, and the daemon would run as uid %u",
		     text_tail(path, 100), (unsigned)st.st_uid, (unsigned)geteuid());
	} else if (st.st_mode & 022) {
		find(k, true, "state_dir", "others may write to %s (mode %04o): chmod go-w it",
		     text_tail(path, 100), (unsigned)st.st_mode & 07777u);
	}
}

static void check_socket(struct check *k)
{
	const struct config *c = k->config;
	struct err why = { 0 };
	char folder[PATH_MAX];
	struct stat st;
	bool set;
	gid_t group;

	parent_of(c->socket, folder, sizeof folder);
	if (stat(folder, &st)) {
		if (errno == ENOENT)
			find(k, false, "socket", "the folder %s is not there yet", text_tail(folder, 100));
		else
			find(k, true, "socket", "%s: %s", text_tail(folder, 100), strerror(errno));
	} else if (!S_ISDIR(st.st_mode) || !may(folder, W_OK | X_OK)) {
		find(k, true, "socket", "no socket can be made in %s", text_tail(folder, 100));
	}
	if (c->socket_mode & 02)
		find(k, false, "socket_mode", "everybody on this machine may submit jobs");
	if (config_socket_group(c, &group, &set, &why))
		find(k, true, "socket_group", "%s", why.text);
}

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && may(path, X_OK);
}

/* As the job will look for it: in the PATH of its type (NULL: of none), or in ours. */
static bool is_in_path(const struct job_type *t, const char *name)
{
	const char *path = getenv("PATH");
	char whole[PATH_MAX];

	for (size_t i = 0; t && i < t->n_env; i++) {
		if (!strncmp(t->env[i], "PATH=", 5))
			path = t->env[i] + 5;
	}
	if (!path || !*path)
		path = USUAL_PATH;
	while (*path) {
		size_t len = strcspn(path, ":");

		if (len &&
		    (size_t)snprintf(whole, sizeof whole, "%.*s/%s", (int)len, path, name) < sizeof whole &&
		    is_program(whole))
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

static void check_places_of_type(struct check *k, const struct job_type *t)
{
	char key[TYPE_KEY_SIZE];
	struct stat st;

	if (t->n_argv && strchr(t->argv[0], '/')) {
		if (!is_program(t->argv[0]))
			find(k, true, type_key(t, "argv[0]", key, sizeof key),
			     "%s is not a program that may be run", text_tail(t->argv[0], 120));
	} else if (t->n_argv && !is_in_path(t, t->argv[0])) {
		find(k, true, type_key(t, "argv[0]", key, sizeof key), "there is no program '%s' in the PATH",
		     text_tail(t->argv[0], 80));
	}
	if (t->work_dir && (stat(t->work_dir, &st) || !S_ISDIR(st.st_mode)))
		find(k, true, type_key(t, "work_dir", key, sizeof key), "%s is not a folder",
		     text_tail(t->work_dir, 120));
}

/* ---- what has no effect, or not the one that is meant ---- */

static void check_use_of_type(struct check *k, const struct job_type *t)
{
	char key[TYPE_KEY_SIZE], part[JOB_TYPE_MAX_NAME + 16];

	if (t->cpus_min > k->config->slots)
		find(k, true, type_key(t, "cpus.min", key, sizeof key),
		     "%u are more than the %u slots there are: no job of this type can ever start",
		     t->cpus_min, k->config->slots);
	else if (t->cpus_max > k->config->slots)
		find(k, false, type_key(t, "cpus.max", key, sizeof key),
		     "%u are more than the %u slots there are", t->cpus_max, k->config->slots);
	if (t->gpus > k->config->resources.gpus)
		find(k, true, type_key(t, "resources.gpus", key, sizeof key),
		     "%u are more than the %u there are: no job of this type can ever start", t->gpus,
		     k->config->resources.gpus);
	else if (t->max_gpus > k->config->resources.gpus)
		find(k, false, type_key(t, "resources.max_gpus", key, sizeof key),
		     "%u are more than the %u there are", t->max_gpus, k->config->resources.gpus);
	if (t->gpu_memory_mb > k->config->resources.gpu_memory_mb)
		find(k, true, type_key(t, "resources.gpu_memory_mb", key, sizeof key),
		     "a gpu has %g MB: no job of this type can ever start",
		     k->config->resources.gpu_memory_mb);
	for (size_t i = 0; i < t->n_env; i++) {
		const char *variable = k->config->resources.gpu_variable;

		if (k->config->resources.gpus && !strncmp(t->env[i], variable, strlen(variable)) &&
		    t->env[i][strlen(variable)] == '=')
			find(k, false, type_key(t, "env", key, sizeof key),
			     "%s is set to the gpus of the job; the value given here is ignored", variable);
	}
	if (!t->n_argv)
		return;
	if (t->cpus_max > 1 && !job_type_uses(t, "cpus"))
		find(k, false, type_key(t, "cpus", key, sizeof key),
		     "argv has no {cpus}, so jobs do not know how many they have");
	if (t->lr_rule != LR_NONE && !job_type_uses(t, "lr"))
		find(k, false, type_key(t, "lr", key, sizeof key),
		     "argv has no {lr}, so the rule has no effect");
	for (size_t i = 0; i < t->n_params; i++) {
		snprintf(part, sizeof part, "params.%s", t->param[i].name);
		if (!job_type_uses(t, t->param[i].name))
			find(k, false, type_key(t, part, key, sizeof key),
			     "argv does not use it: only the model sees it");
	}
}

/* ---- tenants, notify, learning ---- */

static void check_tenants(struct check *k)
{
	const struct config *c = k->config;
	char key[TYPE_KEY_SIZE];

	for (size_t i = 0; i < c->n_tenants; i++) {
		const struct config_tenant *t = &c->tenant[i];

		snprintf(key, sizeof key, "tenants.%s", t->name);
		if (!t->users.n && !t->groups.n && c->default_tenant != (int)i)
			find(k, false, key, "has neither users nor groups, so it is empty");
		if (t->max_cpus > c->slots)
			find(k, false, key, "max_cpus %u are more than the %u slots there are", t->max_cpus,
			     c->slots);
		if (t->max_gpus > c->resources.gpus)
			find(k, false, key, "max_gpus %u are more than the %u gpus there are", t->max_gpus,
			     c->resources.gpus);
	}
}

static void check_program(struct check *k, const char *key, const char *program)
{
	if (strchr(program, '/') ? !is_program(program) : !is_in_path(NULL, program))
		find(k, true, key,
		     strchr(program, '/') ? "%s is not a program that may be run"
					  : "there is no program '%s' in the PATH",
		     text_tail(program, 120));
}

static void check_notify(struct check *k)
{
	const struct config *c = k->config;

	if (c->n_notify)
		check_program(k, "notify[0]", c->notify[0]);
}

static bool engine_is_used(const struct config *c, const char *name)
{
	bool used = !strcmp(c->executor, name);

	for (size_t i = 0; i < c->n_types && !used; i++)
		used = c->type[i].executor && !strcmp(c->type[i].executor, name);
	return used;
}

static void check_engine(struct check *k, const struct config_engine *e)
{
	static const char *const slurm[] = { "sbatch", "squeue", "scancel" };
	const struct engine_command *command[] = { &e->submit, &e->cancel, &e->poll };
	static const char *const name[] = { "submit[0]", "cancel[0]", "poll[0]" };
	char key[TYPE_KEY_SIZE], path[PATH_MAX];

	for (size_t i = 0; i < 3; i++) {
		snprintf(key, sizeof key, "engines.%s%s%s", e->name, e->kind == ENGINE_COMMAND ? "." : "",
			 e->kind == ENGINE_COMMAND ? name[i] : "");
		snprintf(path, sizeof path, "%s%s%s", e->bin ? e->bin : "", e->bin ? "/" : "", slurm[i]);
		check_program(k, key, e->kind == ENGINE_COMMAND ? command[i]->word[0] : path);
	}
	snprintf(key, sizeof key, "engines.%s", e->name);
	if (!engine_is_used(k->config, e->name))
		find(k, false, key, "no \"executor\" names it, so it gets no jobs");
}

static void check_readable(struct check *k, const char *key, const char *path)
{
	struct stat st;

	if (path && (stat(path, &st) || !may(path, R_OK)))
		find(k, true, key, "%s: %s", text_tail(path, 120), strerror(errno));
	else if (path && S_ISDIR(st.st_mode))
		find(k, true, key, "%s is a folder", text_tail(path, 120));
}

static void check_learning(struct check *k)
{
	const struct config_learning *l = &k->config->learning;
	struct schema *schema = NULL;
	struct err why = { 0 };

	check_readable(k, "learning.table", l->table);
	check_readable(k, "learning.curves", l->curves);
	if (l->schema && schema_read_file(l->schema, &schema, &why))
		find(k, true, "learning.schema", "%s", why.text);
	schema_free(schema);
}

/* ---- the model ---- */

static bool category_known(const struct features *f, size_t source, const char *word)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct feature *one = &f->feature[i];

		if (one->source == source && ((one->category && !strcmp(one->category, word)) ||
					      (one->category_zero && !strcmp(one->category_zero, word))))
			return true;
	}
	return false;
}

/* Did the column change in training, so that a job that does not say it is half unknown to the model? */
static bool source_matters(const struct features *f, size_t source)
{
	for (size_t i = 0; i < f->n; i++) {
		if (f->feature[i].source == source && f->feature[i].min < f->feature[i].max)
			return true;
	}
	return false;
}

static const struct job_param *param_of_source(const struct job_type *t, const struct schema *s,
					       size_t source)
{
	for (size_t i = 0; i < t->n_params; i++) {
		if (schema_find_any(s, t->param[i].name) == (int)source)
			return &t->param[i];
	}
	return NULL;
}

static void check_words(struct check *k, const struct model *m, const struct job_type *t,
			const struct job_param *p, size_t source)
{
	char key[TYPE_KEY_SIZE], part[JOB_TYPE_MAX_NAME + 16];

	snprintf(part, sizeof part, "params.%s", p->name);
	for (size_t i = 0; i < p->n_words; i++) {
		if (!category_known(m->features, source, p->word[i]))
			find(k, false, type_key(t, part, key, sizeof key),
			     "the model has never seen '%s': its predictions for it are guesses", p->word[i]);
	}
}

static void check_type_against_model(struct check *k, const struct model *m, const struct job_type *t)
{
	const struct schema *s = m->schema;
	char key[TYPE_KEY_SIZE], part[JOB_TYPE_MAX_NAME + 16];

	for (size_t i = 0; i < s->n_columns; i++) {
		const struct job_param *p = param_of_source(t, s, i);
		bool ours = !strcmp(s->column[i].name, s->decision) || (int)i == schema_role(s, ROLE_CPUS) ||
			    (int)i == schema_role(s, ROLE_NJOBS) ||
			    (int)i == schema_role(s, ROLE_PROCESSES) ||
			    (int)i == schema_role(s, ROLE_OTHER) || (int)i == schema_role(s, ROLE_DEVICES);

		if (ours)
			continue;
		if (!p) {
			if (source_matters(m->features, i))
				find(k, false, type_key(t, "params", key, sizeof key),
				     "the model tells jobs apart by '%s', and there is no such parameter",
				     s->column[i].name);
			continue;
		}
		snprintf(part, sizeof part, "params.%s", p->name);
		if (p->kind == PARAM_WORD && s->column[i].kind == COLUMN_NUMBER)
			find(k, true, type_key(t, part, key, sizeof key),
			     "a word here, but a number in the model");
		else if (!p->required && !p->otherwise && source_matters(m->features, i))
			find(k, false, type_key(t, part, key, sizeof key),
			     "the model tells jobs apart by it, and a job may leave it out");
		if (p->kind == PARAM_WORD && s->column[i].kind == COLUMN_CATEGORY)
			check_words(k, m, t, p, i);
	}
}

/* A model of a handful of runs has no bounds, and every limit would be refused. */
static void check_bounds(struct check *k, const char *key, const struct policy_choice *policy,
			 const struct model *m)
{
	struct err why = { 0 };
	double q;

	if (policy->policy->predictor && policy->policy->bounds && !(policy->without & LAYER_BOUNDS) &&
	    conformal_quantile(&m->time.conformal, k->config->confidence, &q, &why))
		find(k, false, key, "%s; nothing can be promised until jobs have taught more", why.text);
}

/* The model of a type alone. */
static void check_own_model(struct check *k, const struct policy_choice *policy, const struct job_type *t)
{
	char key[TYPE_KEY_SIZE];
	struct model *m = NULL;
	struct schema *schema = NULL;
	struct err why = { 0 };

	check_readable(k, type_key(t, "table", key, sizeof key), t->table);
	check_readable(k, type_key(t, "curves", key, sizeof key), t->curves);
	if (t->schema && schema_read_file(t->schema, &schema, &why))
		find(k, true, type_key(t, "schema", key, sizeof key), "%s", why.text);
	schema_free(schema);
	if (!t->model || (t->first_after && access(t->model, F_OK))) {
		if (policy->policy->predictor)
			find(k, false, type_key(t, "model", key, sizeof key),
			     "there is none yet: jobs run without a promise until one is trained");
	} else if (model_load(t->model, &m, &why) || policy_accepts(policy, m, &why)) {
		find(k, true, type_key(t, "model", key, sizeof key), "%s", why.text);
	} else {
		check_type_against_model(k, m, t);
		check_bounds(k, type_key(t, "model", key, sizeof key), policy, m);
	}
	if (!t->n_batches && !m)
		find(k, true, type_key(t, "batches", key, sizeof key),
		     "are needed, because there is no model to take them from");
	model_free(m);
}

static void check_model(struct check *k)
{
	const struct config *c = k->config;
	struct policy_choice policy;
	struct model *m = NULL;
	struct err why = { 0 };
	size_t n_own = 0;

	if (policy_parse(c->policy, &policy, &why)) {
		find(k, true, "policy", "%s", why.text);
		return;
	}
	for (size_t i = 0; i < c->n_types; i++) {
		if (!job_type_has_model(&c->type[i]))
			continue;
		check_own_model(k, &policy, &c->type[i]);
		n_own++;
	}
	if (c->model && model_load(c->model, &m, &why)) {
		find(k, true, "model", "%s", why.text);
		return;
	}
	/* also where none is named and one is needed */
	if ((m || !n_own || n_own < c->n_types) && policy_accepts(&policy, m, &why))
		find(k, true, "model", "%s", why.text);
	if (!m)
		return;
	check_bounds(k, "model", &policy, m);
	for (size_t i = 0; i < c->n_types; i++)
		if (!job_type_has_model(&c->type[i]))
			check_type_against_model(k, m, &c->type[i]);
	model_free(m);
}

static void find_retired(void *check, const char *key)
{
	find(check, false, key, "no longer has an effect, and can be taken out");
}

size_t config_check(const struct config *c, config_finding *tell, void *owner)
{
	struct check k = { .config = c, .tell = tell, .owner = owner };
	char key[TYPE_KEY_SIZE];
	struct stat st;

	config_retired(c, find_retired, &k);
	check_socket(&k);
	check_state_dir(&k);
	if (c->cgroup && (stat(c->cgroup, &st) || !S_ISDIR(st.st_mode)))
		find(&k, true, "cgroup", "%s is not a folder", text_tail(c->cgroup, 120));
	if (c->pin && c->slots > c->cores)
		find(&k, false, "pin", "has no effect: %u slots are more than the %g cores", c->slots,
		     c->cores);
	check_model(&k);
	check_tenants(&k);
	check_notify(&k);
	check_learning(&k);
	for (size_t i = 0; i < c->n_engines; i++)
		check_engine(&k, &c->engine[i]);
	if (!c->n_types)
		find(&k, false, "types", "there are none, so no job can be submitted");
	for (size_t i = 0; i < c->n_types; i++) {
		const struct job_type *t = &c->type[i];

		check_places_of_type(&k, t);
		check_use_of_type(&k, t);
		if (!t->n_batches && !c->model && !job_type_has_model(t))
			find(&k, true, type_key(t, "batches", key, sizeof key),
			     "are needed, because there is no model to take them from");
	}
	return k.n_errors;
}
