/* Designs: their factors, their command, reading them from JSON and checking them. See design.h; plan.c
 * combines the levels into runs. */
#include "scheduler/profiler/plan.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/fields.h"
#include "common/mem.h"
#include "common/text/template.h"
#include "common/text/text.h"

/* Columns of the table that no factor may be called, and placeholders that exist without one. */
static const char *const reserved[] = { "seed",        "copy",
					"replication", "run",
					"time_s",      "accuracy",
					"status",      "processes",
					"cpu_mean",    "iowait_mean",
					"max_rss_mb",  "job_cpu_mean",
					"started_at",  "job_iowait_mean",
					"other_load",  "fetch_s",
					"compute_s",   "sync_s",
					"test_s",      "beside",
					NULL };
static const char *const builtin[] = { "seed", "copy", "replication", "run", NULL };

void profile_design_init(struct profile_design *d)
{
	*d = (struct profile_design){
		.replications = 1, .seed = 1, .timeout_s = 3600.0, .tries = 3, .max_spread = 0.3
	};
}

static void factor_release(struct profile_factor *f)
{
	for (size_t i = 0; i < f->n_levels; i++)
		free(f->level[i]);
	free(f->level);
	free(f->name);
	*f = (struct profile_factor){ 0 };
}

static void command_release(struct profile_design *d)
{
	for (size_t i = 0; i < d->n_command; i++)
		free(d->command[i]);
	d->n_command = 0;
	d->command[0] = NULL;
}

void profile_design_release(struct profile_design *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n_factors; i++)
		factor_release(&d->factor[i]);
	for (size_t i = 0; i < d->n_fixed; i++)
		factor_release(&d->fixed[i]);
	command_release(d);
	output_spec_release(&d->result);
	free(d->work_dir);
	free(d->epochs);
	profile_design_init(d);
}

/* ---- factors ---- */

static bool is_word(const char *s, size_t len)
{
	if (len == 0 || isdigit((unsigned char)s[0]))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)s[i]) && s[i] != '_')
			return false;
	}
	return true;
}

static bool in_list(const char *s, const char *const *list)
{
	for (; *list; list++) {
		if (!strcmp(*list, s))
			return true;
	}
	return false;
}

static int factor_begin(struct profile_factor *f, const char *where, const char *name, struct err *err)
{
	char shown[64];

	*f = (struct profile_factor){ .number = true };
	if (strlen(name) > PROFILE_MAX_VALUE || !is_word(name, strlen(name)))
		return err_fail(err, ERR_FORMAT,
				"%s: '%s' is not a name for a factor; letters, digits and _ make one", where,
				text_printable(name, shown, sizeof shown));
	if (in_list(name, reserved))
		return err_fail(err, ERR_FORMAT, "%s: '%s' is measured or counted, so it cannot be a factor",
				where, name);
	f->name = mem_strdup(name);
	f->level = mem_calloc(PROFILE_MAX_LEVELS, sizeof *f->level);
	return f->name && f->level ? 0 : err_nomem(err, "the design");
}

/* Numbers are kept as their shortest text, so that 64 and 64.0 are one level. */
static int factor_add(struct profile_factor *f, const char *where, const char *text, struct err *err)
{
	char number[32], shown[64];
	double v;

	if (f->n_levels == PROFILE_MAX_LEVELS)
		return err_fail(err, ERR_FORMAT, "%s: %s has more than %d levels", where, f->name,
				PROFILE_MAX_LEVELS);
	if (!f->free && text_number(text, &v))
		text = text_shortest(v, number);
	else
		f->number = false;
	if (!*text || strlen(text) > PROFILE_MAX_VALUE)
		return err_fail(err, ERR_FORMAT, "%s: %s has a level that is empty or longer than %d bytes",
				where, f->name, PROFILE_MAX_VALUE);
	for (const char *s = text; *s; s++) {
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return err_fail(err, ERR_FORMAT, "%s: level '%s' of %s has a control character in it",
					where, text_printable(text, shown, sizeof shown), f->name);
	}
	for (size_t i = 0; i < f->n_levels; i++) {
		if (!strcmp(f->level[i], text))
			return err_fail(err, ERR_FORMAT, "%s: %s has the level %s twice", where, f->name,
					text);
	}
	f->level[f->n_levels] = mem_strdup(text);
	if (!f->level[f->n_levels])
		return err_nomem(err, "the design");
	f->n_levels++;
	return 0;
}

