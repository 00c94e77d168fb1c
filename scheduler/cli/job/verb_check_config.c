/* `postrider check-config`: checks a configuration of the daemon and prints the settings in effect. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text/text.h"
#include "scheduler/cli/cli.h"
#include "scheduler/config/config.h"

#define EXIT_INVALID 6

static void tell(void *owner, bool is_error, const char *text)
{
	if (is_error)
		fprintf(stderr, "postrider: %s\n", cli_clean(text));
	else
		cli_notice(owner, "%s", text);
}

/* ---- as a table ---- */

static void add_machine(struct cli_table *t, const struct config *c)
{
	char cores[32], memory[32];

	cli_table_add(t, "machine");
	cli_table_add(t, "%s cores, %u slots%s, %s MB", text_shortest(c->cores, cores), c->slots,
		      c->pin ? " pinned" : "",
		      isfinite(c->memory_mb) ? text_shortest(c->memory_mb, memory) : "unlimited");
	if (!c->resources.gpus)
		return;
	cli_table_add(t, "gpus");
	cli_table_add(t, "%u, in %s", c->resources.gpus, c->resources.gpu_variable);
}

static void add_socket(struct cli_table *t, const struct config *c)
{
	cli_table_add(t, "socket");
	cli_table_add(t, "%s, mode 0%03o%s%s", c->socket, (unsigned)c->socket_mode,
		      c->socket_group ? ", group " : "", c->socket_group ? c->socket_group : "");
}

static void add_durability(struct cli_table *t, const struct config *c)
{
	char every[32];

	cli_table_add(t, "durability");
	if (c->durability == DURABLE_ALWAYS)
		cli_table_add(t, "always: a job is on disk before it is acknowledged");
	else if (c->durability == DURABLE_INTERVAL)
		cli_table_add(t, "at most %s may be lost in a crash",
			      text_seconds(c->durability_interval_s, every));
	else
		cli_table_add(t, "none: a crash of the machine may lose jobs");
}

static void add_whole(struct cli_table *t, const char *name, const char *value)
{
	cli_table_add(t, "%s", name);
	cli_table_add(t, "%s", value ? value : "none");
}

/* "slurm: digits, vision" */
static void add_engines(struct cli_table *t, const struct config *c)
{
	struct strbuf types = { 0 };

	for (size_t i = 0; i < c->n_engines; i++) {
		const char *name = c->engine[i].name;

		strbuf_reset(&types);
		for (size_t k = 0; k < c->n_types; k++) {
			const char *its = c->type[k].executor ? c->type[k].executor : c->executor;

			if (!strcmp(its, name) && c->type[k].n_argv)
				strbuf_printf(&types, "%s %s", types.len ? "," : "", c->type[k].name);
		}
		cli_table_add(t, "engine");
		cli_table_add(t, "%s (%s), runs:%s", name, engine_kind_name[c->engine[i].kind],
			      types.len ? strbuf_text(&types) : " nothing");
	}
	strbuf_release(&types);
}

static void print_head(const struct cli *c, const struct config *config, struct strbuf *out)
{
	struct cli_table t;
	char confidence[32];

	cli_table_init(&t, "ll");
	add_whole(&t, "key", "value");
	add_whole(&t, "file", config->path);
	add_socket(&t, config);
	add_whole(&t, "state", config->state_dir);
	add_whole(&t, "policy", config->policy);
	add_whole(&t, "model", config->model);
	add_whole(&t, "confidence", cli_percent(config->confidence, confidence));
	add_machine(&t, config);
	add_engines(&t, config);
	add_durability(&t, config);
	cli_table_print(&t, out, cli_colour(c));
	cli_table_release(&t);
}

static void print_batches(const struct job_type *type, struct strbuf *out)
{
	char number[32];

	if (!type->n_batches)
		strbuf_puts(out, "the model's");
	for (size_t i = 0; i < type->n_batches; i++)
		strbuf_printf(out, "%s%s", i ? "," : "", text_shortest(type->batch[i], number));
}

