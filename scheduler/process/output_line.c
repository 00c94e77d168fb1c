/* Finds the accuracy and the epoch in a line of a command's output. See output_line.h; output_names.c knows
 * what the usual names mean.
 *
 * Text is looked through number by number: what stands before a number, and how it is joined to it ("=", ":",
 * a blank, a bracket), gives its name. A count without a name, "[3/14]" or the "3/14" behind a progress bar,
 * is one of epochs where there are that many. A line that draws an unfinished bar ends no epoch. */
#define _GNU_SOURCE
#include "scheduler/process/output_line.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/process/output_names.h"

#define MAX_NUMBER 48 /* bytes */

const char *const output_scale_name[] = { "auto", "fraction", "percent", "smaller", NULL };

void output_spec_release(struct output_spec *s)
{
	free(s->accuracy);
	free(s->epoch);
	free(s->regex);
	free(s->epoch_regex);
	*s = (struct output_spec){ 0 };
}

/* ---- regular expressions ---- */

static int compile(const char *text, regex_t *out, struct err *err)
{
	char why[128], shown[256];
	int rc;

	if (strlen(text) > OUTPUT_MAX_REGEX)
		return err_fail(err, ERR_ARG, "a regular expression of %zu bytes; at most %d are allowed",
				strlen(text), OUTPUT_MAX_REGEX);
	text_printable(text, shown, sizeof shown);
	rc = regcomp(out, text, REG_EXTENDED);
	if (rc == REG_ESPACE)
		return err_nomem(err, "a regular expression");
	if (rc) {
		regerror(rc, out, why, sizeof why);
		return err_fail(err, ERR_ARG, "regular expression '%s': %s", shown, why);
	}
	if (out->re_nsub == 0) {
		regfree(out);
		return err_fail(err, ERR_ARG, "regular expression '%s' has no (group), which is what is read",
				shown);
	}
	return 0;
}

int output_regex_check(const char *regex, struct err *err)
{
	regex_t re;
	int rc = compile(regex, &re, err);

	if (!rc)
		regfree(&re);
	return rc;
}

/* The last match in the line counts. An empty match ends the search, which would not move on. */
static bool last_match(const regex_t *re, const char *text, size_t len, double *out, bool *out_percent)
{
	char line[OUTPUT_MAX_REGEX_LINE + 1]; /* regexec() wants an end, which a line of a log has not */
	size_t at = 0;
	bool found = false;

	if (len > OUTPUT_MAX_REGEX_LINE)
		return false;
	memcpy(line, text, len);
	line[len] = '\0';
	while (at <= len) {
		regmatch_t m[2] = { { .rm_so = (regoff_t)at, .rm_eo = (regoff_t)len } };
		char number[64];
		size_t n;

		if (regexec(re, line, 2, m, REG_STARTEND | (at ? REG_NOTBOL : 0)))
			break;
		n = m[1].rm_so < 0 ? 0 : (size_t)(m[1].rm_eo - m[1].rm_so);
		if (n && n < sizeof number) {
			size_t end = (size_t)m[1].rm_eo;

			memcpy(number, line + m[1].rm_so, n);
			*out_percent = number[n - 1] == '%' || (end < len && line[end] == '%');
			number[n - (number[n - 1] == '%')] = '\0';
			found |= text_number(number, out);
		}
		if ((size_t)m[0].rm_eo == at)
			break;
		at = (size_t)m[0].rm_eo;
	}
	return found;
}

/* ---- numbers in text ---- */

struct found { /* what one line has */
	double accuracy, epoch, loss, elapsed_s;
	struct output_phases phases;
	int rank; /* of the accuracy */
	bool percent_sign;
	bool more; /* something beside an epoch has a value */
	bool begins; /* the epoch is one that goes on: "Train Epoch: 1 [6400/60000] Loss: 0.3" */
	bool part; /* a progress bar that has not come to its end: its numbers are of a part of an epoch */
	double epochs; /* "of 14", beside the epoch */
	double batch; /* of a line that asks how to go on */
	bool asks;
	double count, counted; /* without a name: the 3 and the 14 of "[3/14]" */
	const char *name;
	size_t name_len; /* of the accuracy; NULL: see `json` */
	bool json;
};

