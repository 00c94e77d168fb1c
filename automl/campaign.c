/* Reads campaigns: which keys there are, in which section, and what they may be. See campaign.h. The grids of
 * the techniques are in plan.c. */
#include "automl/campaign.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "automl/plan.h"

const char *const holdout_name[] = { "All", "HoldOut", "KFold", "Interpolation", "Extrapolation", NULL };

static const char *const general_keys[] = { "run_num",
					    "techniques",
					    "hp_selection",
					    "validation",
					    "y",
					    "seed",
					    "hold_out_ratio",
					    "folds",
					    "extrapolation_columns",
					    "interpolation_columns",
					    "hyperparameter_tuning",
					    "hyperopt_max_evals",
					    "hyperopt_save_interval",
					    "save_training_regressors",
					    "keras_backend",
					    "keras_use_cpu",
					    "details",
					    "debug",
					    "keep_temp",
					    "output",
					    NULL };
static const char *const preparation_keys[] = { "input_path",
						"rename_columns",
						"skip_rows",
						"use_columns",
						"skip_columns",
						"categorical_columns",
						"inverse",
						"log",
						"product_max_degree",
						"product_interactions_only",
						"selected_products",
						"ernest",
						"normalization",
						NULL };
static const char *const selection_keys[] = { "method", "max_features",      "min_features",
					      "folds",  "XGBoost_tolerance", NULL };
static const char *const postrider_keys[] = { "group_columns", "roles",          "decision",
					      "candidates",    "learning_curve", NULL };

static const struct {
	const char *name;
	const char *const *key;
} known_sections[] = {
	{ "General", general_keys },
	{ "DataPreparation", preparation_keys },
	{ "FeatureSelection", selection_keys },
	{ "Postrider", postrider_keys },
};
#define N_SECTIONS (sizeof known_sections / sizeof *known_sections)

struct reader_of_keys {
	struct campaign *c;
	const struct ini_section *section; /* NULL: the file has none of that name */
	struct err *err;
	int rc; /* of the first failure */
};

void campaign_notice(struct campaign *c, const char *fmt, ...)
{
	va_list ap;

	if (mem_grow((void **)&c->notice, &c->cap_notices, c->n_notices + 1, sizeof *c->notice))
		return; /* a notice that is lost does no harm */
	va_start(ap, fmt);
	vsnprintf(c->notice[c->n_notices++], sizeof *c->notice, fmt, ap);
	va_end(ap);
}

/* ---- unknown keys ---- */

/* The keys that a section may have; a technique's go into `room`. NULL: no such section. */
static const char *const *keys_of(const char *section, const char **room)
{
	const struct technique *t = technique_find(section);
	size_t n = 0;

	for (size_t i = 0; i < N_SECTIONS; i++)
		if (!strcmp(known_sections[i].name, section))
			return known_sections[i].key;
	if (!t)
		return NULL;
	for (const struct technique_key *k = t->key; k->name; k++)
		room[n++] = k->name;
	room[n] = NULL;
	return room;
}

static bool listed(const char *name, const char *const *list)
{
	while (*list && strcmp(*list, name))
		list++;
	return *list;
}

/* Where a key that has no meaning here has one; NULL: nowhere. Techniques come last: many share a name. */
static const char *right_place(const char *key)
{
	const char *room[CAMPAIGN_MAX_AXES + 1];

	for (size_t i = 0; i < N_SECTIONS; i++)
		if (listed(key, known_sections[i].key))
			return known_sections[i].name;
	for (const struct technique *t = technique_all; t->name; t++)
		if (listed(key, keys_of(t->name, room)))
			return t->name;
	return NULL;
}

static int complain_key(struct campaign *c, const struct ini_section *s, const struct ini_key *k,
			bool lenient, const char *const *known, struct err *err)
{
	const char *place = right_place(k->name);
	char hint[TEXT_HINT] = "", reason[160];
	struct err e = { 0 };

	if (place)
		snprintf(reason, sizeof reason, "this key belongs in [%s]", place);
	else
		snprintf(reason, sizeof reason, "there is no such key%s", text_hint(k->name, known, hint));
	ini_fail(c->ini, s, k, &e, "%s", reason);
	if (lenient || place) {
		campaign_notice(c, "%.200s; passed over", e.text);
		return 0;
	}
	return err_fail(err, ERR_FORMAT, "%s", e.text);
}

