/* Reading the configuration, its defaults, and writing what is in effect. Admins and tenants are in config_people.c,
 * job types in job_type.c, default places in places.c, what needs the file system in config_check.c. */
#include "scheduler/config/config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/config/config_parts.h"
#include "scheduler/process/machine.h"
#include "common/places.h"
#include "scheduler/core/policy.h"

#define MAX_CORES 65536
#define MAX_MB 1e9
#define MAX_POLICY 64
#define PER_UID_DEFAULT 10000

static const char *const durability_name[] = { "always", "interval", "none", NULL };
static const char *const level_name[] = { "error", "warn", "info", "debug", NULL }; /* enum log_level */
static const char *const format_name[] = { "text", "json", NULL };

void config_free(struct config *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_types; i++)
		job_type_release(&c->type[i]);
	free(c->type);
	free(c->path);
	free(c->socket);
	free(c->socket_group);
	free(c->state_dir);
	free(c->policy);
	free(c->model);
	free(c->cgroup);
	tenants_release(c);
	late_release(c);
	learning_release(&c->learning);
	free(c);
}

/* ---- defaults ---- */

static struct config *config_blank(void)
{
	struct config *c = mem_calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->socket_mode = place_is_system() ? 0660 : 0600;
	c->confidence = 0.9;
	c->seed = 1;
	c->cores = c->memory_mb = NAN; /* found out if the file does not say */
	c->max_queued = 20000;
	c->max_finished = 10000;
	c->max_connections = 10240;
	c->max_output_bytes = (size_t)1 << 20;
	c->idle_timeout_s = 600.0;
	c->kill_grace_s = 30.0;
	c->advise_timeout_s = 600.0;
	c->durability_interval_s = 1.0;
	c->log_level = LOG_INFO;
	c->default_tenant = -1;
	c->fair_window_s = 3600.0;
	c->on_late = ON_LATE_NOTIFY;
	c->outside_load = true;
	learning_default(&c->learning);
	return c;
}

/* What the file left open. */
static int config_complete(struct config *c, struct err *err)
{
	int rc = 0;

	if (!c->socket)
		rc = place_socket(&c->socket, err);
	if (!rc && !c->state_dir)
		rc = place_state_dir(&c->state_dir, err);
	if (rc)
		return rc;
	if (!c->policy && !(c->policy = mem_strdup("postrider")))
		return err_nomem(err, "the configuration");
	if (isnan(c->cores))
		c->cores = machine_cores();
	if (!c->slots)
		c->slots = c->cores < 1.0 ? 1 : (uint32_t)c->cores;
	if (isnan(c->memory_mb))
		c->memory_mb = machine_memory_mb();
	if (!c->max_connections_per_uid)
		c->max_connections_per_uid = c->max_connections < PER_UID_DEFAULT ? c->max_connections
										  : PER_UID_DEFAULT;
	return 0;
}

int config_default(struct config **out, struct err *err)
{
	struct config *c = config_blank();
	int rc = c ? config_complete(c, err) : err_nomem(err, "the configuration");

	if (rc) {
		config_free(c);
		return rc;
	}
	*out = c;
	return 0;
}

/* ---- reading ---- */

/* "0660": octal, as chmod(1) takes it. */
static void read_mode(struct fields *f, mode_t *out)
{
	const struct json *v = fields_get(f, "socket_mode");
	const char *s = json_string(v, NULL);
	size_t len = s ? strlen(s) : 0;

	if (!v)
		return;
	if (len < 3 || len > 4 || strspn(s, "01234567") != len || (len == 4 && s[0] != '0')) {
		fields_fail(f, ERR_FORMAT, "socket_mode",
			    "must be three octal digits in quotes, such as \"0660\"");
		return;
	}
	*out = (mode_t)strtoul(s, NULL, 8);
	if ((*out & 0600) != 0600)
		fields_fail(f, ERR_FORMAT, "socket_mode", "%s leaves the owner without access", s);
}

static void read_policy(struct fields *f, struct config *c)
{
	struct policy_choice choice;
	struct err why = { 0 };

	field_text(f, "policy", MAX_POLICY, &c->policy);
	if (!f->rc && c->policy && policy_parse(c->policy, &choice, &why))
		fields_fail(f, why.code == ERR_NOMEM ? ERR_NOMEM : ERR_FORMAT, "policy", "%s", why.text);
}

static void read_log(struct fields *f, struct config *c)
{
	static const char *const known[] = { "level", "format", NULL };
	int level = (int)c->log_level, format = c->log_json;
	struct fields l;

	if (!fields_open_member(&l, f, "log", known))
		return;
	field_choice(&l, "level", level_name, &level);
	field_choice(&l, "format", format_name, &format);
	c->log_level = (enum log_level)level;
	c->log_json = format == 1;
	fields_close(&l, f);
}

