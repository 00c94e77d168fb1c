/* The part `resources` of the configuration: the devices that jobs may have, by number or by name, and how a
 * job learns which ones it may use. See config.h. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/config/config_parts.h"
#include "scheduler/config/type_parts.h"

/* Index, UUID ("GPU-8c5d...", "MIG-...") or an address on the bus; no comma, which separates them. */
static bool device_is_good(const char *s)
{
	if (!isalnum((unsigned char)*s))
		return false;
	for (; *s; s++) {
		if (!isalnum((unsigned char)*s) && !strchr("_.:/-", *s))
			return false;
	}
	return true;
}

/* 4, or ["0", "GPU-8c5d", ...]. */
static void read_gpus(struct fields *f, const char *name, void *object)
{
	struct config_resources *r = object;
	const struct json *v = fields_get(f, name);
	uint64_t n = 0;
	char key[64];

	if (v && json_type(v) != JSON_ARRAY) {
		if (json_type(v) != JSON_NUMBER)
			fields_fail(f, ERR_FORMAT, name,
				    "must be a number of gpus, or a list of their names");
		field_whole(f, name, 0, JOB_TYPE_MAX_GPUS, &n);
		r->gpus = (uint32_t)n;
		return;
	}
	v = fields_list(f, name, 0, CONFIG_MAX_DEVICE_NAMES);
	if (!v)
		return;
	r->gpu_name = mem_calloc(json_size(v) + 1, sizeof *r->gpu_name);
	if (!r->gpu_name)
		fields_nomem(f, name);
	for (const struct json *e = json_first(v); e && !f->rc; e = json_next(e)) {
		char **one = &r->gpu_name[r->gpus];

		snprintf(key, sizeof key, "%s[%u]", name, r->gpus);
		field_text_value(f, key, e, CONFIG_MAX_DEVICE_NAME, one);
		if (f->rc)
			return;
		r->gpus++;
		if (!*one || !device_is_good(*one))
			fields_fail(
				f, ERR_FORMAT, key,
				"must be the name of a device: letters, digits and _ . : / -, a letter or "
				"digit first");
		for (uint32_t i = 0; i + 1 < r->gpus && !f->rc; i++) {
			if (!strcmp(r->gpu_name[i], *one))
				fields_fail(f, ERR_FORMAT, key, "%s is named twice", *one);
		}
	}
}

static void write_gpus(const void *object, struct json_writer *w)
{
	const struct config_resources *r = object;

	if (r->gpu_name)
		put_strings(w, r->gpu_name, r->gpus);
	else
		json_put_int(w, r->gpus);
}

void resources_check(struct fields *f, void *object)
{
	const struct config_resources *r = object;

	if (r->gpu_variable && !env_name_is_good(r->gpu_variable))
		fields_fail(f, ERR_FORMAT, "gpu_variable",
			    "is not a name of a variable: letters, digits and _, no digit first");
	else if (r->gpu_variable && !strncmp(r->gpu_variable, "POSTRIDER_", strlen("POSTRIDER_")))
		fields_fail(f, ERR_FORMAT, "gpu_variable", "is set by Postrider");
}

#define AT(member) .at = offsetof(struct config_resources, member)
const struct key resources_keys[] = {
	{ "gpus", KEY_OTHER, .read = read_gpus, .write = write_gpus },
	{ "gpu_memory_mb", KEY_NUMBER, AT(gpu_memory_mb), 1.0, 1e9, NAN },
	{ "gpu_variable", KEY_TEXT, AT(gpu_variable), .max = JOB_TYPE_MAX_NAME,
	  .initial_text = "CUDA_VISIBLE_DEVICES" },
	{ 0 },
};
#undef AT

void resources_release(struct config *c)
{
	for (uint32_t i = 0; c->resources.gpu_name && i < c->resources.gpus; i++)
		free(c->resources.gpu_name[i]);
	free(c->resources.gpu_name);
}