static struct profile_factor *find(struct profile_factor *f, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(f[i].name, name))
			return &f[i];
	}
	return NULL;
}

static void drop(struct profile_factor *f, size_t *n, const char *name)
{
	struct profile_factor *at = find(f, *n, name);

	if (!at)
		return;
	factor_release(at);
	memmove(at, at + 1, (size_t)(f + *n - at - 1) * sizeof *at);
	--*n;
}

/* Takes *f. What has one level is fixed; a factor of the same name is replaced where it stands. */
static int factor_put(struct profile_design *d, const char *where, struct profile_factor *f, struct err *err)
{
	bool varies = f->n_levels > 1;
	struct profile_factor *list = varies ? d->factor : d->fixed, *at;
	size_t *n = varies ? &d->n_factors : &d->n_fixed;

	if (f->n_levels == 0)
		return err_fail(err, ERR_FORMAT, "%s: %s has no level", where, f->name);
	drop(varies ? d->fixed : d->factor, varies ? &d->n_fixed : &d->n_factors, f->name);
	at = find(list, *n, f->name);
	if (at) {
		factor_release(at);
	} else {
		if (*n == PROFILE_MAX_FACTORS)
			return err_fail(err, ERR_FORMAT, "%s: more than %d %s", where, PROFILE_MAX_FACTORS,
					varies ? "factors" : "fixed values");
		at = &list[(*n)++];
	}
	*at = *f;
	*f = (struct profile_factor){ 0 };
	return 0;
}

/* The text stays as it was typed: "007" is not 7 to everyone. */
static int put_free(struct profile_design *d, const char *where, const char *name, const char *value,
		    struct err *err)
{
	struct profile_factor f = { 0 };
	int rc = factor_begin(&f, where, name, err);

	f.free = true;
	if (!rc)
		rc = factor_add(&f, where, value, err);
	f.number = false;
	if (!rc)
		rc = factor_put(d, where, &f, err);
	factor_release(&f);
	return rc;
}

int profile_design_free(struct profile_design *d, const char *name, const char *value, struct err *err)
{
	return put_free(d, "the command", name, value, err);
}

/* A slip on the command line is not one in a file. */
static int as_usage(struct err *err)
{
	if (err)
		err->code = ERR_ARG;
	return -ERR_ARG;
}

int profile_design_factor(struct profile_design *d, const char *text, struct err *err)
{
	const char *eq = strchr(text, '=');
	struct profile_factor f = { 0 };
	char *copy, *rest, *one;
	char shown[64];
	int rc;

	if (!eq || eq == text || !eq[1])
		return err_fail(err, ERR_ARG, "--factor %s: write NAME=LEVEL,LEVEL, for example cpus=1,2,4",
				text_printable(text, shown, sizeof shown));
	copy = mem_strdup(text);
	if (!copy)
		return err_nomem(err, "the design");
	copy[eq - text] = '\0';
	rc = factor_begin(&f, "--factor", copy, err);
	rest = copy + (eq - text) + 1;
	while (!rc && (one = strsep(&rest, ",")))
		rc = factor_add(&f, "--factor", one, err);
	if (!rc)
		rc = factor_put(d, "--factor", &f, err);
	if (rc == -ERR_FORMAT)
		rc = as_usage(err);
	factor_release(&f);
	free(copy);
	return rc;
}