static bool name_char(char c)
{
	return isalnum((unsigned char)c) || strchr("_./@-", c);
}

/* The length of the decimal number at `s`; 0: there is none. */
static size_t number_at(const char *s, size_t len, double *out)
{
	char text[MAX_NUMBER + 1];
	size_t n = 0;

	while (n < len && n < MAX_NUMBER &&
	       (isdigit((unsigned char)s[n]) || s[n] == '.' ||
		((s[n] == 'e' || s[n] == 'E') && n + 1 < len &&
		 (isdigit((unsigned char)s[n + 1]) || s[n + 1] == '-' || s[n + 1] == '+')) ||
		((s[n] == '-' || s[n] == '+') && (n == 0 || s[n - 1] == 'e' || s[n - 1] == 'E'))))
		n++;
	while (n && s[n - 1] == '.')
		n--; /* the end of a sentence */
	memcpy(text, s, n);
	text[n] = '\0';
	return n && text_number(text, out) ? n : 0;
}

/* The name that a number at `at` belongs to: its end is where it is joined to the number. */
static bool name_before(const char *line, size_t at, size_t *out_from, size_t *out_to, bool *out_joined)
{
	size_t i = at;

	*out_joined = false;
	while (i && strchr(" \t[(", line[i - 1]))
		i--;
	if (i && (line[i - 1] == '=' || line[i - 1] == ':')) {
		*out_joined = true;
		i--;
		while (i && strchr(" \t", line[i - 1]))
			i--;
	} else if (i == at) {
		return false;
	}
	if (i && (line[i - 1] == '\'' || line[i - 1] == '"'))
		i--;
	*out_to = i;
	while (i && name_char(line[i - 1]) && *out_to - i < OUTPUT_MAX_NAME)
		i--;
	while (i < *out_to && !isalpha((unsigned char)line[i]))
		i++; /* "--acc", "3/acc" */
	*out_from = i;
	return i < *out_to;
}

/* The word before a name, "test" in "Test accuracy: 0.93"; as long as `name` where there is none. */
static size_t with_word_before(const char *line, size_t from)
{
	size_t i = from;

	while (i && (line[i - 1] == ' ' || line[i - 1] == '('))
		i--;
	if (i == from)
		return from;
	while (i && (isalnum((unsigned char)line[i - 1]) || line[i - 1] == '-') && from - i < 32)
		i--;
	return isalpha((unsigned char)line[i]) ? i : from;
}

static void take_phase(const char *name, size_t len, double v, struct found *f)
{
	int k = phase_find(name, len);

	if (k < 0 || !(v >= 0.0) || isinf(v))
		return;
	f->phases.s[k] = v;
	f->phases.told |= 1u << k;
}

static void take_text(const struct output_reader *r, const char *line, size_t from, size_t to, bool joined,
		      double v, double of, bool sign, bool fraction, struct found *f)
{
	const char *name = line + from;
	size_t len = to - from, whole;
	int rank = 0;

	if (r->has_regex)
		;
	else if (r->accuracy_name)
		rank = len == strlen(r->accuracy_name) && !memcmp(name, r->accuracy_name, len) ? OUTPUT_NAMED
											       : 0;
	else if (joined || fraction || sign || of > 0.0) { /* "accuracy 3" may be anything */
		whole = with_word_before(line, from);
		rank = output_accuracy_rank(line + whole, to - whole);
	}
	if (rank && of > 0.0) {
		rank = v <= of ? rank : 0;
		v /= of;
	}
	if (rank && rank >= f->rank) {
		f->accuracy = v;
		f->percent_sign = sign;
		f->rank = rank;
		f->name = name;
		f->name_len = len;
	}
	whole = with_word_before(line, from);
	if (r->has_epoch_regex)
		;
	else if (r->epoch_name ? len == strlen(r->epoch_name) && !memcmp(name, r->epoch_name, len)
			       : output_is_epoch(line + whole, to - whole, name, len)) {
		f->epoch = v >= 0.0 ? v : f->epoch;
		f->epochs = v >= 0.0 && of > 0.0 ? of : f->epochs;
		f->begins |= output_is_training(line + whole, to - whole);
		return;
	}
	f->more |= joined || fraction;
	if (output_is_loss(name, len))
		f->loss = v;
	if (joined)
		take_phase(name, len, v, f);
}