static void read_machine(struct fields *f, struct config *c)
{
	uint64_t slots = 0;

	field_number(f, "cores", 0.01, MAX_CORES, &c->cores);
	field_whole(f, "slots", 1, MAX_CORES, &slots);
	c->slots = (uint32_t)slots;
	field_number(f, "memory_mb", 1.0, MAX_MB, &c->memory_mb);
	field_bool(f, "pin", &c->pin);
	field_path(f, "cgroup", &c->cgroup);
}

static void read_limits(struct fields *f, struct config *c)
{
	int durability = DURABLE_ALWAYS;

	field_size(f, "max_queued", 1, CONFIG_MAX_COUNT, &c->max_queued);
	field_size(f, "max_finished", 0, CONFIG_MAX_COUNT, &c->max_finished);
	field_size(f, "max_connections", 1, CONFIG_MAX_COUNT, &c->max_connections);
	field_size(f, "max_connections_per_uid", 1, c->max_connections, &c->max_connections_per_uid);
	field_size(f, "max_output_bytes", 65536, (size_t)1 << 30, &c->max_output_bytes);
	field_number(f, "idle_timeout_s", 0.0, CONFIG_MAX_SECONDS, &c->idle_timeout_s);
	field_number(f, "kill_grace_s", 0.0, 86400.0, &c->kill_grace_s);
	field_number(f, "advise_timeout_s", 1.0, CONFIG_MAX_SECONDS, &c->advise_timeout_s);
	field_number(f, "drain_timeout_s", 0.0, CONFIG_MAX_SECONDS, &c->drain_timeout_s);
	field_bool(f, "drain_on_term", &c->drain_on_term);
	field_choice(f, "durability", durability_name, &durability);
	c->durability = (enum store_durability)durability;
	field_number(f, "durability_interval_s", 0.001, 60.0, &c->durability_interval_s);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct job_type *)a)->name, ((const struct job_type *)b)->name);
}

static void read_types(struct fields *f, struct config *c)
{
	size_t n = json_size(fields_get(f, "types"));
	char where[FIELDS_MAX_WHERE + JOB_TYPE_MAX_NAME + 16], shown[JOB_TYPE_MAX_NAME + 8];
	struct fields all;

	if (!fields_open_member(&all, f, "types", NULL))
		return;
	if (n > CONFIG_MAX_TYPES)
		fields_fail(f, ERR_FORMAT, "types", "has %zu types; at most %d are allowed", n,
			    CONFIG_MAX_TYPES);
	c->type = f->rc ? NULL : mem_calloc(n, sizeof *c->type);
	if (!c->type) {
		fields_nomem(f, "types");
		return;
	}
	for (const struct json *m = json_first(all.object); m && !f->rc; m = json_next(m)) {
		snprintf(where, sizeof where, "%s.%s", all.where,
			 text_printable(json_key(m), shown, sizeof shown));
		f->rc = job_type_from_json(where, json_key(m), m, &c->type[c->n_types], f->err);
		if (!f->rc)
			c->n_types++;
	}
	qsort(c->type, c->n_types, sizeof *c->type, by_name);
}

static void check_socket_length(struct fields *f, const struct config *c)
{
	if (!f->rc && strlen(c->socket) > PLACE_MAX_SOCKET)
		fields_fail(f, ERR_FORMAT, "socket", "...%s has %zu bytes; a socket's path has at most %d",
			    text_tail(c->socket, 60), strlen(c->socket), PLACE_MAX_SOCKET);
}

int config_from_json(const char *name, const struct json *v, struct config **out, struct err *err)
{
	static const char *const known[] = { "socket",
					     "socket_mode",
					     "socket_group",
					     "state_dir",
					     "policy",
					     "model",
					     "confidence",
					     "seed",
					     "cores",
					     "slots",
					     "memory_mb",
					     "pin",
					     "cgroup",
					     "max_queued",
					     "max_finished",
					     "max_connections",
					     "max_output_bytes",
					     "idle_timeout_s",
					     "kill_grace_s",
					     "advise_timeout_s",
					     "drain_timeout_s",
					     "drain_on_term",
					     "durability",
					     "durability_interval_s",
					     "admins",
					     "log",
					     "types",
					     "max_connections_per_uid",
					     "tenants",
					     "default_tenant",
					     "fair_window_s",
					     "notify",
					     "on_late",
					     "outside_load",
					     "learning",
					     NULL };
	struct config *c = config_blank();
	struct fields f;

	name = text_tail(name, FIELDS_FILE_SHOWN);
	if (!c)
		return err_fail(err, ERR_NOMEM, "%s: out of memory for the configuration", name);
	fields_open(&f, name, ": ", v, known, err);
	field_path(&f, "socket", &c->socket);
	read_mode(&f, &c->socket_mode);
	field_text(&f, "socket_group", CONFIG_MAX_USER_NAME, &c->socket_group);
	field_path(&f, "state_dir", &c->state_dir);
	read_policy(&f, c);
	field_path(&f, "model", &c->model);
	field_number(&f, "confidence", 0.001, 0.9999, &c->confidence);
	field_whole(&f, "seed", 0, FIELDS_MAX_WHOLE, &c->seed);
	read_machine(&f, c);
	read_limits(&f, c);
	admins_read(&f, c);
	late_read(&f, c);
	tenants_read(&f, c);
	field_bool(&f, "outside_load", &c->outside_load);
	learning_read(&f, &c->learning);
	read_log(&f, c);
	read_types(&f, c);
	if (!f.rc && (f.rc = config_complete(c, err)))
		err_prefix(err, "%s", name);
	check_socket_length(&f, c);
	if (f.rc) {
		config_free(c);
		return f.rc;
	}
	*out = c;
	return 0;
}

