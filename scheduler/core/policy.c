/* The table of policies, and which model each accepts. */
#include "scheduler/core/policy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"
#include "scheduler/core/policy_baseline.h"

#define MAX_BATCH 1e12 /* of fixed:B */
#define CHANCE "chance="

static const struct policy courier = {
	.name = "courier",
	.title = "the paper's: forests as in its Table 7, the jobs that run as a feature, expected time",
	.predictor = "forest",
	.settings = "trees=2000,depth=6,criterion=absolute",
	.exact = true,
};

static const struct policy courier_tuned = {
	.name = "courier-tuned",
	.title = "the paper's, with the settings of the forest found by a search",
	.predictor = "forest",
	.exact = true,
};

static const struct policy postrider = {
	.name = "postrider",
	.title = "a queueing model times what it gets wrong, upper bounds, a look ahead",
	.predictor = "hybrid",
	.or_predictor = "gp",
	.bounds = true,
	.looks_ahead = true,
};

static const struct policy naive = {
	.name = "naive",
	.title = "a batch drawn at random, as in the paper's comparison",
	.admits_all = true,
	.choose = policy_choose_naive,
};

static const struct policy boost = {
	.name = "boost",
	.title = "gradient boosting as in the paper's Table 10, which knows nothing of the load",
	.predictor = "boost",
	.settings = "trees=50,depth=3,loss=absolute",
	.accuracy = "boost",
	.accuracy_settings = "trees=50,depth=3,loss=squared",
	.without_load = true,
	.exact = true,
};

static const struct policy boost_full = {
	.name = "boost-full",
	.title = "gradient boosting that knows the load",
	.predictor = "boost",
};

static const struct policy queueing = {
	.name = "queueing",
	.title = "the calibrated queueing model alone, expected time",
	.predictor = "queueing",
};

static const struct policy anova = {
	.name = "anova",
	.title = "a linear model with all products of factors, as in the paper's Table 4, expected time",
	.predictor = "linear",
	.settings = "degree=0",
};

static const struct policy fixed = {
	.name = "fixed",
	.title = "one batch for every job, or the nearest one it allows",
	.admits_all = true,
	.takes_batch = true,
	.choose = policy_choose_fixed,
};

const struct policy *const policy_all[] = { &courier,    &courier_tuned, &postrider, &naive, &boost,
					    &boost_full, &queueing,      &anova,     &fixed, NULL };
enum { N_POLICIES = sizeof policy_all / sizeof policy_all[0] - 1 };

const char *policy_names(void)
{
	static char text[256];
	size_t used = 0;

	/* Always the same text, so that two threads writing it at once do no harm. */
	for (size_t i = 0; policy_all[i] && used < sizeof text; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s", i ? ", " : "",
					 policy_all[i]->name, policy_all[i]->takes_batch ? ":B" : "");
	return text;
}

static int unknown(const char *text, size_t len, struct err *err)
{
	const char *known[N_POLICIES + 1] = { 0 };
	char name[64], shown[64], hint[TEXT_HINT];

	for (size_t i = 0; i < N_POLICIES; i++)
		known[i] = policy_all[i]->name;
	snprintf(name, sizeof name, "%.*s", (int)(len < sizeof name ? len : sizeof name - 1), text);
	return err_fail(err, ERR_ARG, "there is no policy '%s'%s; there are: %s",
			text_printable(name, shown, sizeof shown), text_hint(name, known, hint),
			policy_names());
}

int policy_parse(const char *text, struct policy_choice *out, struct err *err)
{
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : strlen(text);
	const struct policy *p = NULL;
	double batch = NAN, chance = 0.0;
	char shown[64];

	for (size_t i = 0; policy_all[i] && !p; i++)
		if (strlen(policy_all[i]->name) == len && !strncmp(policy_all[i]->name, text, len))
			p = policy_all[i];
	if (!p)
		return unknown(text, len, err);
	if (p->takes_batch && !colon)
		return err_fail(err, ERR_ARG, "policy %s: which batch? Write %s:128", p->name, p->name);
	if (colon && !p->takes_batch && !p->admits_all && !strncmp(colon + 1, CHANCE, strlen(CHANCE))) {
		if (!text_number(colon + 1 + strlen(CHANCE), &chance) || !(chance > 0.0 && chance < 1.0))
			return err_fail(err, ERR_ARG,
					"policy %s: the chance '%s' is not a number between 0 and 1", p->name,
					text_printable(colon + 1 + strlen(CHANCE), shown, sizeof shown));
	} else if (!p->takes_batch && colon) {
		return err_fail(err, ERR_ARG, "policy %s takes no argument%s, and there is '%s'", p->name,
				p->admits_all ? "" : " but chance=C",
				text_printable(colon + 1, shown, sizeof shown));
	} else if (colon && (!text_number(colon + 1, &batch) || !(batch > 0.0 && batch <= MAX_BATCH))) {
		return err_fail(err, ERR_ARG, "policy %s: the batch '%s' is not a number above 0", p->name,
				text_printable(colon + 1, shown, sizeof shown));
	}
	*out = (struct policy_choice){ .policy = p, .batch = batch, .chance = chance };
	return 0;
}

static bool knows_load(const struct model *m)
{
	for (size_t i = 0; i < m->features->n; i++) {
		int source = (int)m->features->feature[i].source;

		if (source == schema_role(m->schema, ROLE_NJOBS) ||
		    source == schema_role(m->schema, ROLE_PROCESSES))
			return true;
	}
	return false;
}

bool policy_wants(const struct policy *p, const char *predictor)
{
	return !p->predictor || !strcmp(predictor, p->predictor) ||
	       (p->or_predictor && !strcmp(predictor, p->or_predictor));
}

int policy_accepts(const struct policy_choice *c, const struct model *m, struct err *err)
{
	const struct policy *p = c->policy;

	if (!p->predictor)
		return 0;
	if (!m)
		return err_fail(err, ERR_ARG,
				"policy %s needs a model: postrider train DATA.csv --policy %s -o MODEL",
				p->name, p->name);
	if (!m->time.predictor.ops || !policy_wants(p, m->time.predictor.ops->name))
		return err_fail(
			err, ERR_ARG,
			"policy %s wants the model %s%s%s of response time, and this one is %s: postrider "
			"train DATA.csv --policy %s -o MODEL makes it",
			p->name, p->predictor, p->or_predictor ? " or " : "",
			p->or_predictor ? p->or_predictor : "",
			m->time.predictor.ops ? m->time.predictor.ops->name : "none", p->name);
	if (p->without_load && knows_load(m))
		return err_fail(err, ERR_ARG,
				"policy %s wants a model that knows nothing of the load, and this one has it "
				"among its columns: postrider train DATA.csv --policy %s -o MODEL makes one",
				p->name, p->name);
	return 0;
}