static int check_names(struct campaign *c, bool lenient, struct err *err)
{
	const char *room[CAMPAIGN_MAX_AXES + 1], *all[64];
	char hint[TEXT_HINT];
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; i < N_SECTIONS; i++)
		all[n++] = known_sections[i].name;
	for (const struct technique *t = technique_all; t->name; t++)
		all[n++] = t->name;
	all[n] = NULL;
	for (size_t i = 0; i < c->ini->n && !rc; i++) {
		const struct ini_section *s = &c->ini->section[i];
		const char *const *known = keys_of(s->name, room);

		if (!known && lenient)
			campaign_notice(c, "line %u: there is no section [%.60s]; passed over", s->line,
					s->name);
		else if (!known)
			rc = ini_fail(c->ini, s, NULL, err, "there is no such section%s",
				      text_hint(s->name, all, hint));
		for (size_t k = 0; known && k < s->n && !rc; k++)
			if (!listed(s->key[k].name, known))
				rc = complain_key(c, s, &s->key[k], lenient, known, err);
	}
	return rc;
}

/* ---- values ---- */

__attribute__((format(printf, 3, 4))) static void bad(struct reader_of_keys *r, const struct ini_key *k,
						      const char *fmt, ...)
{
	struct strbuf shown = { 0 };
	char need[160];
	va_list ap;

	if (r->rc)
		return;
	va_start(ap, fmt);
	vsnprintf(need, sizeof need, fmt, ap);
	va_end(ap);
	literal_write(&k->value, &shown);
	if (k->why[0])
		r->rc = ini_fail(r->c->ini, r->section, k, r->err, "this is not a Python literal: %s",
				 k->why);
	else
		r->rc = ini_fail(r->c->ini, r->section, k, r->err, "is %.60s; it must be %s",
				 strbuf_text(&shown), need);
	strbuf_release(&shown);
}

/* NULL: not given, or given as None. */
static const struct ini_key *given(const struct reader_of_keys *r, const char *name)
{
	const struct ini_key *k = ini_key(r->section, name);

	return k && k->value.kind != LITERAL_NONE ? k : NULL;
}

static bool need(struct reader_of_keys *r, const char *section, const char *name, const char *because)
{
	if (given(r, name))
		return true;
	if (!r->rc)
		r->rc = r->section ? ini_fail(r->c->ini, r->section, NULL, r->err, "'%s' is not given%s",
					      name, because)
				   : ini_fail(r->c->ini, NULL, NULL, r->err,
					      " there is no section [%s], which gives '%s'%s", section, name,
					      because);
	return false;
}

static void read_text(struct reader_of_keys *r, const char *name, const char **out)
{
	const struct ini_key *k = given(r, name);

	if (k && (k->value.kind != LITERAL_STRING || !*k->value.text || k->why[0]))
		bad(r, k, "a string");
	else if (k)
		*out = k->value.text;
}

static void read_bool(struct reader_of_keys *r, const char *name, bool *out)
{
	const struct ini_key *k = given(r, name);

	if (k && k->value.kind != LITERAL_BOOL &&
	    !(literal_is_number(&k->value) && (k->value.number == 0.0 || k->value.number == 1.0)))
		bad(r, k, "True or False");
	else if (k)
		*out = k->value.number != 0.0;
}

static void read_whole(struct reader_of_keys *r, const char *name, double low, double high, size_t *out)
{
	const struct ini_key *k = given(r, name);
	double v = k && literal_is_number(&k->value) ? k->value.number : NAN;

	if (k && !(v >= low && v <= high && v == floor(v)))
		bad(r, k, "a whole number from %.0f to %.0f", low, high);
	else if (k)
		*out = (size_t)v;
}

static void read_number(struct reader_of_keys *r, const char *name, double low, double high, double *out)
{
	const struct ini_key *k = given(r, name);
	double v = k && literal_is_number(&k->value) ? k->value.number : NAN;

	if (k && !(v > low && v <= high))
		bad(r, k, "a number above %g and at most %g", low, high);
	else if (k)
		*out = v;
}

/* A list of names. star: `[*]` is allowed, for all columns. */
static void read_names(struct reader_of_keys *r, const char *name, bool star, const struct literal **out)
{
	const struct ini_key *k = given(r, name);
	bool ok = k && !k->why[0];

	if (!k)
		return;
	if (star && (literal_is_text(&k->value, "[*]") || literal_is_text(&k->value, "*"))) {
		*out = &k->value;
		return;
	}
	ok = ok && k->value.kind == LITERAL_LIST;
	for (size_t i = 0; ok && i < k->value.n; i++)
		ok = k->value.item[i].kind == LITERAL_STRING && *k->value.item[i].text;
	if (!ok)
		bad(r, k, "a list of column names%s", star ? ", or [*] for all" : "");
	else if (k->value.n)
		*out = &k->value;
}