/* "network!" is required, "epochs=4" has a default. */
static void print_params(const struct job_type *type, struct strbuf *out)
{
	for (size_t i = 0; i < type->n_params; i++) {
		const struct job_param *p = &type->param[i];

		strbuf_printf(out, "%s%s%s%s%s", i ? " " : "", p->name, p->required ? "!" : "",
			      p->otherwise ? "=" : "", p->otherwise ? p->otherwise : "");
	}
}

static void print_types(const struct cli *c, const struct config *config, struct strbuf *out)
{
	struct strbuf cell = { 0 };
	struct cli_table t;

	cli_table_head(&t, "llllll", "type", "runs", "cpus", "batches", "lr", "parameters");
	for (size_t i = 0; i < config->n_types; i++) {
		const struct job_type *type = &config->type[i];
		char base[32];

		cli_table_add(&t, "%s", type->name);
		cli_table_add(&t, "%s", type->n_argv ? text_tail(type->argv[0], 40) : "by the caller");
		if (type->cpus_min == type->cpus_max)
			cli_table_add(&t, "%u", type->cpus_min);
		else
			cli_table_add(&t, "%u-%u", type->cpus_min, type->cpus_max);
		strbuf_reset(&cell);
		print_batches(type, &cell);
		cli_table_add(&t, "%s", strbuf_text(&cell));
		if (isnan(type->lr_base))
			cli_table_add(&t, "none");
		else
			cli_table_add(&t, "%s%s%s", type->lr_rule ? lr_rule_name(type->lr_rule) : "",
				      type->lr_rule ? " from " : "", text_shortest(type->lr_base, base));
		strbuf_reset(&cell);
		print_params(type, &cell);
		cli_table_add(&t, "%s", strbuf_text(&cell));
	}
	strbuf_puts(out, "\n");
	cli_table_print(&t, out, cli_colour(c));
	cli_table_release(&t);
	out->failed |= cell.failed;
	strbuf_release(&cell);
}

static void print_json(const struct config *config, struct strbuf *out)
{
	struct json_writer w;

	json_begin(&w, out, true);
	config_to_json(config, &w);
	strbuf_puts(out, "\n");
}

/* ---- the verb ---- */

/* The configuration, or NULL after saying what is wrong; *out_exit is then the exit code. */
static struct config *open_config(const struct cli *c, int *out_exit)
{
	char *path = config_find(c->n_args ? c->arg[0] : NULL);
	struct config *config = NULL;
	struct err err = { 0 };

	if (!path)
		err_fail(&err, ERR_NOTFOUND,
			 "there is no configuration: name a FILE, set POSTRIDER_CONFIG, or write "
			 "/etc/postrider/config.json or postrider/config.json in the folder of your "
			 "configurations");
	else
		config_read(path, &config, &err);
	free(path);
	if (!config)
		*out_exit = cli_fail(&err);
	return config;
}

int verb_check_config(int argc, char **argv)
{
	static const struct cli_usage usage = {
		.verb = "check-config",
		.synopsis = "[FILE] [--json]",
		.what = "Reads a configuration as the daemon would, checks that the model, programs and "
			"folders\n"
			"exist and fit together, and prints the settings in effect. Without FILE it checks "
			"the\n"
			"configuration that the daemon would use. The exit code is 6 if something is wrong, "
			"4 if\n"
			"there is no configuration.",
		.json = true,
		.output = "write the result here instead of standard output",
		.max_args = 1,
		.examples = "  postrider check-config configs/demo.json\n"
			    "  postrider check-config --json | jq .types\n",
	};
	struct config *config;
	struct strbuf out = { 0 };
	struct err err = { 0 };
	struct cli c;
	size_t n_errors;
	int code;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	if (cli_check_output(c.output, &err))
		return cli_fail(&err);
	config = open_config(&c, &code);
	if (!config)
		return code;
	n_errors = config_check(config, tell, &c);
	if (c.json) {
		print_json(config, &out);
	} else if (!c.quiet) {
		print_head(&c, config, &out);
		if (config->n_types)
			print_types(&c, config, &out);
	}
	if (out.len || out.failed)
		code = cli_finish(&c, &out);
	strbuf_release(&out);
	config_free(config);
	return !code && n_errors ? EXIT_INVALID : code;
}
