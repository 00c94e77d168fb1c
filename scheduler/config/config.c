/* The configuration: the table of its keys, what is found out where the file does not say, and questions.
 * Admins and tenants are in tenants.c, `notify` in notify.c, job types in job_type.c, what needs the file
 * system in check.c. */
#include "scheduler/config/config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/places.h"
#include "common/text/template.h"
#include "common/text/text.h"
#include "scheduler/config/config_parts.h"
#include "scheduler/core/policy/policy.h"
#include "scheduler/process/machine.h"

#define MAX_CORES 65536
#define CLUSTER_SLOTS 4096 /* the most of a cluster that is used, unless the file says it */
#define MAX_SECONDS 1e7
#define MAX_TEST_JOBS 100000 /* PAIRED_MAX of core/learn/paired.h */
#define PER_UID_DEFAULT 10000

static const char *const durability_name[] = { "always", "interval", "none", NULL };
static const char *const level_name[] = { "error", "warn", "info", "debug", NULL }; /* enum log_level */
static const char *const format_name[] = { "text", "json", NULL };
const char *const on_late_name[] = { "nothing", "notify", "stop_best_effort", NULL };

static const char *const notify_of_name[] = { "late", "lost", "ended", NULL };

/* ---- keys that are more than a number or a text ---- */

/* "0660": octal, as chmod(1) takes it. */
static void read_mode(struct fields *f, const char *name, void *object)
{
	struct config *c = object;
	const struct json *v = fields_get(f, name);
	const char *s = json_string(v, NULL);
	size_t len = s ? strlen(s) : 0;

	if (!v)
		return;
	if (len < 3 || len > 4 || strspn(s, "01234567") != len || (len == 4 && s[0] != '0')) {
		fields_fail(f, ERR_FORMAT, name, "must be three octal digits in quotes, such as \"0660\"");
		return;
	}
	c->socket_mode = (mode_t)strtoul(s, NULL, 8);
	if ((c->socket_mode & 0600) != 0600)
		fields_fail(f, ERR_FORMAT, name, "%s leaves the owner without access", s);
}

static void write_mode(const void *object, struct json_writer *w)
{
	const struct config *c = object;
	char mode[16];

	snprintf(mode, sizeof mode, "0%03o", (unsigned)c->socket_mode & 0777u);
	json_put_string(w, mode);
}

static void read_policy(struct fields *f, const char *name, void *object)
{
	struct config *c = object;
	struct policy_choice choice;
	struct err why = { 0 };

	field_text(f, name, CONFIG_MAX_POLICY, &c->policy);
	if (!f->rc && !c->policy && !(c->policy = mem_strdup("postrider")))
		fields_nomem(f, name);
	if (!f->rc && policy_parse(c->policy, &choice, &why))
		fields_fail(f, why.code == ERR_NOMEM ? ERR_NOMEM : ERR_FORMAT, name, "%s", why.text);
}

static void read_per_uid(struct fields *f, const char *name, void *object)
{
	struct config *c = object;

	c->max_connections_per_uid = c->max_connections < PER_UID_DEFAULT ? c->max_connections
									  : PER_UID_DEFAULT;
	field_size(f, name, 1, c->max_connections, &c->max_connections_per_uid);
}

bool config_is_admin(const struct config *c, uid_t uid)
{
	bool is = uid == 0 || uid == geteuid();

	for (size_t i = 0; i < c->admin_users.n && !is; i++)
		is = c->admin_users.id[i] == uid;
	return is;
}

static void read_queued_per_uid(struct fields *f, const char *name, void *object)
{
	struct config *c = object;

	c->max_queued_per_uid = (c->max_queued + 1) / 2;
	field_size(f, name, 1, c->max_queued, &c->max_queued_per_uid);
}

static void read_ended_per_uid(struct fields *f, const char *name, void *object)
{
	struct store_keep *k = object;

	k->ended_per_uid = (k->ended + 1) / 2;
	field_size(f, name, 0, CONFIG_MAX_COUNT, &k->ended_per_uid);
}

static void read_rejected_per_uid(struct fields *f, const char *name, void *object)
{
	struct store_keep *k = object;

	k->rejected_per_uid = (k->rejected + 1) / 2;
	field_size(f, name, 0, CONFIG_MAX_COUNT, &k->rejected_per_uid);
}

static void check_learning(struct fields *f, void *object)
{
	const struct config_learning *l = object;

	if (l->curves && !l->table)
		fields_fail(f, ERR_FORMAT, "curves", "belong to a table, and none is named");
	/* n jobs on which the new model is always better have a p value of 1 / 2^n. */
	if (exp2(-(double)l->test_jobs) >= l->significance)
		fields_fail(f, ERR_FORMAT, "test_jobs",
			    "%zu jobs can not show a significance of %g: take %.0f or more", l->test_jobs,
			    l->significance, floor(-log2(l->significance)) + 1.0);
}

