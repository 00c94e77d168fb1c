/* `postrider model diff`: each model becomes a list of facts, and the lists are compared name by name. See
 * views.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/cli/model/views.h"

struct fact {
	char *name, *text;
	double number; /* NaN: `text` says it */
};

struct facts {
	struct fact *fact;
	size_t n, cap;
	bool failed;
};

static void facts_release(struct facts *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->fact[i].name);
		free(f->fact[i].text);
	}
	free(f->fact);
}

static void fact_add(struct facts *f, const char *group, const char *name, double number, const char *text)
{
	void *all = f->fact;
	struct strbuf full = { 0 };
	struct fact one = { .number = number };
	char buf[32];

	strbuf_printf(&full, "%s%s%s", group, *group ? "." : "", name);
	one.name = mem_strdup(strbuf_text(&full));
	one.text = mem_strdup(text ? text : isnan(number) ? "-" : text_shortest(number, buf));
	if (full.failed || !one.name || !one.text || mem_grow(&all, &f->cap, f->n + 1, sizeof one)) {
		free(one.name);
		free(one.text);
		f->failed = true;
	} else {
		f->fact = all;
		f->fact[f->n++] = one;
	}
	strbuf_release(&full);
}

static void facts_of_target(struct facts *f, const char *group, const struct model_target *t)
{
	const struct settings *s = &t->predictor.settings;
	const struct score *score = cli_score(&t->score);

	if (!t->predictor.ops) {
		fact_add(f, group, "model", NAN, "none");
		return;
	}
	fact_add(f, group, "model", NAN, t->predictor.ops->name);
	for (size_t i = 0; s->spec[i].name; i++) {
		struct settings one;
		char text[128], name[96];

		/* settings_describe() knows words and numbers, but leaves out what is the default. */
		settings_init(&one, s->spec);
		one.value[i] = s->value[i];
		settings_describe(&one, text, sizeof text);
		snprintf(name, sizeof name, "set.%s", s->spec[i].name);
		fact_add(f, group, name, NAN, text[0] ? strchr(text, '=') + 1 : "default");
	}
	fact_add(f, group, "rows", (double)t->n_rows, NULL);
	fact_add(f, group, "mse", score->mse, NULL);
	fact_add(f, group, "r2", score->r2, NULL);
	fact_add(f, group, "mape", score->mape, NULL);
	fact_add(f, group, "mae", score->mae, NULL);
	fact_add(f, group, "scored_by", NAN, t->scored_by);
	fact_add(f, group, "residuals", (double)t->conformal.n, NULL);
	fact_add(f, group, "residuals_from", NAN, t->residuals_by);
}

static void facts_of(struct facts *f, const struct model *m)
{
	struct strbuf text = { 0 };
	struct json_writer w;
	char buf[32];

	fact_add(f, "", "program", NAN, m->program);
	fact_add(f, "", "created", NAN, m->created);
	fact_add(f, "", "seed", (double)m->seed, NULL);
	fact_add(f, "data", "name", NAN, m->data_name);
	fact_add(f, "data", "rows", (double)m->data_rows, NULL);
	snprintf(buf, sizeof buf, "%016llx", (unsigned long long)m->data_fingerprint);
	fact_add(f, "data", "fingerprint", NAN, buf);
	for (size_t i = 0; i < m->n_candidates; i++)
		strbuf_printf(&text, "%s%s", i ? "," : "", text_shortest(m->candidate[i], buf));
	fact_add(f, "", "candidates", NAN, strbuf_text(&text));
	facts_of_target(f, "time", &m->time);
	facts_of_target(f, "accuracy", &m->accuracy);
	for (size_t i = 0; i < m->features->n; i++) {
		const struct feature *k = &m->features->feature[i];
		char a[32], b[32], range[512];

		if (k->category && k->category_zero)
			snprintf(range, sizeof range, "%.200s = 1, %.200s = 0", k->category,
				 k->category_zero);
		else if (feature_is_category(k))
			snprintf(range, sizeof range, "%.200s", k->category ? k->category : k->category_zero);
		else
			snprintf(range, sizeof range, "%s to %s", text_shortest(k->min, a),
				 text_shortest(k->max, b));
		fact_add(f, "feature", k->name, NAN, range);
	}
	strbuf_reset(&text);
	json_begin(&w, &text, false);
	schema_to_json(m->schema, &w);
	fact_add(f, "", "schema", NAN, strbuf_text(&text));
	f->failed |= text.failed;
	strbuf_release(&text);
}

