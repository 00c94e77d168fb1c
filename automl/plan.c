/* The grid of a technique: values and priors of each hyper-parameter, and their combinations. See plan.h. */
#include "automl/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/text/text.h"

void plan_release(struct plan *p)
{
	for (size_t i = 0; i < p->n_axes; i++) {
		free(p->axis[i].prior);
		literal_release(&p->axis[i].own);
	}
}

/* True if the choice is a prior, whose `high` is not NaN then. */
static bool has_prior(const struct axis *a, size_t choice)
{
	return a->prior && !isnan(a->prior[choice].high);
}

struct place { /* that is being read */
	const struct ini *ini;
	const struct ini_section *s;
	const struct ini_key *k; /* NULL: the default */
	bool tune;
};

static int read_choice(const struct place *at, struct axis *a, size_t i, struct settings *scratch,
		       struct err *err)
{
	const struct literal *v = &a->choice[i];
	struct err e = { 0 };
	int rc;

	a->prior[i].high = NAN;
	if (v->kind == LITERAL_STRING && prior_is(v->text)) {
		rc = prior_parse(v->text, &a->prior[i], &e);
		if (!rc && !at->tune)
			rc = err_fail(&e, ERR_ARG,
				      "'%.60s' is a prior; it needs hyperparameter_tuning = Hyperopt in "
				      "[General]",
				      v->text);
	} else {
		rc = technique_set(a->key, v, scratch, &e);
	}
	return rc ? ini_fail(at->ini, at->s, at->k, err, "%s", e.text) : 0;
}

static int read_axis(const struct place *at, struct plan *p, const struct technique_key *key, struct err *err)
{
	const struct ini_key *k = at->k;
	struct axis *a = &p->axis[p->n_axes];
	struct settings scratch;
	int rc = 0;

	*a = (struct axis){ .key = key };
	p->n_axes++;
	if (!k) {
		rc = literal_parse(key->otherwise, &a->own, err);
		a->choice = &a->own;
		a->n = 1;
		return rc;
	}
	if (k->why[0])
		return ini_fail(at->ini, at->s, k, err, "this is not a Python literal: %s", k->why);
	a->choice = k->value.kind == LITERAL_LIST ? k->value.item
						  : &k->value; /* one value needs no brackets */
	a->n = k->value.kind == LITERAL_LIST ? k->value.n : 1;
	if (!a->n)
		return ini_fail(at->ini, at->s, k, err, "the list of values is empty");
	a->prior = mem_calloc(a->n, sizeof *a->prior);
	if (!a->prior)
		return err_nomem(err, "%zu values", a->n);
	settings_init(&scratch, p->technique->ops->spec);
	for (size_t i = 0; i < a->n && !rc; i++)
		rc = read_choice(at, a, i, &scratch, err);
	return rc;
}

int plan_read(const struct ini *ini, bool tune, struct plan *p, struct err *err)
{
	const struct ini_section *s = ini_section(ini, p->technique->name);
	struct place at = { .ini = ini, .s = s, .tune = tune };
	int rc = 0;

	p->n_points = 1;
	for (size_t i = 0; s && i < s->n && !rc;
	     i++) { /* in the order of the file: the first varies slowest */
		const struct technique_key *key = technique_key(p->technique, s->key[i].name);

		if (!key)
			continue; /* passed over by a lenient reader */
		at.k = &s->key[i];
		rc = read_axis(&at, p, key, err);
		if (!rc && p->axis[p->n_axes - 1].n > CAMPAIGN_MAX_POINTS / p->n_points)
			rc = ini_fail(ini, s, &s->key[i], err, "the grid has more than %d points",
				      CAMPAIGN_MAX_POINTS);
		if (!rc)
			p->n_points *= p->axis[p->n_axes - 1].n;
	}
	at.k = NULL;
	for (const struct technique_key *k = p->technique->key; k->name && !rc; k++)
		if (!ini_key(s, k->name))
			rc = read_axis(&at, p, k, err);
	return rc;
}

void plan_choices(const struct plan *p, size_t point, size_t *out)
{
	for (size_t i = p->n_axes; i-- > 0;) {
		out[i] = point % p->axis[i].n;
		point /= p->axis[i].n;
	}
}

size_t plan_n_priors(const struct plan *p, size_t point)
{
	size_t choice[CAMPAIGN_MAX_AXES], n = 0;

	plan_choices(p, point, choice);
	for (size_t i = 0; i < p->n_axes; i++)
		n += has_prior(&p->axis[i], choice[i]);
	return n;
}

/* A value that was tuned, as a literal: whole where the prior has whole quanta. */
static struct literal tuned_literal(const struct prior *p, double v)
{
	bool whole = p->quantum > 0.0 && p->quantum == floor(p->quantum) && v == floor(v);

	return (struct literal){ .kind = whole ? LITERAL_INT : LITERAL_FLOAT, .number = v };
}

int plan_settings(const struct plan *p, size_t point, const double *tuned, struct settings *out,
		  struct err *err)
{
	size_t choice[CAMPAIGN_MAX_AXES], n = 0;
	int rc = 0;

	plan_choices(p, point, choice);
	settings_init(out, p->technique->ops->spec);
	for (size_t i = 0; i < p->n_axes && !rc; i++) {
		const struct axis *a = &p->axis[i];

		if (has_prior(a, choice[i])) {
			struct literal v = tuned_literal(&a->prior[choice[i]], tuned[n++]);

			rc = technique_set(a->key, &v, out, err);
		} else {
			rc = technique_set(a->key, &a->choice[choice[i]], out, err);
		}
		if (rc)
			err_prefix(err, "%s", a->key->name);
	}
	return rc;
}

void plan_point_json(const struct plan *p, size_t point, const double *tuned, struct json_writer *w)
{
	size_t choice[CAMPAIGN_MAX_AXES], n = 0;

	plan_choices(p, point, choice);
	json_open(w, '{');
	for (size_t i = 0; i < p->n_axes; i++) {
		const struct axis *a = &p->axis[i];

		json_put_key(w, a->key->name);
		if (has_prior(a, choice[i]) && tuned)
			json_put_number(w, tuned[n++]);
		else
			literal_to_json(&a->choice[choice[i]], w);
	}
	json_close(w, '}');
}

void plan_point_text(const struct plan *p, size_t point, const double *tuned, struct strbuf *out)
{
	size_t choice[CAMPAIGN_MAX_AXES], n = 0;
	const char *blank = "";
	char number[32];

	plan_choices(p, point, choice);
	for (size_t i = 0; i < p->n_axes; i++) {
		const struct axis *a = &p->axis[i];
		const struct literal *v = &a->choice[choice[i]];

		if (!a->prior) /* a default */
			continue;
		strbuf_printf(out, "%s%s=", blank, a->key->name);
		blank = " ";
		if (has_prior(a, choice[i]) && tuned) {
			snprintf(number, sizeof number, "%.4g", tuned[n++]);
			strbuf_puts(out, number);
		} else if (v->kind == LITERAL_STRING) {
			strbuf_puts(out, v->text);
		} else {
			literal_write(v, out);
		}
	}
	if (!*blank)
		strbuf_puts(out, "defaults");
}