int config_read(const char *path, struct config **out, struct err *err)
{
	bool from_stdin = !strcmp(path, "-");
	struct config *c = NULL;
	struct json *v = NULL;
	int rc = json_read_file(path, CONFIG_MAX_BYTES, &v, err);

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

/* ---- writing ---- */

static void put_limits(const struct config *c, struct json_writer *w)
{
	json_kv_int(w, "max_queued", (long long)c->max_queued);
	json_kv_int(w, "max_finished", (long long)c->max_finished);
	json_kv_int(w, "max_connections", (long long)c->max_connections);
	json_kv_int(w, "max_connections_per_uid", (long long)c->max_connections_per_uid);
	json_kv_int(w, "max_output_bytes", (long long)c->max_output_bytes);
	json_kv_number(w, "idle_timeout_s", c->idle_timeout_s);
	json_kv_number(w, "kill_grace_s", c->kill_grace_s);
	json_kv_number(w, "advise_timeout_s", c->advise_timeout_s);
	json_kv_number(w, "drain_timeout_s", c->drain_timeout_s);
	json_kv_bool(w, "drain_on_term", c->drain_on_term);
	json_kv_string(w, "durability", durability_name[c->durability]);
	json_kv_number(w, "durability_interval_s", c->durability_interval_s);
}

void config_to_json(const struct config *c, struct json_writer *w)
{
	char mode[16];

	json_open(w, '{');
	json_kv_string(w, "socket", c->socket);
	snprintf(mode, sizeof mode, "0%03o", (unsigned)c->socket_mode & 0777u);
	json_kv_string(w, "socket_mode", mode);
	json_kv_string(w, "socket_group", c->socket_group);
	json_kv_string(w, "state_dir", c->state_dir);
	json_kv_string(w, "policy", c->policy);
	json_kv_string(w, "model", c->model);
	json_kv_number(w, "confidence", c->confidence);
	json_kv_int(w, "seed", (long long)c->seed);
	json_kv_number(w, "cores", c->cores);
	json_kv_int(w, "slots", c->slots);
	json_kv_number(w, "memory_mb", c->memory_mb);
	json_kv_bool(w, "pin", c->pin);
	json_kv_string(w, "cgroup", c->cgroup);
	put_limits(c, w);
	admins_write(c, w);
	late_write(c, w);
	tenants_write(c, w);
	json_kv_bool(w, "outside_load", c->outside_load);
	learning_write(&c->learning, w);
	json_put_key(w, "log");
	json_open(w, '{');
	json_kv_string(w, "level", level_name[c->log_level]);
	json_kv_string(w, "format", format_name[c->log_json]);
	json_close(w, '}');
	json_put_key(w, "types");
	json_open(w, '{');
	for (size_t i = 0; i < c->n_types; i++) {
		json_put_key(w, c->type[i].name);
		job_type_to_json(&c->type[i], w);
	}
	json_close(w, '}');
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

static bool differs(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) != 0 : a != b;
}

int config_reloadable(const struct config *old, const struct config *fresh, struct err *err)
{
	const char *key = differs(old->socket, fresh->socket)               ? "socket"
			  : old->socket_mode != fresh->socket_mode          ? "socket_mode"
			  : differs(old->socket_group, fresh->socket_group) ? "socket_group"
			  : differs(old->state_dir, fresh->state_dir)       ? "state_dir"
			  : old->durability != fresh->durability            ? "durability"
			  : old->durability_interval_s != fresh->durability_interval_s
				  ? "durability_interval_s"
				  : NULL;

	if (!key)
		return 0;
	return err_fail(err, ERR_ARG, "%s has changed, which needs a restart of the daemon", key);
}
