/* Placeholders of a user's command. See job_command.h. */
#include "scheduler/cli/job/job_command.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/template.h"
#include "common/text/text.h"

static const char *const batch_option[] = { "--batch-size", "--batch_size", "--batch",    "--batchsize",
					    "--bs",         "-b",           "batch_size", "batch-size",
					    "batch",        "bs",           NULL };
static const char *const epochs_option[] = {
	"--epochs",     "--n-epochs",   "--n_epochs", "--num-epochs", "--num_epochs",
	"--max-epochs", "--max_epochs", "--nepochs",  "-e",           "epochs",
	"num_epochs",   "max_epochs",   NULL
};

/* Values of these say which run it is, not what it does. */
static const char *const free_option[] = { "seed",
					   "random-seed",
					   "rng-seed",
					   "random-state",
					   "manual-seed",
					   "data-seed",
					   "run-name",
					   "run-id",
					   "exp-name",
					   "exp-id",
					   "experiment-name",
					   "output-dir",
					   "out-dir",
					   "outdir",
					   "output",
					   "out",
					   "log-dir",
					   "logdir",
					   "log-file",
					   "save-dir",
					   "save-path",
					   "checkpoint-dir",
					   "ckpt-dir",
					   "results-dir",
					   "result-dir",
					   NULL };
#define TYPED "typed_"

#define STEP_LINE "[Ss]tep[^0-9]{0,4}([0-9]+)" /* the end of some steps */
#define JOB_COMMAND_FACTOR 4096 /* bytes of a list of values */

static bool in_list(const char *s, size_t len, const char *const *list)
{
	for (; *list; list++) {
		if (strlen(*list) == len && !strncmp(*list, s, len))
			return true;
	}
	return false;
}

static bool uses(const struct profile_design *d, const char *name)
{
	for (size_t i = 0; i < d->n_command; i++) {
		if (template_uses(d->command[i], name))
			return true;
	}
	return false;
}

static bool is_count(const char *s)
{
	uint64_t n;

	return strlen(s) < JOB_COMMAND_TYPED && text_uint64(s, &n) && n >= 1 && n <= 1000000000;
}

/* The word that holds the value of such an option, "64" of "--batch-size 64" or "--batch-size=64";
 * SIZE_MAX: there is none. *out_at: where in the word it starts. */
static size_t find_option(char *const *word, size_t n, const char *const *option, size_t *out_at)
{
	for (size_t i = 1; i < n; i++) {
		const char *eq = strchr(word[i], '=');

		*out_at = 0;
		if (word[i][0] == '-' && in_list(word[i], strlen(word[i]), option) && i + 1 < n &&
		    is_count(word[i + 1]))
			return i + 1;
		if (eq && in_list(word[i], (size_t)(eq - word[i]), option) && is_count(eq + 1)) {
			*out_at = (size_t)(eq - word[i]) + 1;
			return i;
		}
	}
	return SIZE_MAX;
}

static int put_placeholder(struct profile_design *d, const char *name, const char *const *option,
			   const struct cli *talk, char *out_typed, struct err *err)
{
	struct strbuf text = { 0 };
	size_t at, i = uses(d, name) ? SIZE_MAX : find_option(d->command, d->n_command, option, &at);

	out_typed[0] = '\0';
	if (i == SIZE_MAX)
		return 0;
	snprintf(out_typed, JOB_COMMAND_TYPED, "%s", d->command[i] + at);
	if (talk)
		cli_notice(talk, "%s%s%s is taken as {%s}", at ? "" : cli_clean(d->command[i - 1]),
			   at ? "" : " ", cli_clean(d->command[i]), name);
	strbuf_printf(&text, "%.*s{%s}", (int)at, d->command[i], name);
	if (text.failed) {
		strbuf_release(&text);
		return err_nomem(err, "the command");
	}
	free(d->command[i]);
	d->command[i] = text.text;
	return 0;
}

/* Is the word, up to `len`, an option of the list, "--run-name", "--run_name" or "run_name"? `name`: what its
 * value is called as a free one. */