/* Settings at their defaults say nothing beside a model that does not have them. */
static bool worth_telling(const struct fact *f)
{
	return !strstr(f->name, ".set.") || strcmp(f->text, "default");
}

static const struct fact *fact_find(const struct facts *f, const char *name)
{
	for (size_t i = 0; i < f->n; i++) {
		if (!strcmp(f->fact[i].name, name))
			return &f->fact[i];
	}
	return NULL;
}

static void json_fact(struct json_writer *w, const char *key, const struct fact *f)
{
	json_put_key(w, key);
	if (!f)
		json_put_null(w);
	else if (isnan(f->number))
		json_put_string(w, f->text);
	else
		json_put_number(w, f->number);
}

static void add_difference(const struct cli *c, struct json_writer *w, struct cli_table *t, const char *name,
			   const struct fact *a, const struct fact *b)
{
	char x[32];
	const struct fact *one[2] = { a, b };

	if (c->json) {
		json_open(w, '{');
		json_kv_string(w, "what", name);
		json_fact(w, "a", a);
		json_fact(w, "b", b);
		json_close(w, '}');
		return;
	}
	cli_table_add(t, "%s", name);
	for (int i = 0; i < 2; i++) {
		if (!strcmp(name, "schema")) /* a page of JSON each: model show has it */
			cli_table_add(t, "%s", i ? "(another one)" : "(one)");
		else if (one[i] && !isnan(one[i]->number) && one[i]->number != floor(one[i]->number))
			cli_table_add(t, "%s", cli_number(one[i]->number, x));
		else
			cli_table_add(t, "%s", one[i] ? one[i]->text : "-");
	}
}

int model_diff(const struct cli *c, struct strbuf *out, struct err *err)
{
	struct model *a = NULL, *b = NULL;
	struct facts fa = { 0 }, fb = { 0 };
	struct json_writer w;
	struct cli_table t = { 0 };
	size_t n = 0;
	int rc = cli_model_open(c->arg[1], &a, err);

	if (!rc)
		rc = cli_model_open(c->arg[2], &b, err);
	if (rc)
		goto out;
	facts_of(&fa, a);
	facts_of(&fb, b);
	json_begin(&w, out, true);
	cli_table_init(&t, "lll");
	if (c->json) {
		json_open(&w, '{');
		json_kv_string(&w, "a", c->arg[1]);
		json_kv_string(&w, "b", c->arg[2]);
		json_kv_open(&w, "differences", '[');
	}
	cli_table_add(&t, "what");
	cli_table_add(&t, "%s", c->arg[1]);
	cli_table_add(&t, "%s", c->arg[2]);
	for (size_t i = 0; i < fa.n; i++) {
		const struct fact *other = fact_find(&fb, fa.fact[i].name);

		if (other ? !strcmp(other->text, fa.fact[i].text) : !worth_telling(&fa.fact[i]))
			continue;
		add_difference(c, &w, &t, fa.fact[i].name, &fa.fact[i], other);
		n++;
	}
	for (size_t i = 0; i < fb.n; i++) {
		if (fact_find(&fa, fb.fact[i].name) || !worth_telling(&fb.fact[i]))
			continue;
		add_difference(c, &w, &t, fb.fact[i].name, NULL, &fb.fact[i]);
		n++;
	}
	if (c->json) {
		json_close(&w, ']');
		json_kv_bool(&w, "same", n == 0);
		json_close(&w, '}');
		strbuf_puts(out, "\n");
	} else if (n) {
		cli_table_print(&t, out, cli_colour(c));
	} else {
		strbuf_puts(out, "no difference in settings, scores, data or features\n");
	}
	if (fa.failed || fb.failed)
		rc = err_nomem(err, NULL);
out:
	cli_table_release(&t);
	facts_release(&fa);
	facts_release(&fb);
	model_free(a);
	model_free(b);
	return rc;
}