int profile_design_kind(struct profile_design *d, const char *text, struct err *err)
{
	uint64_t n;

	if (!strcmp(text, "full")) {
		d->kind = PROFILE_FULL;
	} else if (!strcmp(text, "2k")) {
		d->kind = PROFILE_TWO_LEVEL;
	} else if (!strncmp(text, "lhs:", 4) && text_uint64(text + 4, &n) && n >= 1 &&
		   n <= PROFILE_MAX_RUNS) {
		d->kind = PROFILE_LHS;
		d->lhs_runs = (size_t)n;
	} else {
		return err_fail(err, ERR_ARG,
				"there is no design '%s'; write full, 2k or lhs:N with N from 1 to %d", text,
				PROFILE_MAX_RUNS);
	}
	return 0;
}

/* ---- the command and the result ---- */

static int command_add(struct profile_design *d, const char *word, struct err *err)
{
	if (d->n_command == PROFILE_MAX_ARGS)
		return err_fail(err, ERR_ARG, "the command has more than %d words", PROFILE_MAX_ARGS);
	if (strlen(word) >= PROFILE_MAX_ARG)
		return err_fail(err, ERR_ARG, "a word of the command is longer than %d bytes",
				PROFILE_MAX_ARG - 1);
	d->command[d->n_command] = mem_strdup(word);
	if (!d->command[d->n_command])
		return err_nomem(err, "the design");
	d->command[++d->n_command] = NULL;
	return 0;
}

int profile_design_argv(struct profile_design *d, char *const *word, size_t n, struct err *err)
{
	int rc = 0;

	command_release(d);
	for (size_t i = 0; i < n && !rc; i++)
		rc = command_add(d, word[i], err);
	return rc;
}

/* Blanks separate words; '...' is taken as it is, in "..." a backslash still protects " and \. */
int profile_design_command(struct profile_design *d, const char *text, struct err *err)
{
	struct strbuf word = { 0 };
	bool open = false;
	char quote = 0;
	int rc = 0;

	command_release(d);
	for (const char *s = text; !rc; s++) {
		if (*s == '\0' || (!quote && isspace((unsigned char)*s))) {
			if (quote) {
				rc = err_fail(err, ERR_ARG, "--command: a %c is not closed", quote);
				break;
			}
			if (open)
				rc = word.failed ? err_nomem(err, "the design")
						 : command_add(d, strbuf_text(&word), err);
			strbuf_reset(&word);
			open = false;
			if (*s == '\0')
				break;
			continue;
		}
		open = true;
		if (!quote && (*s == '\'' || *s == '"'))
			quote = *s;
		else if (quote && *s == quote)
			quote = 0;
		else if (*s == '\\' && s[1] && (!quote || (quote == '"' && (s[1] == '"' || s[1] == '\\'))))
			strbuf_add(&word, ++s, 1);
		else
			strbuf_add(&word, s, 1);
	}
	strbuf_release(&word);
	return rc;
}

static int text_put(char **at, const char *text, struct err *err)
{
	char *copy = mem_strdup(text);

	if (!copy)
		return err_nomem(err, "the design");
	free(*at);
	*at = copy;
	return 0;
}

int profile_design_result(struct profile_design *d, const char *accuracy, const char *regex, struct err *err)
{
	struct output_spec *r = &d->result;
	int rc = 0;

	if (accuracy && regex)
		return err_fail(err, ERR_ARG,
				"the accuracy is at a given name or found by a regular expression, not both");
	if (!accuracy && !regex)
		return 0;
	if (regex)
		rc = output_regex_check(regex, err);
	if (!rc)
		rc = regex ? text_put(&r->regex, regex, err) : text_put(&r->accuracy, accuracy, err);
	if (rc)
		return rc;
	free(regex ? r->accuracy : r->regex);
	*(regex ? &r->accuracy : &r->regex) = NULL;
	d->result_given = true;
	return 0;
}

/* ---- JSON ---- */