static bool is_free_option(const char *word, size_t len, char name[64])
{
	size_t dashes = strspn(word, "-");

	for (size_t i = 0; free_option[i]; i++) {
		size_t k = 0;

		if (dashes > 2 || len != dashes + strlen(free_option[i]))
			continue;
		while (free_option[i][k] && (word[dashes + k] == free_option[i][k] ||
					     (free_option[i][k] == '-' && word[dashes + k] == '_')))
			k++;
		if (free_option[i][k])
			continue;
		snprintf(name, 64, TYPED "%s", free_option[i]);
		for (char *s = name; *s; s++)
			*s = *s == '-' ? '_' : *s;
		return true;
	}
	return false;
}

/* What --set can carry, and no placeholder; a word of its own is no option itself. */
static bool is_free_value(const char *s, bool is_word)
{
	double number;

	for (const char *at = s; *at; at++) {
		if ((unsigned char)*at < 0x20 || *at == 0x7f || strchr(",{}", *at))
			return false;
	}
	return *s && (!is_word || *s != '-' || text_number(s, &number)) && strlen(s) <= PROFILE_MAX_VALUE;
}

static int put_free(struct profile_design *d, size_t i, size_t at, const char *name, char **set,
		    struct err *err)
{
	struct strbuf word = { 0 }, one = { 0 };
	int rc = profile_design_free(d, name, d->command[i] + at, err);

	strbuf_printf(&one, "%s=%s", name, d->command[i] + at);
	strbuf_printf(&word, "%.*s{%s}", (int)at, d->command[i], name);
	if (!rc && (word.failed || one.failed))
		rc = err_nomem(err, "the command");
	if (rc) {
		strbuf_release(&word);
		strbuf_release(&one);
		return rc;
	}
	free(d->command[i]);
	d->command[i] = word.text;
	*set = one.text;
	return 0;
}

int job_command_free(struct profile_design *d, char **set, size_t max, size_t *out_n, struct err *err)
{
	char name[64];
	int rc = 0;

	*out_n = 0;
	for (size_t i = 1; i < d->n_command && !rc && *out_n < max; i++) {
		const char *word = d->command[i], *eq = strchr(word, '=');
		size_t at = eq ? (size_t)(eq - word) + 1 : 0;

		if (eq ? !is_free_option(word, at - 1, name)
		       : word[0] != '-' || i + 1 == d->n_command || !is_free_option(word, strlen(word), name))
			continue;
		i += !eq;
		if (!is_free_value(d->command[i] + at, !at) || profile_factor_find(d, name) || uses(d, name))
			continue;
		rc = put_free(d, i, at, name, &set[*out_n], err);
		*out_n += !rc;
	}
	return rc;
}

static int take_steps(struct profile_design *d, const struct cli *talk, struct err *err)
{
	bool had = uses(d, "steps") && !uses(d, "epochs");
	int rc = 0;

	if (had && !d->result.epoch_regex && !(d->result.epoch_regex = mem_strdup(STEP_LINE)))
		return err_nomem(err, "the command");
	for (size_t i = 0; had && !rc && i < d->n_command; i++) {
		struct strbuf text = { 0 };
		const char *s = d->command[i], *at;

		for (; (at = strstr(s, "{steps}")); s = at + strlen("{steps}"))
			strbuf_printf(&text, "%.*s{epochs}", (int)(at - s), s);
		strbuf_puts(&text, s);
		if (text.failed) {
			strbuf_release(&text);
			return err_nomem(err, "the command");
		}
		free(d->command[i]);
		d->command[i] = text.text ? text.text : mem_strdup("");
		rc = d->command[i] ? 0 : err_nomem(err, "the command");
	}
	if (had && talk)
		cli_notice(talk, "{steps} are taken as {epochs}: --epochs says how many, and a line such as "
				 "'step 50/1000' ends some");
	return rc;
}

int job_command_factor(struct profile_design *d, const char *text, struct err *err)
{
	char renamed[JOB_COMMAND_FACTOR];

	if (strncmp(text, "steps=", 6) || uses(d, "steps") || strlen(text) >= sizeof renamed)
		return profile_design_factor(d, text, err);
	snprintf(renamed, sizeof renamed, "epochs=%s", text + 6);
	return profile_design_factor(d, renamed, err);
}

int job_command_metric(struct profile_design *d, const char *metric, const char *goal, struct err *err)
{
	if (goal && strcmp(goal, "min") && strcmp(goal, "max"))
		return err_fail(err, ERR_ARG, "--goal %s: min or max", goal);
	if (goal && !metric && !d->result.accuracy && !d->result.regex)
		return err_fail(err, ERR_ARG, "--goal needs --metric NAME or --regex RE");
	if (goal && !strcmp(goal, "min"))
		d->result.scale = OUTPUT_SMALLER;
	return profile_design_result(d, metric, NULL, err);
}