static bool only_blanks(const char *s, size_t len)
{
	while (len && (s[len - 1] == ' ' || s[len - 1] == '\t'))
		len--;
	return !len;
}

/* A count, `at` to `end` of the line, with nothing that names it: "[3/14]"; "21%|##   | 3/14 [00:30<01:50";
 * or "844/1875 [==>..." at the start of a line. */
static void take_count(const char *line, size_t len, size_t at, size_t end, double v, double of,
		       struct found *f)
{
	size_t i = at;
	bool brackets, bar, first;

	while (i && line[i - 1] == ' ')
		i--;
	brackets = i && line[i - 1] == '[' && end < len && line[end] == ']';
	bar = i && line[i - 1] == '|' && memmem(line, i, "%|", 2);
	first = only_blanks(line, i) && end + 1 < len && line[end] == ' ' && line[end + 1] == '[';
	f->part |= (bar || first) && v < of;
	f->begins |= bar || (first && v < of);
	if ((brackets || bar) && v >= 0.0 && v <= of && v == floor(v) && of == floor(of)) {
		f->count = v;
		f->counted = of;
	}
}

static void look_at_text(const struct output_reader *r, const char *line, size_t len, struct found *f)
{
	for (size_t i = 0; i < len;) {
		double v, of = 0.0;
		size_t n, from, to, end;
		bool joined, sign, fraction;

		if (!(isdigit((unsigned char)line[i]) || ((line[i] == '.' || line[i] == '-') && i + 1 < len &&
							  isdigit((unsigned char)line[i + 1]))) ||
		    (i &&
		     (isalnum((unsigned char)line[i - 1]) || line[i - 1] == '_' || line[i - 1] == '@')) ||
		    !(n = number_at(line + i, len - i, &v))) {
			i++;
			continue;
		}
		fraction = memchr(line + i, '.', n) != NULL;
		end = i + n;
		if (end + 1 < len && line[end] == '/' && isdigit((unsigned char)line[end + 1]))
			end += 1 + number_at(line + end + 1, len - end - 1, &of);
		sign = end < len &&
		       (line[end] == '%' || (line[end] == ' ' && end + 1 < len && line[end + 1] == '%'));
		if (!(end < len && isalpha((unsigned char)line[end])) &&
		    name_before(line, i, &from, &to, &joined))
			take_text(r, line, from, to, joined, v, of, sign, fraction, f);
		else if (of > 0.0)
			take_count(line, len, i, end, v, of, f);
		i = end > i ? end : i + 1;
	}
}

/* ---- JSON ---- */

static void look_at_json(const struct output_reader *r, const struct json *v, struct found *f)
{
	f->epoch = json_number(json_path(v, r->epoch_name ? r->epoch_name : "epoch"), NAN);
	f->loss = json_number(json_get(v, "loss"), NAN);
	f->elapsed_s = json_number(json_get(v, "elapsed_s"), NAN);
	f->asks = json_bool(json_get(v, "asks"), false);
	f->batch = f->asks ? json_number(json_get(v, "batch"), NAN) : NAN;
	f->more = true;
	f->json = true;
	for (size_t k = 0; k < N_PHASES; k++)
		take_phase(phase_name[k], strlen(phase_name[k]), json_number(json_get(v, phase_name[k]), NAN),
			   f);
	if (r->accuracy_name && !r->has_regex) {
		f->accuracy = json_number(json_path(v, r->accuracy_name), NAN);
		f->rank = isnan(f->accuracy) ? 0 : OUTPUT_NAMED;
		return;
	}
	for (const struct json *m = json_first(v); m && !r->has_regex; m = json_next(m)) {
		int rank = json_type(m) == JSON_NUMBER
				   ? output_accuracy_rank(json_key(m), strlen(json_key(m)))
				   : 0;

		if (rank > f->rank) {
			f->rank = rank;
			f->accuracy = json_number(m, NAN);
			f->name = json_key(m);
			f->name_len = strlen(f->name);
		}
	}
}