static int level_from_json(struct profile_factor *f, const char *where, const struct json *v, struct err *err)
{
	char number[32];

	if (json_type(v) == JSON_NUMBER)
		return factor_add(f, where, text_shortest(json_number(v, 0.0), number), err);
	if (json_type(v) == JSON_STRING)
		return factor_add(f, where, json_string(v, ""), err);
	return err_fail(err, ERR_FORMAT, "%s: a level of %s is neither a number nor a string", where,
			f->name);
}

static int free_from_json(struct profile_design *d, const char *where, const struct json *v, struct err *err)
{
	if (find(d->factor, d->n_factors, json_key(v)) || find(d->fixed, d->n_fixed, json_key(v)))
		return err_fail(err, ERR_FORMAT, "%s: '%s' is both free and a factor", where, json_key(v));
	if (json_type(v) != JSON_STRING)
		return err_fail(err, ERR_FORMAT, "%s: %s must be a string", where, json_key(v));
	return put_free(d, where, json_key(v), json_string(v, ""), err);
}

static int factor_from_json(struct profile_design *d, const char *where, const struct json *v, bool fixed,
			    struct err *err)
{
	struct profile_factor f = { 0 };
	int rc = factor_begin(&f, where, json_key(v), err);

	if (!rc && (find(d->factor, d->n_factors, json_key(v)) || find(d->fixed, d->n_fixed, json_key(v))))
		rc = err_fail(err, ERR_FORMAT, "%s: '%s' is both a factor and fixed", where, f.name);
	if (!rc && !fixed && json_type(v) != JSON_ARRAY)
		rc = err_fail(err, ERR_FORMAT, "%s: the levels of %s must be a list", where, f.name);
	if (!rc && fixed)
		rc = level_from_json(&f, where, v, err);
	for (const struct json *l = fixed ? NULL : json_first(v); l && !rc; l = json_next(l))
		rc = level_from_json(&f, where, l, err);
	if (!rc)
		rc = factor_put(d, where, &f, err);
	factor_release(&f);
	return rc;
}

static void read_factors(struct fields *f, const char *key, struct profile_design *d)
{
	bool fixed = !strcmp(key, "fixed"), free = !strcmp(key, "free");
	struct fields all;

	if (!fields_open_member(&all, f, key, NULL))
		return;
	for (const struct json *m = json_first(all.object); m && !f->rc; m = json_next(m))
		f->rc = free ? free_from_json(d, all.where, m, f->err)
			     : factor_from_json(d, all.where, m, fixed, f->err);
}

static void read_command(struct fields *f, struct profile_design *d)
{
	const struct json *list = fields_list(f, "command", 1, PROFILE_MAX_ARGS);
	char place[FIELDS_MAX_KEY];
	struct err why = { 0 };

	if (list)
		command_release(d);
	for (const struct json *v = json_first(list); v && !f->rc; v = json_next(v)) {
		fields_element("command", d->n_command, place);
		if (json_type(v) != JSON_STRING)
			fields_fail(f, ERR_FORMAT, place, "must be a string");
		else if (command_add(d, json_string(v, ""), &why))
			fields_fail(f, why.code, place, "%s", why.text);
	}
}

/* A number, or a range as text: "1..4". */
static void read_usual_epochs(struct fields *f, struct profile_design *d)
{
	const struct json *v = fields_get(f, "epochs");
	const char *text = json_string(v, NULL);
	char number[TEXT_NUMBER];
	struct err why = { 0 };
	double from, to;
	bool is_one;

	if (!v)
		return;
	if (json_type(v) == JSON_NUMBER)
		text = text_shortest(json_number(v, 0.0), number);
	is_one = text && text_number(text, &from);
	if (!text || (!is_one && !text_range(text, &from, &to)) || !(from >= 1.0) || from != floor(from))
		fields_fail(f, ERR_FORMAT, "epochs", "must be a whole number, or a range as text: \"1..4\"");
	else if (text_put(&d->epochs, text, &why))
		fields_fail(f, why.code, "epochs", "%s", why.text);
}