static void read_type(struct fields *all, const char *name, void *one, void *owner)
{
	char where[FIELDS_MAX_WHERE + JOB_TYPE_MAX_NAME + 16], shown[JOB_TYPE_MAX_NAME + 8];

	(void)owner;
	snprintf(where, sizeof where, "%s.%s", all->where, text_printable(name, shown, sizeof shown));
	all->rc = job_type_from_json(where, name, json_get(all->object, name), one, all->err);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct job_type *)a)->name, ((const struct job_type *)b)->name);
}

static void read_types(struct fields *f, const char *name, void *object)
{
	static const struct named_list types = { "types", CONFIG_MAX_TYPES, sizeof(struct job_type),
						 read_type };
	struct config *c = object;

	named_read(f, name, &types, NULL, (void **)&c->type, &c->n_types);
	if (!f->rc && c->n_types)
		qsort(c->type, c->n_types, sizeof *c->type, by_name);
}

static void write_types(const void *object, struct json_writer *w)
{
	const struct config *c = object;

	json_open(w, '{');
	for (size_t i = 0; i < c->n_types; i++) {
		json_put_key(w, c->type[i].name);
		job_type_to_json(&c->type[i], w);
	}
	json_close(w, '}');
}

/* ---- the tables ---- */

#define AT(member) .at = offsetof(struct config_learning, member)
static const struct key learning_keys[] = {
	{ "table", KEY_PATH, AT(table) },
	{ "schema", KEY_PATH, AT(schema) },
	{ "curves", KEY_PATH, AT(curves) },
	{ "retrain_after", KEY_SIZE, AT(retrain_after), 0, CONFIG_MAX_COUNT, 200 },
	{ "min_observations", KEY_SIZE, AT(min_observations), 2, CONFIG_MAX_COUNT, 30 },
	{ "test_jobs", KEY_SIZE, AT(test_jobs), 5, MAX_TEST_JOBS, 50 },
	{ "significance", KEY_NUMBER, AT(significance), 1e-6, 0.5, 0.05 },
	{ "keep_versions", KEY_SIZE, AT(keep_versions), 1, 1000, 10 },
	{ "adapt", KEY_BOOL, AT(adapt), .initial = true },
	{ "promise_after", KEY_SIZE, AT(promise_after), 0, CONFIG_MAX_COUNT, 9 },
	{ "probe", KEY_CHOICE, AT(probe), .choice = probe_name, .initial = PROBE_OFF },
	{ "probe_after_s", KEY_RETIRED, AT(retired.probe_after_s) },
	{ "explore", KEY_RETIRED, AT(retired.explore) },
	{ "hysteresis", KEY_RETIRED, AT(retired.hysteresis) },
	{ 0 },
};
#undef AT

#define AT(member) .at = offsetof(struct store_keep, member)
static const struct key keep_keys[] = {
	{ "ended", KEY_SIZE, AT(ended), 0, CONFIG_MAX_COUNT, 100000 },
	{ "ended_per_uid", KEY_SIZE, AT(ended_per_uid), .read = read_ended_per_uid },
	{ "ended_s", KEY_NUMBER, AT(ended_s), 0.0, 1e9, 0.0 },
	{ "rejected", KEY_SIZE, AT(rejected), 0, CONFIG_MAX_COUNT, 2000 },
	{ "rejected_per_uid", KEY_SIZE, AT(rejected_per_uid), .read = read_rejected_per_uid },
	{ "rejected_s", KEY_NUMBER, AT(rejected_s), 0.0, 1e9, 604800.0 },
	{ "observations", KEY_SIZE, AT(observations), 1, CONFIG_MAX_COUNT, 100000 },
	{ 0 },
};
#undef AT

#define AT(member) .at = offsetof(struct config, member)
static const struct key log_keys[] = {
	{ "level", KEY_CHOICE, AT(log_level), .choice = level_name, .initial = LOG_INFO },
	{ "format", KEY_CHOICE, AT(log_json), .choice = format_name },
	{ 0 },
};