/* ---- what a line means after those before it ---- */

static void remember_where(struct output_reader *r, const struct found *f)
{
	char name[OUTPUT_MAX_NAME + 1];

	if (r->has_regex)
		snprintf(name, sizeof name, "the regular expression");
	else if (r->accuracy_name)
		snprintf(name, sizeof name, "%s", r->accuracy_name);
	else
		snprintf(name, sizeof name, "%.*s",
			 (int)(f->name_len < OUTPUT_MAX_NAME ? f->name_len : OUTPUT_MAX_NAME), f->name);
	snprintf(r->found, sizeof r->found, "%s%.*s", f->json && !r->has_regex ? "JSON " : "",
		 OUTPUT_MAX_NAME, name);
}

/* A share of 1. */
static double scaled(struct output_reader *r, double v, bool sign)
{
	if (r->scale == OUTPUT_SMALLER)
		return v >= 0.0 ? 1.0 / (1.0 + v) : NAN;
	if (sign || r->scale == OUTPUT_PERCENT)
		return v / 100.0;
	if (r->scale == OUTPUT_AUTO && v > 1.0 && v <= 100.0)
		r->percent = true;
	return r->percent && v >= 0.0 && v <= 100.0 ? v / 100.0 : v;
}

/* Is a count one of epochs? Batches are counted in the same way. It is where a line says its accuracy with it
 * and no epoch was ever named, and where there are as many epochs as it counts. */
static bool counts_epochs(const struct output_reader *r, const struct found *f)
{
	if (isnan(f->count) || r->named || r->has_epoch_regex || r->epoch_name || f->json)
		return false;
	return isnan(r->epochs) ? f->rank && !f->part : f->counted == r->epochs;
}

/* "Epoch 3/10" alone announces the third; its accuracy, or the next announcement, ends it. */
static double epoch_that_ended(struct output_reader *r, const struct found *f)
{
	double epoch = f->epoch;

	if (!isnan(f->epochs))
		r->told = f->epochs;
	r->named |= !isnan(epoch);
	if (isnan(epoch) && counts_epochs(r, f)) {
		r->told = f->counted;
		return f->count > 0.0 ? f->count : NAN;
	}

	if (f->json || r->has_epoch_regex)
		return epoch;
	if (!isnan(epoch)) {
		if (isnan(r->from))
			r->from = epoch == 0.0 ? 0.0 : 1.0;
		epoch += 1.0 - r->from;
		if (!f->part && (f->rank || (f->more && !f->begins))) {
			r->announced = NAN;
			return epoch;
		}
		r->announced = epoch;
		return epoch > 1.0 ? epoch - 1.0 : NAN;
	}
	if (f->rank && !f->part && !isnan(r->announced)) {
		epoch = r->announced;
		r->announced = NAN;
	}
	return epoch;
}

static void look(const struct output_reader *r, const char *line, size_t len, struct found *f)
{
	struct json *v;
	bool unused;

	*f = (struct found){ .accuracy = NAN,
			     .epoch = NAN,
			     .loss = NAN,
			     .elapsed_s = NAN,
			     .epochs = NAN,
			     .batch = NAN,
			     .count = NAN };
	if (len && (line[0] == '{' || line[0] == '[') && !json_parse("line", line, len, &v, NULL)) {
		look_at_json(r, v, f);
		if (f->name) /* it is in the tree, and in the line as well */
			f->name = memmem(line, len, f->name, f->name_len);
		if (!f->name)
			f->name_len = 0;
		json_free(v);
	} else {
		look_at_text(r, line, len, f); /* a sentence may start with a brace or a bracket, too */
	}
	if (r->has_regex && last_match(&r->regex, line, len, &f->accuracy, &f->percent_sign))
		f->rank = OUTPUT_NAMED;
	if (r->has_epoch_regex && !last_match(&r->epoch_regex, line, len, &f->epoch, &unused))
		f->epoch = NAN;
}