static void read_result(struct fields *f, struct profile_design *d)
{
	static const char *const known[] = { "accuracy", "epoch", "regex", "epoch_regex", "scale", NULL };
	const char *accuracy = NULL, *regex = NULL, *epoch_regex = NULL;
	struct err why = { 0 };
	struct fields r;
	int scale = (int)d->result.scale;

	if (!fields_open_member(&r, f, "result", known))
		return;
	field_string(&r, "accuracy", OUTPUT_MAX_NAME, &accuracy);
	field_string(&r, "regex", OUTPUT_MAX_REGEX, &regex);
	field_text(&r, "epoch", OUTPUT_MAX_NAME, &d->result.epoch);
	field_string(&r, "epoch_regex", OUTPUT_MAX_REGEX, &epoch_regex);
	field_choice(&r, "scale", output_scale_name, &scale);
	if (!r.rc)
		d->result.scale = (enum output_scale)scale;
	if (!r.rc && epoch_regex && !output_regex_check(epoch_regex, &why))
		text_put(&d->result.epoch_regex, epoch_regex, &why);
	if (!r.rc && !why.code)
		profile_design_result(d, accuracy, regex, &why);
	if (!r.rc && why.code)
		fields_fail(f, why.code, "result", "%s", why.text);
	fields_close(&r, f);
}

int profile_design_from_json(struct profile_design *d, const char *name, const struct json *v,
			     struct err *err)
{
	static const char *const known[] = { "factors", "fixed",      "design",  "replications",
					     "seed",    "command",    "result",  "timeout_s",
					     "tries",   "max_spread", "warm_up", "work_dir",
					     "mixed",   "epochs",     "free",    NULL };
	const char *kind = NULL;
	struct err why = { 0 };
	struct fields f;

	fields_open(&f, text_tail(name, FIELDS_FILE_SHOWN), ": ", v, known, err);
	read_factors(&f, "factors", d);
	read_factors(&f, "fixed", d);
	read_factors(&f, "free", d);
	field_string(&f, "design", PROFILE_MAX_VALUE, &kind);
	if (kind && profile_design_kind(d, kind, &why))
		fields_fail(&f, why.code, "design", "%s", why.text);
	field_size(&f, "replications", 1, PROFILE_MAX_REPLICATIONS, &d->replications);
	field_size(&f, "mixed", 0, PROFILE_MAX_MIXED, &d->mixed);
	field_whole(&f, "seed", 0, PROFILE_MAX_SEED, &d->seed);
	field_number(&f, "timeout_s", 0.01, 1e7, &d->timeout_s);
	field_size(&f, "tries", 1, 100, &d->tries);
	field_number(&f, "max_spread", 0, 1000, &d->max_spread);
	field_bool(&f, "warm_up", &d->warm_up);
	field_path(&f, "work_dir", &d->work_dir);
	read_usual_epochs(&f, d);
	read_command(&f, d);
	read_result(&f, d);
	if (f.rc == -ERR_ARG) { /* the file is at fault, not the command line */
		f.rc = -ERR_FORMAT;
		if (err)
			err->code = ERR_FORMAT;
	}
	return f.rc;
}

int profile_design_read(struct profile_design *d, const char *path, struct err *err)
{
	struct json *root;
	int rc = json_read_settings(path, PROFILE_MAX_BYTES, &root, err);

	if (rc)
		return rc;
	rc = profile_design_from_json(d, path, root, err);
	json_free(root);
	return rc;
}

/* ---- checks ---- */

static bool command_uses(const struct profile_design *d, const char *name)
{
	for (size_t i = 0; i < d->n_command; i++) {
		if (template_uses(d->command[i], name))
			return true;
	}
	return false;
}

