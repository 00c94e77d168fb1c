/* Parameters of a job type and the values jobs choose for them. What a value may be is decided here and
 * nowhere else: numbers within bounds, and words of [A-Za-z0-9_.+-] that start with neither '-' nor '.', so
 * that no value can be taken for an option or climb out of a folder once it stands in a command. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/config/type_parts.h"

#define WHOLE_MAX 9007199254740992.0 /* 2^53: beyond it doubles skip numbers */

static const char *const kind_name[] = { "integer", "number", "word", NULL }; /* enum param_kind */

/* Placeholders that are there without a parameter, and columns the scheduler itself fills in. */
static const char *const reserved[] = { "batch", "cpus",  "lr",        "job", "dir",
					"seed",  "njobs", "processes", NULL };

bool param_name_is_taken(const char *name)
{
	for (size_t i = 0; reserved[i]; i++) {
		if (!strcmp(reserved[i], name))
			return true;
	}
	return false;
}

void param_release(struct job_param *p)
{
	for (size_t i = 0; i < p->n_words; i++)
		free(p->word[i]);
	free(p->word);
	free(p->name);
	free(p->otherwise);
	*p = (struct job_param){ 0 };
}

const struct job_param *param_find(const struct job_type *t, const char *name, size_t len)
{
	for (size_t i = 0; i < t->n_params; i++) {
		if (strlen(t->param[i].name) == len && !memcmp(t->param[i].name, name, len))
			return &t->param[i];
	}
	return NULL;
}

/* ---- values ---- */

bool param_word_is_safe(const char *s)
{
	size_t len = strlen(s);

	if (len == 0 || len > JOB_TYPE_MAX_VALUE || s[0] == '-' || s[0] == '.')
		return false;
	for (; *s; s++) {
		if (!isalnum((unsigned char)*s) && !strchr("_.+-", *s))
			return false;
	}
	return true;
}

/* A word that the file lists may be any text that a command line can hold, such as a path. */
bool param_word_is_text(const char *s)
{
	size_t len = strlen(s);

	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return false;
	}
	return len > 0 && len <= JOB_TYPE_MAX_VALUE;
}