static void take_phases(struct output_reader *r, const struct output_phases *p, bool of_epoch)
{
	for (size_t k = 0; k < N_PHASES; k++) {
		if (p->told & 1u << k)
			r->phases.s[k] = p->s[k] + (of_epoch ? r->phases.s[k] : 0.0);
	}
	r->phases.told |= p->told;
}

/* Without the colours of a terminal, ESC [ ... letter; a longer line is left as it is. */
static size_t plain(const char *line, size_t len, char *out, size_t size)
{
	size_t n = 0;

	if (len > size)
		return 0;
	for (size_t i = 0; i < len; i++) {
		if (line[i] != '\033') {
			out[n++] = line[i];
			continue;
		}
		if (i + 1 < len && line[i + 1] == '[')
			i++;
		while (i + 1 < len && strchr("0123456789;?", line[i + 1]))
			i++;
		i += i + 1 < len;
	}
	return n;
}

/* One line without carriage returns in it. */
static void take(struct output_reader *r, const char *line, size_t len, struct output_point *out)
{
	char text[OUTPUT_MAX_REGEX_LINE];
	double epoch;
	struct found f;

	if (memchr(line, '\033', len) && len <= sizeof text) {
		len = plain(line, len, text, sizeof text);
		line = text;
	}

	look(r, line, len, &f);
	epoch = epoch_that_ended(r, &f);
	if (f.rank && isfinite(f.accuracy) && f.rank >= r->rank) {
		r->accuracy = out->accuracy = scaled(r, f.accuracy, f.percent_sign);
		if (f.rank > r->rank)
			remember_where(r, &f);
		r->rank = f.rank;
	}
	take_phases(r, &f.phases, isfinite(epoch) && !(epoch <= r->epoch));
	if (isfinite(epoch) && !(epoch <= r->epoch)) { /* true for the first, when there is none before */
		r->epoch = out->epoch = epoch;
		out->elapsed_s = f.elapsed_s;
		out->loss = f.loss;
		out->asks = f.asks;
		out->batch = f.batch;
	}
}

bool output_reader_line(struct output_reader *r, const char *line, size_t len, struct output_point *out)
{
	*out = (struct output_point){
		.accuracy = NAN, .epoch = NAN, .loss = NAN, .elapsed_s = NAN, .batch = NAN
	};
	while (len) { /* a progress bar writes over itself */
		const char *end = memchr(line, '\r', len);
		size_t n = end ? (size_t)(end - line) : len;

		if (n)
			take(r, line, n, out);
		line += n + (end != NULL);
		len -= n + (end != NULL);
	}
	return !isnan(out->accuracy) || !isnan(out->epoch);
}

/* ---- a reader ---- */

int output_reader_init(struct output_reader *r, const struct output_spec *s, struct err *err)
{
	static const struct output_spec usual;
	int rc = 0;

	s = s ? s : &usual;
	*r = (struct output_reader){ .scale = s->scale,
				     .accuracy = NAN,
				     .epoch = NAN,
				     .announced = NAN,
				     .from = NAN,
				     .epochs = NAN,
				     .told = NAN };
	r->accuracy_name = s->accuracy ? mem_strdup(s->accuracy) : NULL;
	r->epoch_name = s->epoch ? mem_strdup(s->epoch) : NULL;
	if (!r->accuracy_name != !s->accuracy || !r->epoch_name != !s->epoch)
		rc = err_nomem(err, "a reader of output");
	if (!rc && s->regex) {
		rc = compile(s->regex, &r->regex, err);
		r->has_regex = !rc;
	}
	if (!rc && s->epoch_regex) {
		rc = compile(s->epoch_regex, &r->epoch_regex, err);
		r->has_epoch_regex = !rc;
	}
	if (rc)
		output_reader_release(r);
	return rc;
}

void output_reader_release(struct output_reader *r)
{
	if (!r)
		return;
	if (r->has_regex)
		regfree(&r->regex);
	if (r->has_epoch_regex)
		regfree(&r->epoch_regex);
	free(r->accuracy_name);
	free(r->epoch_name);
	*r = (struct output_reader){ 0 };
}
