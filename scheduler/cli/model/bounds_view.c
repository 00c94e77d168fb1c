/* How wide the bounds of a model are, and where they widen: for `model show`. */
#include <math.h>

#include "common/text/text.h"
#include "scheduler/cli/model/views.h"

#define CONFIDENCE 0.9
#define INDENT "               "

/* By what the table knows of a job, best first. */
static const char *const key[N_FAMILIARITIES] = { "same_setting", "new_setting", "new_context", "new_family",
						  "new_name" };
static const char *const words[N_FAMILIARITIES] = {
	"the table has this setting",
	"a new setting: another batch or other epochs of a context that the table has",
	"a new context: another load or size, in a family that the table has",
	"a new family: other cpus, or names that the table has apart",
	"a name of a category that the table does not have",
};

/* A number of the table, that a job can be beyond. */
static bool has_end(const struct model *m, const struct model_target *t, size_t i)
{
	const struct feature *f = &m->features->feature[i];

	return t->widening && !feature_is_category(f) && f->source < m->schema->n_columns && !isnan(f->min);
}

void bounds_view_json(struct json_writer *w, const struct model *m, const struct model_target *t)
{
	double q;

	json_kv_open(w, "bounds", '{');
	if (!conformal_quantile(&t->conformal, CONFIDENCE, &q, NULL)) {
		json_kv_number(w, "confidence", CONFIDENCE);
		if (t->conformal.log) {
			for (int k = 0; k < N_FAMILIARITIES; k++)
				json_kv_number(w, key[k],
					       model_bound_factor(m, t, (enum familiarity)k, CONFIDENCE));
			json_kv_open(w, "outside", '{');
			for (size_t i = 0; i < m->features->n; i++)
				if (has_end(m, t, i))
					json_kv_number(w, m->features->feature[i].name,
						       model_outside_factor(m, t, i, CONFIDENCE));
			json_close(w, '}');
		} else {
			json_kv_number(w, "added", q * t->conformal.base);
			json_kv_number(w, "added_share", q * t->conformal.slope);
		}
	}
	json_close(w, '}');
}

static void show_outside(struct strbuf *out, const struct model *m, const struct model_target *t)
{
	char low[32], high[32];
	bool any = false;

	for (size_t i = 0; i < m->features->n; i++) {
		const struct feature *f = &m->features->feature[i];

		if (!has_end(m, t, i))
			continue;
		if (!any)
			strbuf_puts(out, INDENT "and far outside the range of a column:\n");
		any = true;
		strbuf_printf(out, INDENT "%6.3g  %s (%s to %s)\n", model_outside_factor(m, t, i, CONFIDENCE),
			      cli_clean(f->name), text_shortest(f->min, low), text_shortest(f->max, high));
	}
}

void bounds_view_text(struct strbuf *out, const struct model *m, const struct model_target *t)
{
	double q;

	if (conformal_quantile(&t->conformal, CONFIDENCE, &q, NULL))
		return;
	strbuf_printf(out, "  %-12s ", "bounds");
	if (!t->conformal.log) {
		strbuf_printf(out, "90 %% are at most %.3g", q * t->conformal.base);
		if (t->conformal.slope > 0.0)
			strbuf_printf(out, " and %.3g %% of it", 100.0 * q * t->conformal.slope);
		strbuf_puts(out, " above what is expected\n");
		return;
	}
	strbuf_puts(out, "90 % of jobs take at most so many times the expected time, where\n");
	for (int k = 0; k < N_FAMILIARITIES; k++)
		strbuf_printf(out, INDENT "%6.3g  %s\n",
			      model_bound_factor(m, t, (enum familiarity)k, CONFIDENCE), words[k]);
	show_outside(out, m, t);
}