/* {column: value}: what the values may be is checked by `ok`. */
static void read_dict(struct reader_of_keys *r, const char *name, bool (*fits)(const struct literal *v),
		      const char *what, const struct literal **out)
{
	const struct ini_key *k = given(r, name);
	bool ok = k && k->value.kind == LITERAL_DICT;

	if (!k)
		return;
	for (size_t i = 0; ok && i + 1 < k->value.n; i += 2)
		ok = k->value.item[i].kind == LITERAL_STRING && fits(&k->value.item[i + 1]);
	if (!ok)
		bad(r, k, "a dictionary {column: %s}", what);
	else if (k->value.n)
		*out = &k->value;
}

static bool is_string(const struct literal *v)
{
	return v->kind == LITERAL_STRING;
}

static bool is_number(const struct literal *v)
{
	return literal_is_number(v);
}

static bool is_levels(const struct literal *v)
{
	bool ok = v->kind == LITERAL_LIST && v->n > 0;

	for (size_t i = 0; ok && i < v->n; i++)
		ok = literal_is_number(&v->item[i]);
	return ok || (v->kind == LITERAL_INT && v->number >= 1.0);
}

static void read_holdout(struct reader_of_keys *r, const char *name, size_t n_allowed, enum holdout *out)
{
	const struct ini_key *k = given(r, name);
	char hint[TEXT_HINT];

	if (!k || r->rc)
		return;
	for (size_t i = 0; i < n_allowed; i++) {
		if (literal_is_text(&k->value, holdout_name[i])) {
			*out = (enum holdout)i;
			return;
		}
	}
	for (size_t i = n_allowed; holdout_name[i]; i++) {
		if (literal_is_text(&k->value, holdout_name[i])) {
			r->rc = ini_fail(
				r->c->ini, r->section, k, r->err,
				"%s works for validation alone; here it must be All, HoldOut or KFold",
				holdout_name[i]);
			return;
		}
	}
	bad(r, k, "%s%s",
	    n_allowed > 3 ? "All, HoldOut, KFold, Interpolation or Extrapolation" : "All, HoldOut or KFold",
	    text_hint(k->value.text, holdout_name, hint));
}

/* ---- sections ---- */

static void read_techniques(struct reader_of_keys *r, const struct ini_key *k)
{
	struct campaign *c = r->c;

	if (k->value.kind != LITERAL_LIST || !k->value.n) {
		bad(r, k, "a list of techniques: %s", technique_names());
		return;
	}
	c->plan = mem_calloc(k->value.n, sizeof *c->plan);
	if (!c->plan) {
		r->rc = err_nomem(r->err, "%zu techniques", k->value.n);
		return;
	}
	for (size_t i = 0; i < k->value.n && !r->rc; i++) {
		const struct literal *v = &k->value.item[i];
		const struct technique *t = v->kind == LITERAL_STRING ? technique_find(v->text) : NULL;
		const char *all[64];
		char hint[TEXT_HINT] = "";
		size_t n = 0;

		for (const struct technique *a = technique_all; a->name; a++)
			all[n++] = a->name;
		all[n] = NULL;
		for (size_t j = 0; j < c->n_plans && t && !r->rc; j++)
			if (c->plan[j].technique == t)
				r->rc = ini_fail(c->ini, r->section, k, r->err, "%s appears twice", t->name);
		if (r->rc)
			return;
		if (!t)
			r->rc = ini_fail(c->ini, r->section, k, r->err,
					 "there is no technique %s%.60s%s%s; there are %s",
					 v->kind == LITERAL_STRING ? "'" : "",
					 v->kind == LITERAL_STRING ? v->text : literal_kind_name(v),
					 v->kind == LITERAL_STRING ? "'" : "",
					 v->kind == LITERAL_STRING ? text_hint(v->text, all, hint) : "",
					 technique_names());
		else
			c->plan[c->n_plans++].technique = t;
	}
}