const struct key config_keys[] = {
	{ "socket", KEY_PATH, AT(socket), .restart = true },
	{ "socket_mode", KEY_UINT32, AT(socket_mode), .read = read_mode, .write = write_mode,
	  .restart = true },
	{ "socket_group", KEY_TEXT, AT(socket_group), .max = CONFIG_MAX_USER_NAME, .restart = true },
	{ "state_dir", KEY_PATH, AT(state_dir), .restart = true },
	{ "policy", KEY_TEXT, AT(policy), .read = read_policy },
	{ "model", KEY_PATH, AT(model) },
	{ "confidence", KEY_NUMBER, AT(confidence), 0.001, 0.9999, 0.9 },
	{ "chance", KEY_NUMBER, AT(chance), 0.0, 0.9999, 0.0 },
	{ "seed", KEY_UINT64, AT(seed), 0, FIELDS_MAX_WHOLE, 1 },
	{ "cores", KEY_NUMBER, AT(cores), 0.01, MAX_CORES, NAN },
	{ "slots", KEY_UINT32, AT(slots), 1, MAX_CORES, 0 },
	{ "memory_mb", KEY_NUMBER, AT(memory_mb), 1.0, 1e9, NAN },
	{ "resources", KEY_PART, AT(resources), .part = resources_keys, .check = resources_check },
	{ "pin", KEY_BOOL, AT(pin) },
	{ "cgroup", KEY_PATH, AT(cgroup) },
	{ "max_queued", KEY_SIZE, AT(max_queued), 1, CONFIG_MAX_COUNT, 20000 },
	{ "max_queued_per_uid", KEY_SIZE, AT(max_queued_per_uid), .read = read_queued_per_uid },
	{ "max_unstarted_cpus_per_uid", KEY_UINT32, AT(max_unstarted_cpus_per_uid), 0, MAX_CORES, 0 },
	{ "max_finished", KEY_SIZE, AT(max_finished), 0, CONFIG_MAX_COUNT, 10000 },
	{ "max_connections", KEY_SIZE, AT(max_connections), 1, CONFIG_MAX_COUNT, 10240 },
	{ "max_connections_per_uid", KEY_SIZE, AT(max_connections_per_uid), .read = read_per_uid },
	{ "max_output_bytes", KEY_SIZE, AT(max_output_bytes), 65536, 1 << 30, 1 << 20 },
	{ "max_output_bytes_per_uid", KEY_SIZE, AT(max_output_bytes_per_uid), 65536, 1L << 40, 1 << 26 },
	{ "max_output_mb", KEY_NUMBER, AT(max_output_mb), 0.0, 1e9, 1024.0 },
	{ "idle_timeout_s", KEY_NUMBER, AT(idle_timeout_s), 0.0, MAX_SECONDS, 600.0 },
	{ "kill_grace_s", KEY_NUMBER, AT(kill_grace_s), 0.0, 86400.0, 30.0 },
	{ "advise_timeout_s", KEY_NUMBER, AT(advise_timeout_s), 1.0, MAX_SECONDS, 60.0 },
	{ "drain_timeout_s", KEY_NUMBER, AT(drain_timeout_s), 0.0, MAX_SECONDS, 0.0 },
	{ "idle_exit_s", KEY_NUMBER, AT(idle_exit_s), 0.0, 1e8, 0.0 },
	{ "drain_on_term", KEY_BOOL, AT(drain_on_term) },
	{ "durability", KEY_CHOICE, AT(durability), .choice = durability_name, .restart = true },
	{ "durability_interval_s", KEY_NUMBER, AT(durability_interval_s), 0.001, 60.0, 1.0, .restart = true },
	{ "keep", KEY_PART, AT(keep), .part = keep_keys },
	{ "admins", KEY_PART, .part = admin_keys },
	{ "notify", KEY_OTHER, .read = notify_read, .write = notify_write },
	{ "notify_of", KEY_CHOICE, AT(notify_of), .choice = notify_of_name, .initial = NOTIFY_OF_LATE },
	{ "on_late", KEY_CHOICE, AT(on_late), .choice = on_late_name, .initial = ON_LATE_NOTIFY },
	{ "tenants", KEY_OTHER, .read = tenants_read,
	  .write = tenants_write }, /* they inherit on_late and chance */
	{ "default_tenant", KEY_OTHER, .read = default_tenant_read, .write = default_tenant_write },
	{ "fair_window_s", KEY_NUMBER, AT(fair_window_s), 1.0, MAX_SECONDS, 3600.0 },
	{ "outside_load", KEY_BOOL, AT(other_load), .initial = true },
	{ "learning", KEY_PART, AT(learning), .part = learning_keys, .check = check_learning },
	{ "executor", KEY_TEXT, AT(executor), .max = JOB_TYPE_MAX_NAME, .initial_text = ENGINE_LOCAL },
	{ "engines", KEY_OTHER, .read = engines_read, .write = engines_write },
	{ "http", KEY_PART, AT(http), .part = http_keys, .check = http_check },
	{ "metrics_file", KEY_PATH, AT(metrics_file), .restart = true },
	{ "log", KEY_PART, .part = log_keys },
	{ "types", KEY_OTHER, .read = read_types, .write = write_types },
	{ 0 },
};
#undef AT

/* ---- reading and writing ---- */

void config_free(struct config *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_types; i++)
		job_type_release(&c->type[i]);
	free(c->type);
	free(c->path);
	tenants_release(c);
	engines_release(c);
	argv_free(c->notify);
	http_release(c);
	resources_release(c);
	keys_release(config_keys, c);
	free(c);
}