int job_command_take(struct profile_design *d, char *const *word, size_t n, const struct cli *talk,
		     struct job_typed *out, struct err *err)
{
	int rc = profile_design_argv(d, word, n, err);

	*out = (struct job_typed){ 0 };
	if (!rc)
		rc = take_steps(d, talk, err);
	if (!rc)
		rc = put_placeholder(d, "batch", batch_option, talk, out->batch, err);
	if (!rc)
		rc = put_placeholder(d, "epochs", epochs_option, talk, out->epochs, err);
	out->has_epochs = !rc && uses(d, "epochs");
	if (!rc && !uses(d, "batch"))
		rc = err_fail(err, ERR_ARG,
			      "the command has no {batch}: write it where the batch size goes, for example "
			      "--batch-size {batch}, or into a file that --template names");
	return rc;
}

static void put_levels(const double *v, size_t n, char *out, size_t size)
{
	size_t used = 0;
	double last = NAN;

	out[0] = '\0';
	for (size_t i = 0; i < n && used < size; i++) {
		double level = fmax(1.0, round(v[i]));

		if (level != last)
			used += (size_t)snprintf(out + used, size - used, "%s%.0f", used ? "," : "", level);
		last = level;
	}
}

void job_command_levels(const struct profile_design *d, const char *name, char *const *word, size_t n,
			char *out, size_t size)
{
	bool batch = !strcmp(name, "batch");
	size_t at, i;
	double v = NAN, from, to;

	out[0] = '\0';
	if (!strcmp(name, "lr") || !strcmp(name, "learning_rate"))
		snprintf(out, size, "0.001,0.01,0.1");
	if (!batch && strcmp(name, "epochs"))
		return;
	i = find_option(word, n, batch ? batch_option : epochs_option, &at);
	if (i != SIZE_MAX)
		text_number(word[i] + at, &v);
	else if (!batch && d->epochs && text_range(d->epochs, &from, &to)) {
		put_levels((double[]){ from, sqrt(from * to), to }, 3, out, size);
		return;
	} else if (!batch && d->epochs)
		text_number(d->epochs, &v);
	if (batch && isnan(v))
		snprintf(out, size, "16,32,64,128,256");
	else if (batch)
		put_levels((double[]){ v / 4, v / 2, v, 2 * v, 4 * v }, 5, out, size);
	else if (isnan(v) && d->result.epoch_regex && !strcmp(d->result.epoch_regex, STEP_LINE))
		return; /* a few steps tell nothing */
	else if (isnan(v))
		snprintf(out, size, "1,2,4");
	else
		put_levels((double[]){ v / 4, v / 2, v }, 3, out, size);
}

/* ---- names ---- */

static bool is_known(char **name, size_t n, const char *s, size_t len)
{
	static const char *const builtin[] = { "seed", "copy", "replication", "run", NULL };

	for (size_t i = 0; i < n; i++) {
		if (strlen(name[i]) == len && !strncmp(name[i], s, len))
			return true;
	}
	return in_list(s, len, builtin);
}

static size_t add_name(char **out, size_t n, size_t max, const char *s, size_t len)
{
	if (n == max || is_known(out, n, s, len))
		return n;
	out[n] = mem_strndup(s, len);
	return n + (out[n] != NULL);
}

size_t job_command_names(const struct profile_design *d, char **out, size_t max)
{
	size_t n = 0;

	if (uses(d, "batch"))
		n = add_name(out, n, max, "batch", 5);
	for (size_t i = 0; i < d->n_command; i++) {
		for (const char *s = d->command[i]; (s = strchr(s, '{')); s++) {
			size_t len = 0;

			if (s[1] == '{') {
				s++;
				continue;
			}
			while (isalnum((unsigned char)s[1 + len]) || s[1 + len] == '_')
				len++;
			if (len && s[1 + len] == '}' && !isdigit((unsigned char)s[1]))
				n = add_name(out, n, max, s + 1, len);
		}
	}
	return n;
}

void job_command_names_free(char **name, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(name[i]);
}