static void read_general(struct reader_of_keys *r, bool predict)
{
	struct campaign *c = r->c;
	const char *tuning = NULL;
	size_t seed = 0;

	r->section = ini_section(c->ini, "General");
	if (!need(r, "General", "y", ""))
		return;
	read_text(r, "y", &c->y);
	if (predict)
		return;
	if (!need(r, "General", "techniques", "") || !need(r, "General", "hp_selection", "") ||
	    !need(r, "General", "validation", ""))
		return;
	read_techniques(r, given(r, "techniques"));
	read_holdout(r, "hp_selection", 3, &c->hp_selection);
	read_holdout(r, "validation", 5, &c->validation);
	read_whole(r, "run_num", 1, CAMPAIGN_MAX_RUNS, &c->runs);
	read_whole(r, "seed", 0, 9007199254740992.0, &seed);
	c->seed = seed;
	read_number(r, "hold_out_ratio", 0.0, 0.99, &c->hold_out_ratio);
	read_whole(r, "folds", 2, CAMPAIGN_MAX_FOLDS, &c->folds);
	read_dict(r, "extrapolation_columns", is_number, "bound", &c->extrapolation);
	read_dict(r, "interpolation_columns", is_levels, "[values], or a whole number", &c->interpolation);
	read_text(r, "hyperparameter_tuning", &tuning);
	c->tune = tuning && !strcasecmp(tuning, "Hyperopt");
	read_whole(r, "hyperopt_max_evals", 1, CAMPAIGN_MAX_EVALS, &c->max_evals);
	read_whole(r, "hyperopt_save_interval", 0, CAMPAIGN_MAX_EVALS, &c->save_interval);
	if ((c->hp_selection == HOLD_KFOLD || c->validation == HOLD_KFOLD) && !r->rc)
		need(r, "General", "folds", ", which KFold needs");
	if ((c->hp_selection == HOLD_OUT || c->validation == HOLD_OUT) && !r->rc)
		need(r, "General", "hold_out_ratio", ", which HoldOut needs");
	if (c->validation == HOLD_EXTRAPOLATION && !r->rc)
		need(r, "General", "extrapolation_columns", ", which Extrapolation needs");
	if (c->validation == HOLD_INTERPOLATION && !r->rc)
		need(r, "General", "interpolation_columns", ", which Interpolation needs");
	if (c->tune && !r->rc)
		need(r, "General", "hyperopt_max_evals", ", which Hyperopt needs");
}

static void read_degree(struct reader_of_keys *r)
{
	const struct ini_key *k = given(r, "product_max_degree");

	if (k && literal_is_text(&k->value, "inf"))
		r->c->product_max_degree = SIZE_MAX;
	else
		read_whole(r, "product_max_degree", 1, 1000, &r->c->product_max_degree);
}

static void read_preparation(struct reader_of_keys *r, bool predict)
{
	struct campaign *c = r->c;

	r->section = ini_section(c->ini, "DataPreparation");
	if (!need(r, "DataPreparation", "input_path", ""))
		return;
	read_text(r, "input_path", &c->input_path);
	if (predict)
		return;
	read_dict(r, "rename_columns", is_string, "new name", &c->rename);
	read_dict(r, "skip_rows", is_number, "bound", &c->skip_rows);
	read_names(r, "use_columns", false, &c->use_columns);
	read_names(r, "skip_columns", false, &c->skip_columns);
	read_names(r, "categorical_columns", false, &c->categorical);
	read_names(r, "inverse", true, &c->inverse);
	read_names(r, "log", true, &c->log);
	read_names(r, "selected_products", false, &c->selected_products);
	read_degree(r);
	read_bool(r, "product_interactions_only", &c->interactions_only);
	read_bool(r, "ernest", &c->ernest);
	read_bool(r, "normalization", &c->normalization);
	if (c->ernest && !r->rc) {
		static const char *const not_with[] = {
			"use_columns",        "skip_columns",      "inverse",       "log",
			"product_max_degree", "selected_products", "normalization", NULL
		};

		for (const char *const *n = not_with; *n && !r->rc; n++) {
			const struct ini_key *k = given(r, *n);

			if (k && !(k->value.kind == LITERAL_BOOL && k->value.number == 0.0))
				r->rc = ini_fail(
					c->ini, r->section, k, r->err,
					"ernest makes all features itself; this key cannot go with it");
		}
	}
}