static bool is_at_slurm(const struct config *c)
{
	const struct config_engine *e = c->executor ? config_engine(c, c->executor) : NULL;

	return e && e->kind == ENGINE_SLURM && e->look_s > 0.0;
}

/* What the file left open and this machine says. */
static int find_out(struct config *c, struct err *err)
{
	int rc = 0;

	if (!c->socket)
		rc = place_socket(&c->socket, err);
	if (!rc && !c->state_dir)
		rc = place_state_dir(&c->state_dir, err);
	if (rc)
		return rc;
	if (is_at_slurm(c) && !c->slots) { /* what there is of them, the cluster says */
		c->slots = CLUSTER_SLOTS;
		c->cores = isnan(c->cores) ? CLUSTER_SLOTS : c->cores;
	}
	if (isnan(c->cores))
		c->cores = machine_cores();
	if (!c->slots)
		c->slots = c->cores < 1.0 ? 1 : (uint32_t)c->cores;
	if (isnan(c->memory_mb))
		c->memory_mb = machine_memory_mb();
	return 0;
}

/* `v` NULL: a file that says nothing. */
static int config_make(const char *name, const struct json *v, struct config **out, struct err *err)
{
	struct config *c = mem_calloc(1, sizeof *c);
	const char *known[KEYS_MAX + 1];
	struct fields f = { .separator = ": ", .err = err };

	if (!c)
		return err_fail(err, ERR_NOMEM, "%s: out of memory for the configuration", name);
	keys_default(config_keys, c);
	c->socket_mode = place_is_system() ? 0660 : 0600;
	c->default_tenant = -1;
	keys_names(config_keys, known);
	if (v)
		fields_open(&f, name, ": ", v, known, err);
	keys_read(&f, config_keys, c);
	executors_resolve(&f, c);
	if (!f.rc && (f.rc = find_out(c, err)))
		err_prefix(err, "%s", name);
	if (!f.rc && strlen(c->socket) > PLACE_MAX_SOCKET)
		fields_fail(&f, ERR_FORMAT, "socket", "...%s has %zu bytes; a socket's path has at most %d",
			    text_tail(c->socket, 60), strlen(c->socket), PLACE_MAX_SOCKET);
	if (f.rc) {
		config_free(c);
		return f.rc;
	}
	*out = c;
	return 0;
}

int config_default(struct config **out, struct err *err)
{
	return config_make("configuration", NULL, out, err);
}

int config_from_json(const char *name, const struct json *v, struct config **out, struct err *err)
{
	return config_make(text_tail(name, FIELDS_FILE_SHOWN), v, out, err);
}

int config_read(const char *path, struct config **out, struct err *err)
{
	bool from_stdin = !strcmp(path, "-");
	struct config *c = NULL;
	struct json *v = NULL;
	int rc = json_read_settings(path, CONFIG_MAX_BYTES, &v, err);

	if (!rc)
		rc = config_from_json(from_stdin ? "standard input" : path, v, &c, err);
	json_free(v);
	if (rc)
		return rc;
	/* Absolute, so that a reload finds it from wherever the daemon is by then. */
	if (!from_stdin)
		rc = place_absolute(path, &c->path, err);
	if (rc) {
		config_free(c);
		return err_prefix(err, "%s", text_tail(path, FIELDS_FILE_SHOWN));
	}
	*out = c;
	return 0;
}

void config_to_json(const struct config *c, struct json_writer *w)
{
	json_open(w, '{');
	keys_write(config_keys, c, w);
	json_close(w, '}');
}

/* ---- questions ---- */

const struct job_type *config_type(const struct config *c, const char *name)
{
	size_t low = 0, high = c->n_types;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(name, c->type[middle].name);

		if (order == 0)
			return &c->type[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

const char *config_nearest_type(const struct config *c, const char *name)
{
	const char *known[CONFIG_MAX_TYPES + 1] = { NULL };

	for (size_t i = 0; i < c->n_types && i < CONFIG_MAX_TYPES; i++)
		known[i] = c->type[i].name;
	return text_nearest(name, known);
}

int config_socket_group(const struct config *c, gid_t *out, bool *out_set, struct err *err)
{
	*out_set = c->socket_group != NULL;
	return c->socket_group ? place_group(c->socket_group, out, err) : 0;
}

void config_retired(const struct config *c, keys_tell *tell, void *owner)
{
	keys_retired(config_keys, c, tell, owner);
}

int config_reloadable(const struct config *old, const struct config *fresh, struct err *err)
{
	const char *key = keys_that_differ(config_keys, old, fresh);

	return key ? err_fail(err, ERR_ARG, "%s has changed, which needs a restart of the daemon", key) : 0;
}