/* All values where they fit into a sentence. */
static int not_among(const struct job_param *p, const char *given, struct err *err)
{
	const char *near = text_nearest(given, (const char *const *)p->word); /* NULL after the last */
	char shown[64], list[100] = "", more[32] = "";
	size_t used = 0, i = 0;

	for (; i < p->n_words && used + strlen(p->word[i]) + 3 < sizeof list; i++)
		used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", p->word[i]);
	if (i < p->n_words)
		snprintf(more, sizeof more, " and %zu more", p->n_words - i);
	return err_fail(err, ERR_ARG, "%s: '%s' is not among its values: %s%s%s%s%s", p->name,
			text_printable(given, shown, sizeof shown), list, more,
			near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int word_value(const struct job_param *p, const struct json *v, char **out_text, struct err *err)
{
	const char *s = json_string(v, NULL);
	char shown[64];

	if (!s)
		return err_fail(err, ERR_ARG, "%s must be a string", p->name);
	text_printable(s, shown, sizeof shown);
	if (p->free && !param_word_is_text(s))
		return err_fail(err, ERR_ARG,
				"%s: '%s' is not a value: 1 to %d bytes without control characters", p->name,
				shown, JOB_TYPE_MAX_VALUE);
	if (!p->free && !p->n_words && !param_word_is_safe(s))
		return err_fail(err, ERR_ARG,
				"%s: '%s' is not a word: 1 to %d of letters, digits and _ . + -, the first "
				"neither - nor .",
				p->name, shown, JOB_TYPE_MAX_VALUE);
	for (size_t i = 0; i < p->n_words; i++) {
		if (!strcmp(p->word[i], s))
			break;
		if (i + 1 < p->n_words)
			continue;
		return not_among(p, s, err);
	}
	*out_text = mem_strdup(s);
	return *out_text ? 0 : err_nomem(err, NULL);
}

/* The bounds in words: " from 1 to 100", or nothing where there are none. */
static const char *range_text(const struct job_param *p, char *buf, size_t size)
{
	char low[32], high[32];

	buf[0] = '\0';
	if (isfinite(p->min) && isfinite(p->max))
		snprintf(buf, size, " from %s to %s", text_shortest(p->min, low),
			 text_shortest(p->max, high));
	else if (isfinite(p->min))
		snprintf(buf, size, " of at least %s", text_shortest(p->min, low));
	else if (isfinite(p->max))
		snprintf(buf, size, " of at most %s", text_shortest(p->max, high));
	return buf;
}

/* A number, or its decimal text: a command line need not know the kinds. */
static int number_value(const struct job_param *p, const struct json *v, char **out_text, double *out_number,
			struct err *err)
{
	const char *s = json_string(v, NULL),
		   *kind = p->kind == PARAM_INTEGER ? "a whole number" : "a number";
	double number = json_number(v, NAN);
	char text[32], shown[64], range[96];

	if (s)
		text_printable(s, shown, sizeof shown);
	else if (isfinite(number))
		text_shortest(number, shown);
	else
		snprintf(shown, sizeof shown, "this value");
	range_text(p, range, sizeof range);
	if (s && !text_number(s, &number))
		number = NAN;
	if (isnan(number) || (p->kind == PARAM_INTEGER && number != floor(number)))
		return err_fail(err, ERR_ARG, "%s: %s is not %s%s", p->name, shown, kind, range);
	if (number < p->min || number > p->max)
		return err_fail(err, ERR_ARG, "%s: %s is out of range; it must be %s%s", p->name, shown, kind,
				range);
	number += 0.0; /* "-0" becomes 0 */
	/* One text for one value, and no exponent in what a program reads as an integer. */
	if (p->kind == PARAM_INTEGER)
		snprintf(text, sizeof text, "%.0f", number);
	else
		text_shortest(number, text);
	*out_text = mem_strdup(text);
	if (!*out_text)
		return err_nomem(err, NULL);
	*out_number = number;
	return 0;
}

/* "3..20", of digits alone. */
static bool whole_range(const char *s, double *out_from, double *out_to)
{
	return strspn(s, "0123456789.") == strlen(s) && text_range(s, out_from, out_to) &&
	       *out_from == floor(*out_from) && *out_to == floor(*out_to) && *out_to <= WHOLE_MAX;
}

bool param_is_range(const char *s)
{
	double from, to;

	return whole_range(s, &from, &to);
}

/* Open epochs. The ends are checked as single values are; what lies between them is then within the bounds,
 * too. */
static int open_epochs(const struct job_type *t, const struct job_param *p, double from, double to,
		       struct job_params *out, struct err *err)
{
	double one[2];
	char text[64], range[96];

	if (from < 1.0 || from > to)
		return err_fail(err, ERR_ARG,
				"%s: %.0f..%.0f is not a range: FROM..TO, FROM at least 1 and not above TO",
				p->name, from, to);
	if (from < p->min || to > p->max)
		return err_fail(err, ERR_ARG, "%s: %.0f..%.0f is out of range; it must be whole numbers%s",
				p->name, from, to, range_text(p, range, sizeof range));
	if (!job_type_epochs(t, from, to, one, 2))
		return err_fail(err, ERR_ARG,
				"%s: none of the %zu counts the type %s may choose from lies in %.0f..%.0f",
				p->name, t->n_epochs, t->name, from, to);
	snprintf(text, sizeof text, "%.0f..%.0f", from, to);
	out->value[p - t->param] = mem_strdup(text);
	if (!out->value[p - t->param])
		return err_nomem(err, NULL);
	out->epochs_from = from;
	out->epochs_to = to;
	return 0;
}

static int param_value(const struct job_param *p, const struct json *v, char **out_text, double *out_number,
		       struct err *err)
{
	*out_number = NAN;
	return p->kind == PARAM_WORD ? word_value(p, v, out_text, err)
				     : number_value(p, v, out_text, out_number, err);
}

/* ---- reading the parameters of a type ---- */

static bool param_name_is_good(const char *s)
{
	if (strlen(s) > JOB_TYPE_MAX_NAME || (!isalpha((unsigned char)*s) && *s != '_'))
		return false;
	for (; *s; s++) {
		if (!isalnum((unsigned char)*s) && !strchr("_.-", *s))
			return false;
	}
	return true;
}

static void read_words(struct fields *f, struct job_param *p)
{
	const struct json *list = fields_list(f, "values", 1, PARAM_MAX_WORDS);
	char key[32];

	if (!list)
		return;
	if (p->kind != PARAM_WORD) {
		fields_fail(f, ERR_FORMAT, "values", "is for words; numbers have min and max");
		return;
	}
	p->word = mem_calloc(json_size(list) + 1, sizeof *p->word);
	if (!p->word) {
		fields_nomem(f, "values");
		return;
	}
	for (const struct json *e = json_first(list); e && !f->rc; e = json_next(e)) {
		char *word = NULL;

		snprintf(key, sizeof key, "values[%zu]", p->n_words);
		field_text_value(f, key, e, JOB_TYPE_MAX_VALUE, &word);
		if (!word)
			return;
		p->word[p->n_words++] = word;
		if (!param_word_is_text(word))
			fields_fail(f, ERR_FORMAT, key, "must have no control character and not be empty");
		for (size_t i = 0; i + 1 < p->n_words; i++) {
			if (!strcmp(p->word[i], word))
				fields_fail(f, ERR_FORMAT, key, "'%s' appears twice", word);
		}
	}
}

static void read_bounds(struct fields *f, struct job_param *p)
{
	double limit = p->kind == PARAM_INTEGER ? WHOLE_MAX : HUGE_VAL;

	p->min = -limit;
	p->max = limit;
	if (p->kind == PARAM_WORD) {
		if (fields_get(f, "min") || fields_get(f, "max"))
			fields_fail(f, ERR_FORMAT, fields_get(f, "min") ? "min" : "max",
				    "is for numbers; words have values");
		p->min = p->max = NAN;
		return;
	}
	if (p->kind == PARAM_NUMBER)
		limit = 1e300;
	field_number(f, "min", -limit, limit, &p->min);
	field_number(f, "max", -limit, limit, &p->max);
	if (p->kind == PARAM_INTEGER && p->min != floor(p->min))
		fields_fail(f, ERR_FORMAT, "min", "must be a whole number, as the parameter is");
	if (p->kind == PARAM_INTEGER && p->max != floor(p->max))
		fields_fail(f, ERR_FORMAT, "max", "must be a whole number, as the parameter is");
	if (p->min > p->max)
		fields_fail(f, ERR_FORMAT, "min", "is above max");
}

static void read_default(struct fields *f, struct job_param *p)
{
	const struct json *v = fields_get(f, "default");
	struct err why = { 0 };
	double number;

	if (!v)
		return;
	if (p->required)
		fields_fail(f, ERR_FORMAT, "default", "is never used: the parameter is required");
	else if (p->kind == PARAM_INTEGER && param_is_range(json_string(v, ""))) /* of epochs: job_epochs.c */
		p->otherwise = mem_strdup(json_string(v, ""));
	else if (param_value(p, v, &p->otherwise, &number, &why))
		fields_fail(f, why.code == ERR_NOMEM ? ERR_NOMEM : ERR_FORMAT, "default", "%s", why.text);
}

static void param_read(struct fields *all, const char *name, void *one, void *owner)
{
	static const char *const known[] = { "kind", "required", "default", "min", "max", "values", NULL };
	struct job_param *p = one;
	struct fields f;
	int kind = -1;

	(void)owner;
	if (!param_name_is_good(name)) {
		fields_fail(
			all, ERR_FORMAT, name,
			"is not a name of a parameter: letters, digits and _ . -, a letter or _ first, at "
			"most %d",
			JOB_TYPE_MAX_NAME);
		return;
	}
	if (param_name_is_taken(name))
		fields_fail(all, ERR_FORMAT, name, "is filled in by Postrider, so it cannot be a parameter");
	p->name = all->rc ? NULL : mem_strdup(name);
	if (!p->name) {
		fields_nomem(all, name);
		return;
	}
	if (!fields_open_member(&f, all, name, known)) {
		fields_fail(all, ERR_FORMAT, name, "must be an object { ... }"); /* null */
		return;
	}
	field_choice(&f, "kind", kind_name, &kind);
	if (kind < 0)
		fields_fail(&f, ERR_FORMAT, "kind", "is needed: integer, number or word");
	else
		p->kind = (enum param_kind)kind;
	field_bool(&f, "required", &p->required);
	read_bounds(&f, p);
	read_words(&f, p);
	read_default(&f, p);
	fields_close(&f, all);
}

void params_read(struct fields *f, const char *name, void *object)
{
	static const struct named_list params = { "parameters", JOB_TYPE_MAX_PARAMS, sizeof(struct job_param),
						  param_read };
	struct job_type *t = object;

	named_read(f, name, &params, NULL, (void **)&t->param, &t->n_params);
	argv_read(f, t);
}

/* ---- writing ---- */

static void put_value(const struct job_param *p, const char *text, double number, struct json_writer *w)
{
	if (!text)
		json_put_null(w);
	else if (p->kind == PARAM_WORD || param_is_range(text))
		json_put_string(w, text);
	else
		json_put_number(w, number);
}

static void put_param(const struct job_param *p, struct json_writer *w)
{
	double number = NAN;

	if (p->otherwise && p->kind != PARAM_WORD)
		text_number(p->otherwise, &number);
	json_open(w, '{');
	json_kv_string(w, "kind", kind_name[p->kind]);
	json_kv_bool(w, "required", p->required);
	json_put_key(w, "default");
	put_value(p, p->otherwise, number, w);
	if (p->kind == PARAM_WORD) {
		json_put_key(w, "values");
		put_strings(w, p->word, p->n_words);
	} else {
		json_kv_number(w, "min", p->min);
		json_kv_number(w, "max", p->max);
	}
	json_close(w, '}');
}

void params_write(const void *object, struct json_writer *w)
{
	const struct job_type *t = object;

	json_open(w, '{');
	for (size_t i = 0; i < t->n_params; i++) {
		json_put_key(w, t->param[i].name);
		put_param(&t->param[i], w);
	}
	json_close(w, '}');
}

/* ---- one job's values ---- */

static int unknown_param(const struct job_type *t, const char *name, struct err *err)
{
	const char *known[JOB_TYPE_MAX_PARAMS + 1] = { NULL };
	char shown[64];
	const char *near;

	for (size_t i = 0; i < t->n_params; i++)
		known[i] = t->param[i].name;
	near = text_nearest(name, known);
	text_printable(name, shown, sizeof shown);
	if (near)
		return err_fail(err, ERR_ARG, "the type %s has no parameter '%s'; did you mean '%s'?",
				t->name, shown, near);
	return err_fail(err, ERR_ARG, "the type %s has no parameter '%s'", t->name, shown);
}

/* The value of parameter i from what was given, or its default. */
static int params_fill(const struct job_type *t, size_t i, const struct json *given,
		       const struct json *epochs, struct job_params *out, struct err *err)
{
	const struct job_param *p = &t->param[i];
	bool is_epochs = t->epochs_param && !strcmp(p->name, t->epochs_param);
	const struct json *v = is_epochs && epochs ? epochs : json_get(given, p->name);
	double from, to;

	if (is_epochs && whole_range(json_string(v, ""), &from, &to))
		return open_epochs(t, p, from, to, out, err);
	if (v)
		return param_value(p, v, &out->value[i], &out->number[i], err);
	if (p->required)
		return err_fail(err, ERR_ARG, "%s is needed by the type %s", p->name, t->name);
	if (!p->otherwise)
		return 0;
	if (is_epochs && whole_range(p->otherwise, &from, &to))
		return open_epochs(t, p, from, to, out, err);
	out->value[i] = mem_strdup(p->otherwise);
	if (!out->value[i])
		return err_nomem(err, NULL);
	if (p->kind != PARAM_WORD)
		text_number(p->otherwise, &out->number[i]);
	return 0;
}

int job_params_read(const struct job_type *t, const struct json *given, const struct json *epochs,
		    struct job_params *out, const char **out_field, struct err *err)
{
	struct job_params made = { .epochs_from = NAN, .epochs_to = NAN };
	const char *field = "params";
	int rc = 0;

	if (given && json_type(given) != JSON_OBJECT)
		rc = err_fail(err, ERR_ARG, "params must be an object { ... }");
	for (const struct json *m = json_first(given); m && !rc; m = json_next(m)) {
		if (param_find(t, json_key(m), strlen(json_key(m))))
			continue;
		field = json_key(m);
		rc = unknown_param(t, field, err);
	}
	for (size_t i = 0; i < JOB_TYPE_MAX_PARAMS; i++)
		made.number[i] = NAN;
	for (size_t i = 0; i < t->n_params && !rc; i++) {
		field = t->param[i].name;
		rc = params_fill(t, i, given, epochs, &made, err);
	}
	if (rc) {
		job_params_release(&made);
		if (out_field)
			*out_field = field;
		return rc;
	}
	*out = made;
	return 0;
}

void job_params_to_json(const struct job_type *t, const struct job_params *p, struct json_writer *w)
{
	json_open(w, '{');
	for (size_t i = 0; i < t->n_params; i++) {
		if (!p->value[i])
			continue;
		json_put_key(w, t->param[i].name);
		if (job_params_open(p) && t->epochs_param && !strcmp(t->param[i].name, t->epochs_param))
			json_put_string(w, p->value[i]);
		else
			put_value(&t->param[i], p->value[i], p->number[i], w);
	}
	json_close(w, '}');
}

void job_params_release(struct job_params *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < JOB_TYPE_MAX_PARAMS; i++) {
		free(p->value[i]);
		p->value[i] = NULL;
		p->number[i] = NAN;
	}
	p->epochs_from = p->epochs_to = NAN;
}