static void read_selection(struct reader_of_keys *r)
{
	struct campaign *c = r->c;
	const char *method = NULL;

	r->section = ini_section(c->ini, "FeatureSelection");
	if (!r->section)
		return;
	read_text(r, "method", &method);
	read_whole(r, "max_features", 1, 100000, &c->max_features);
	read_whole(r, "min_features", 1, 100000, &c->min_features);
	read_whole(r, "folds", 2, CAMPAIGN_MAX_FOLDS, &c->selection_folds);
	read_number(r, "XGBoost_tolerance", 0.0, 1.0, &c->tolerance);
	if (!method || r->rc)
		return;
	if (!strcmp(method, "SFS"))
		c->selection = SELECT_SFS;
	else if (!strcmp(method, "XGBoost"))
		c->selection = SELECT_XGBOOST;
	else
		bad(r, given(r, "method"), "SFS or XGBoost");
	if (c->selection == SELECT_SFS && need(r, "FeatureSelection", "max_features", ", which SFS needs"))
		need(r, "FeatureSelection", "folds", ", which SFS needs");
	if (c->selection == SELECT_XGBOOST)
		need(r, "FeatureSelection", "XGBoost_tolerance", ", which XGBoost needs");
	if (!r->rc && c->max_features && c->min_features > c->max_features)
		bad(r, given(r, "min_features"), "at most max_features, %zu", c->max_features);
}

static void read_postrider(struct reader_of_keys *r)
{
	struct campaign *c = r->c;
	const struct ini_key *k;

	r->section = ini_section(c->ini, "Postrider");
	if (!r->section)
		return;
	read_names(r, "group_columns", false, &c->group_columns);
	read_dict(r, "roles", is_string, "role (batch, cpus, njobs, processes, epochs, samples)", &c->roles);
	read_text(r, "decision", &c->decision);
	read_bool(r, "learning_curve", &c->learning_curve);
	k = given(r, "candidates");
	for (size_t i = 0; k && k->value.kind == LITERAL_LIST && i < k->value.n; i++)
		if (!literal_is_number(&k->value.item[i]))
			bad(r, k, "a list of numbers");
	if (k && (k->value.kind != LITERAL_LIST || !k->value.n))
		bad(r, k, "a list of numbers");
	c->candidates = k ? &k->value : NULL;
}

/* The grid that selects features: the campaign's own section, or the reference's default. */
static int read_selector(struct campaign *c, struct err *err)
{
	static const char otherwise[] = "[XGBoost]\ngamma = [0, 1]\nlearning_rate = [0.01, 0.1]\n"
					"n_estimators = [50]\nmax_depth = [3]\nmin_child_weight = [1]\n";
	int rc = 0;

	c->selector.technique = technique_find("XGBoost");
	if (!ini_section(c->ini, "XGBoost"))
		rc = ini_parse("the default of FeatureSelection", otherwise, strlen(otherwise),
			       &c->selector_ini, err);
	return rc ? rc : plan_read(c->selector_ini ? c->selector_ini : c->ini, c->tune, &c->selector, err);
}

int campaign_of(struct ini *ini, const struct campaign_params *p, struct campaign **out, struct err *err)
{
	struct campaign *c = mem_calloc(1, sizeof *c);
	struct reader_of_keys r = { .c = c, .err = err };

	if (!c) {
		ini_free(ini);
		return err_nomem(err, "a campaign");
	}
	*c = (struct campaign){ .ini = ini, .runs = 1, .min_features = 1, .learning_curve = true };
	r.rc = check_names(c, p->lenient || p->predict, err);
	if (p->predict)
		c->n_notices = 0; /* a campaign may serve as it is; what else it says does not matter */
	if (!r.rc)
		read_general(&r, p->predict);
	if (!r.rc)
		read_preparation(&r, p->predict);
	if (!r.rc && !p->predict)
		read_selection(&r);
	if (!r.rc && !p->predict)
		read_postrider(&r);
	for (size_t i = 0; i < c->n_plans && !r.rc; i++)
		r.rc = plan_read(c->ini, c->tune, &c->plan[i], err);
	if (!r.rc && c->selection == SELECT_XGBOOST)
		r.rc = read_selector(c, err);
	if (r.rc) {
		campaign_free(c);
		return r.rc;
	}
	*out = c;
	return 0;
}

int campaign_read(const char *path, const struct campaign_params *p, struct campaign **out, struct err *err)
{
	struct ini *ini;
	int rc = ini_read_file(path, &ini, err);

	return rc ? rc : campaign_of(ini, p, out, err);
}

void campaign_free(struct campaign *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_plans; i++)
		plan_release(&c->plan[i]);
	free(c->plan);
	plan_release(&c->selector);
	ini_free(c->selector_ini);
	free(c->notice);
	ini_free(c->ini);
	free(c);
}