static int check_placeholders(const struct profile_design *d, struct err *err)
{
	const char *known[2 * PROFILE_MAX_FACTORS + 5] = { NULL };
	size_t n = 0;

	for (size_t i = 0; i < d->n_factors; i++)
		known[n++] = d->factor[i].name;
	for (size_t i = 0; i < d->n_fixed; i++)
		known[n++] = d->fixed[i].name;
	for (size_t i = 0; builtin[i]; i++)
		known[n++] = builtin[i];
	for (size_t i = 0; i < d->n_command; i++) {
		if (template_check(d->command[i], known, err))
			return err_prefix(err, "word %zu of the command", i + 1);
	}
	for (size_t i = 0; i < d->n_factors; i++) {
		if (strcmp(d->factor[i].name, "njobs") && !command_uses(d, d->factor[i].name))
			return err_fail(err, ERR_FORMAT, "factor %s changes nothing: the command has no {%s}",
					d->factor[i].name, d->factor[i].name);
	}
	return 0;
}

static int check_jobs(struct profile_design *d, struct err *err)
{
	struct profile_factor *jobs = find(d->factor, d->n_factors, "njobs"), one = { 0 };
	int rc = 0;

	if (!jobs)
		jobs = find(d->fixed, d->n_fixed, "njobs");
	if (!jobs) {
		rc = factor_begin(&one, "njobs", "njobs", err);
		if (!rc)
			rc = factor_add(&one, "njobs", "1", err);
		if (!rc)
			rc = factor_put(d, "njobs", &one, err);
		factor_release(&one);
		return rc;
	}
	for (size_t i = 0; i < jobs->n_levels; i++) {
		uint64_t n;

		if (!text_uint64(jobs->level[i], &n) || n < 1 || n > PROFILE_MAX_JOBS)
			return err_fail(err, ERR_FORMAT, "njobs=%s: copies at the same time are 1 to %d",
					jobs->level[i], PROFILE_MAX_JOBS);
	}
	return 0;
}

int profile_design_check(struct profile_design *d, struct err *err)
{
	size_t n;
	int rc;

	if (d->n_command == 0)
		return err_fail(
			err, ERR_ARG,
			"there is no command to measure; add --command '...', -- PROGRAM ARGUMENT..., or "
			"\"command\" to the design");
	if (d->replications < 1 || d->replications > PROFILE_MAX_REPLICATIONS)
		return err_fail(err, ERR_ARG, "%zu replications; 1 to %d are possible", d->replications,
				PROFILE_MAX_REPLICATIONS);
	rc = check_jobs(d, err);
	if (!rc)
		rc = check_placeholders(d, err);
	if (rc)
		return rc;
	if (profile_grid_size(d) == SIZE_MAX)
		return err_fail(err, ERR_FORMAT, "the full grid of these levels has more than %zu settings",
				PROFILE_MAX_GRID);
	n = profile_settings_planned(d);
	if (n > PROFILE_MAX_RUNS / d->replications)
		return err_fail(err, ERR_FORMAT,
				"%zu settings, %zu replications: more than %d runs; lhs:N measures a part of "
				"the grid",
				n, d->replications, PROFILE_MAX_RUNS);
	return 0;
}

/* ---- the command of one copy ---- */

struct filling {
	const struct profile_design *design;
	const struct profile_point *point;
	size_t copy;
};

static bool put_placeholder(const void *owner, const char *name, struct strbuf *out)
{
	const struct filling *f = owner;
	const struct profile_point *p = f->point;
	const char *value = profile_value(f->design, p->level, name);

	if (value)
		strbuf_puts(out, value);
	else if (!strcmp(name, "seed"))
		strbuf_printf(out, "%llu", (unsigned long long)profile_seed(f->design, p, f->copy));
	else if (!strcmp(name, "copy"))
		strbuf_printf(out, "%zu", f->copy);
	else if (!strcmp(name, "replication"))
		strbuf_printf(out, "%u", p->replication);
	else
		strbuf_printf(out, "%u-%u", p->setting + 1, p->replication); /* {run} */
	return true;
}

int profile_argv(const struct profile_design *d, const struct profile_point *p, size_t copy, char ***out_word,
		 struct err *err)
{
	struct filling f = { d, p, copy };

	return template_argv(d->command, d->n_command, put_placeholder, &f, PROFILE_MAX_ARG - 1, out_word,
			     err);
}
