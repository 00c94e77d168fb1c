/* Is a journal of this design? The canonical text of a design, its fingerprint, and what differs from an
 * earlier one in words. See design.h. */
#include "scheduler/profiler/design.h"

#include <stdio.h>
#include <string.h>

#include "common/text/template.h"
#include "common/text/text.h"
#include "common/text/hash.h"

static void kind_text(const struct profile_design *d, char *out, size_t size)
{
	if (d->kind == PROFILE_LHS)
		snprintf(out, size, "lhs:%zu", d->lhs_runs);
	else
		snprintf(out, size, "%s", d->kind == PROFILE_FULL ? "full" : "2k");
}

static void put_factors(struct json_writer *w, const char *key, const struct profile_factor *f, size_t n)
{
	json_kv_open(w, key, '{');
	for (size_t i = 0; i < n; i++) {
		json_kv_open(w, f[i].name, '[');
		for (size_t l = 0; l < f[i].n_levels; l++)
			json_put_string(w, f[i].level[l]);
		json_close(w, ']');
	}
	json_close(w, '}');
}

void profile_design_canonical(const struct profile_design *d, struct strbuf *out)
{
	struct json_writer w;
	char kind[32];

	kind_text(d, kind, sizeof kind);
	json_begin(&w, out, false);
	json_open(&w, '{');
	put_factors(&w, "factors", d->factor, d->n_factors);
	put_factors(&w, "fixed", d->fixed, d->n_fixed);
	json_kv_string(&w, "design", kind);
	json_kv_int(&w, "replications", (long long)d->replications);
	if (d->mixed) /* older journals do not have it */
		json_kv_int(&w, "mixed", (long long)d->mixed);
	json_kv_int(&w, "seed", (long long)d->seed);
	json_kv_open(&w, "command", '[');
	for (size_t i = 0; i < d->n_command; i++)
		json_put_string(&w, d->command[i]);
	json_close(&w, ']');
	json_kv_string(&w, "accuracy", d->result.accuracy);
	json_kv_string(&w, "epoch", d->result.epoch);
	json_kv_string(&w, "regex", d->result.regex);
	if (d->result.epoch_regex)
		json_kv_string(&w, "epoch_regex", d->result.epoch_regex);
	if (d->result.scale)
		json_kv_string(&w, "scale", output_scale_name[d->result.scale]);
	if (d->executor)
		json_kv_string(&w, "executor", d->executor);
	json_close(&w, '}');
}

uint64_t profile_design_fingerprint(const struct profile_design *d)
{
	struct strbuf text = { 0 };
	uint64_t h;

	profile_design_canonical(d, &text);
	h = hash_bytes(HASH_START, text.text, text.len);
	strbuf_release(&text);
	return h;
}

/* A value for a sentence: lists with commas between, the rest as it is. */
static void put_value(struct strbuf *out, const struct json *v)
{
	char number[32];

	switch (json_type(v)) {
	case JSON_STRING: strbuf_puts(out, json_string(v, "")); break;
	case JSON_NUMBER: strbuf_puts(out, text_shortest(json_number(v, 0.0), number)); break;
	case JSON_ARRAY:
		for (const struct json *e = json_first(v); e; e = json_next(e)) {
			put_value(out, e);
			strbuf_puts(out, json_next(e) ? "," : "");
		}
		break;
	default: strbuf_puts(out, "none"); break;
	}
}

static void put_change(struct strbuf *out, const char *what, const char *name, const struct json *before,
		       const struct json *now)
{
	struct strbuf a = { 0 }, b = { 0 };

	put_value(&a, before);
	put_value(&b, now);
	if (strcmp(strbuf_text(&a), strbuf_text(&b)) || !before != !now)
		strbuf_printf(out, "%s%s%s was %.100s and is %.100s", out->len ? "; " : "", what, name,
			      strbuf_text(&a), strbuf_text(&b));
	strbuf_release(&a);
	strbuf_release(&b);
}

/* A fixed value that the command does not use is a column of the table and no more. */
static bool only_a_column(const struct profile_design *d, const char *name)
{
	for (size_t i = 0; i < d->n_command; i++) {
		if (template_uses(d->command[i], name))
			return false;
	}
	return strcmp(name, "njobs") != 0;
}

static void put_factor_changes(struct strbuf *out, const struct profile_design *d, const char *what,
			       const struct json *before, const struct json *now)
{
	bool fixed = !*what;
	const struct json *a, *b;

	for (a = json_first(before); a; a = json_next(a)) {
		if (!fixed || !only_a_column(d, json_key(a)))
			put_change(out, what, json_key(a), a, json_get(now, json_key(a)));
	}
	for (b = json_first(now); b; b = json_next(b)) {
		if (!json_get(before, json_key(b)) && (!fixed || !only_a_column(d, json_key(b))))
			put_change(out, what, json_key(b), NULL, b);
	}
	if (fixed) /* their order says nothing */
		return;
	if (out->len)
		return;
	for (a = json_first(before), b = json_first(now); a && b; a = json_next(a), b = json_next(b)) {
		if (strcmp(json_key(a), json_key(b))) {
			strbuf_puts(out, "the order of the factors changed");
			return;
		}
	}
}

bool profile_design_differs(const struct profile_design *d, const struct json *earlier, char *out,
			    size_t size)
{
	static const char *const rest[] = { "design", "replications", "seed",  "command", "accuracy", "epoch",
					    "regex",  "epoch_regex",  "scale", "mixed",   "executor", NULL };
	struct strbuf text = { 0 }, change = { 0 };
	struct json *now = NULL;
	bool differs;

	profile_design_canonical(d, &text);
	if (json_parse("design", strbuf_text(&text), text.len, &now, NULL)) {
		snprintf(out, size, "out of memory for the comparison");
		strbuf_release(&text);
		return true;
	}
	put_factor_changes(&change, d, "factor ", json_get(earlier, "factors"), json_get(now, "factors"));
	put_factor_changes(&change, d, "", json_get(earlier, "fixed"), json_get(now, "fixed"));
	for (size_t i = 0; rest[i]; i++)
		put_change(&change, "", rest[i], json_get(earlier, rest[i]), json_get(now, rest[i]));
	differs = change.len > 0 || change.failed;
	snprintf(out, size, "%s", strbuf_text(&change));
	json_free(now);
	strbuf_release(&text);
	strbuf_release(&change);
	return differs;
}
