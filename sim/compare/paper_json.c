/* The paper's experiment as JSON and CSV. */
#include <math.h>

#include "common/csv.h"
#include "common/text/text.h"
#include "sim/compare/paper_experiment.h"
#include "sim/compare/record.h"

static const char *const set_name[2] = { "five", "many" };

void paper_job_text(const struct paper_result *r, const struct paper_job *j, struct strbuf *out)
{
	const struct trace_kind *k = &r->trace->kind[j->kind];

	for (size_t i = 0; i < r->trace->n_columns; i++)
		if (k->value[i])
			strbuf_printf(out, "%s%s=%s", i ? "," : "", r->trace->column[i], k->value[i]);
}

static void put_summary(struct json_writer *w, const struct sim_policy *p, const struct paper_summary *s,
			bool baseline)
{
	json_open(w, '{');
	json_kv_string(w, "name", p->name);
	json_kv_string(w, "title", p->title);
	json_kv_int(w, "jobs", (long long)s->jobs);
	json_kv_int(w, "promised", (long long)s->promised);
	json_kv_int(w, "kept", (long long)s->kept);
	json_kv_int(w, "met", (long long)s->met);
	json_kv_number(w, "attainment", s->kept_share.mean);
	record_interval(w, "attainment_ci", &s->kept_share);
	json_kv_number(w, "miss_rate_below", s->miss_bound);
	json_kv_number(w, "attainment_all", s->met_share.mean);
	record_interval(w, "attainment_all_ci", &s->met_share);
	json_kv_int(w, "oracle_met", (long long)s->oracle_met);
	json_kv_number(w, "attainment_oracle", s->oracle_share.mean);
	record_interval(w, "attainment_oracle_ci", &s->oracle_share);
	json_kv_int(w, "with_accuracy", (long long)s->with_accuracy);
	json_kv_number(w, "accuracy_zero", s->accuracy_zero.mean);
	record_interval(w, "accuracy_zero_ci", &s->accuracy_zero);
	json_kv_number(w, "accuracy_met", s->accuracy_met);
	json_kv_number(w, "regret", s->regret);
	json_kv_number(w, "mse", s->mse_s2);
	json_kv_number(w, "mape", s->mape);
	json_kv_number(w, "mae_s", s->mae_s);
	json_kv_number(w, "accuracy_mse", s->accuracy_mse);
	json_kv_number(w, "accuracy_mae", s->accuracy_mae);
	if (!baseline) {
		json_kv_int(w, "wins", (long long)s->wins);
		json_kv_int(w, "losses", (long long)s->losses);
		json_kv_open(w, "versus", '{');
		record_paired(w, "attainment_all", &s->met_versus);
		record_paired(w, "accuracy_zero", &s->accuracy_versus);
		json_close(w, '}');
	}
	json_close(w, '}');
}

static void put_job(const struct paper_result *r, const struct paper_job *j, size_t i, struct json_writer *w)
{
	const struct trace_kind *k = &r->trace->kind[j->kind];

	json_kv_int(w, "job", (long long)i + 1);
	json_kv_int(w, "cpus", k->cpus);
	json_kv_number(w, "njobs", j->njobs);
	for (size_t c = 0; c < r->trace->n_columns; c++)
		json_kv_string(w, r->trace->column[c], k->value[c]);
	json_kv_number(w, "slo_s", j->slo_s);
}

static void put_choice(struct json_writer *w, const struct paper_outcome *o)
{
	json_kv_number(w, "batch", o->batch);
	json_kv_bool(w, "promised", o->promised);
	json_kv_number(w, "predicted_s", o->predicted_s);
	json_kv_number(w, "upper_s", o->upper_s);
	json_kv_number(w, "predicted_accuracy", o->predicted_accuracy);
	json_kv_number(w, "time_s", o->time_s);
	json_kv_number(w, "accuracy", o->accuracy);
	json_kv_bool(w, "met", o->met);
}

static void put_fixed(struct json_writer *w, const struct paper_fixed *f)
{
	json_open(w, '{');
	json_kv_number(w, "batch", f->batch);
	json_kv_int(w, "met", (long long)f->met);
	json_kv_number(w, "attainment_all", f->met_share.mean);
	record_interval(w, "attainment_all_ci", &f->met_share);
	json_kv_number(w, "accuracy_zero", f->accuracy_zero.mean);
	record_interval(w, "accuracy_zero_ci", &f->accuracy_zero);
	json_close(w, '}');
}

static void put_table9(const struct paper_result *r, struct json_writer *w)
{
	const struct paper_set *five = &r->set[0];

	json_kv_open(w, "table9", '[');
	for (size_t i = 0; i < five->n; i++) {
		json_open(w, '{');
		put_job(r, &five->job[i], i, w);
		json_kv_open(w, "paper", '{');
		json_kv_number(w, "cpus", paper_table9[i].cpus);
		json_kv_number(w, "slo_s", paper_table9[i].slo_s);
		json_kv_number(w, "batch", paper_table9[i].batch);
		json_kv_number(w, "predicted_accuracy", paper_table9[i].accuracy);
		json_kv_number(w, "predicted_s", paper_table9[i].time_s);
		json_close(w, '}');
		json_kv_open(w, "policies", '{');
		for (int k = 0; k < PAPER_POLICIES; k++) {
			json_kv_open(w, r->policy[k].name, '{');
			put_choice(w, &five->outcome[(size_t)k * five->n + i]);
			json_close(w, '}');
		}
		json_close(w, '}');
		json_close(w, '}');
	}
	json_close(w, ']');
}

static void put_score(struct json_writer *w, const char *key, const char *model, const struct score *s)
{
	json_put_key(w, key);
	if (!model) {
		json_put_null(w);
		return;
	}
	json_open(w, '{');
	json_kv_string(w, "model", model);
	json_kv_number(w, "mse", s->mse);
	json_kv_number(w, "r2", s->r2);
	json_kv_number(w, "mape", s->mape);
	json_close(w, '}');
}

static void put_table11(const struct paper_result *r, struct json_writer *w)
{
	json_kv_open(w, "table11", '[');
	for (size_t i = 0; i < r->n_scores; i++) {
		json_open(w, '{');
		json_kv_string(w, "policy", r->score[i].policy->name);
		json_kv_bool(w, "knows_load", !r->score[i].policy->choice.policy->without_load);
		json_kv_string(w, "scored_by", r->score[i].scored_by);
		put_score(w, "time", r->score[i].model, &r->score[i].time);
		put_score(w, "accuracy", r->score[i].accuracy_model, &r->score[i].accuracy);
		json_close(w, '}');
	}
	json_close(w, ']');
}

/* The five jobs under some policies: fulfilment and accuracy (Figure 9), or errors of prediction (Figure
 * 10). */
static void put_figure(const struct paper_result *r, const char *key, const enum paper_policy *policy,
		       size_t n, bool errors, struct json_writer *w)
{
	const struct paper_set *five = &r->set[0];

	json_kv_open(w, key, '[');
	for (size_t i = 0; i < five->n * n; i++) {
		size_t job = i % five->n;
		const struct paper_outcome *o = &five->outcome[policy[i / five->n] * five->n + job];

		json_open(w, '{');
		json_kv_string(w, "policy", r->policy[policy[i / five->n]].name);
		json_kv_int(w, "job", (long long)job + 1);
		if (errors) {
			json_kv_number(w, "time_error_s", fabs(o->predicted_s - o->time_s));
			json_kv_number(w, "accuracy_error", fabs(o->predicted_accuracy - o->accuracy));
		} else {
			json_kv_number(w, "of_slo", o->time_s / five->job[job].slo_s);
			json_kv_bool(w, "met", o->met);
			json_kv_number(w, "accuracy", o->accuracy);
		}
		json_close(w, '}');
	}
	json_close(w, ']');
}

void paper_json(const struct paper_result *r, const char *program, const char *command, struct json_writer *w)
{
	json_open(w, '{');
	json_kv_string(w, "kind", "paper");
	json_kv_string(w, "program", program);
	json_kv_string(w, "command", command);
	json_kv_int(w, "seed", (long long)r->seed);
	json_kv_number(w, "confidence", r->confidence);
	json_kv_number(w, "level", r->level);
	json_kv_int(w, "replications", PAPER_REPLICATIONS);
	record_world(w, r->world, SIZE_MAX);
	json_kv_number(w, "table_mean_s", r->table_mean_s);
	json_kv_number(w, "slo_scale", r->scale);
	json_kv_int(w, "settings", (long long)r->n_settings);
	json_kv_int(w, "settings_left_out", (long long)r->n_left_out);
	json_kv_open(w, "cpus", '[');
	for (size_t i = 0; i < r->n_cpus; i++)
		json_put_number(w, r->cpus[i]);
	json_close(w, ']');
	put_table9(r, w);
	put_table11(r, w);
	put_figure(r, "figure9", (enum paper_policy[]){ PAPER_COURIER, PAPER_NAIVE, PAPER_POSTRIDER }, 3,
		   false, w);
	put_figure(r, "figure10",
		   (enum paper_policy[]){ PAPER_COURIER, PAPER_BOOST, PAPER_BOOST_FULL, PAPER_POSTRIDER }, 4,
		   true, w);
	json_kv_open(w, "experiments", '[');
	for (int s = 0; s < 2; s++) {
		json_open(w, '{');
		json_kv_string(w, "set", set_name[s]);
		json_kv_int(w, "jobs", (long long)r->set[s].n);
		json_kv_open(w, "policies", '[');
		for (int k = 0; k < PAPER_POLICIES; k++)
			put_summary(w, &r->policy[k], &r->set[s].summary[k], k == PAPER_COURIER);
		json_close(w, ']');
		json_kv_open(w, "fixed", '[');
		for (size_t b = 0; b < r->set[s].n_fixed; b++)
			put_fixed(w, &r->set[s].fixed[b]);
		json_close(w, ']');
		json_close(w, '}');
	}
	json_close(w, ']');
	json_close(w, '}');
}

static void csv_row(const struct paper_result *r, int s, int k, size_t i, struct strbuf *out)
{
	const struct paper_set *set = &r->set[s];
	const struct paper_job *j = &set->job[i];
	const struct trace_kind *kind = &r->trace->kind[j->kind];
	const struct paper_outcome *o = &set->outcome[(size_t)k * set->n + i];
	const double number[] = { o->predicted_s, o->upper_s, o->predicted_accuracy, o->time_s, o->accuracy };

	strbuf_printf(out, "%s,%zu,%u,%g", set_name[s], i + 1, kind->cpus, j->njobs);
	for (size_t c = 0; c < r->trace->n_columns; c++) {
		strbuf_puts(out, ",");
		csv_put(out, kind->value[c] ? kind->value[c] : "");
	}
	strbuf_puts(out, ",");
	csv_put_number(out, j->slo_s);
	strbuf_printf(out, ",%s,", r->policy[k].name);
	csv_put_number(out, o->batch);
	strbuf_puts(out, o->promised ? ",1" : ",0");
	for (size_t c = 0; c < sizeof number / sizeof *number; c++) {
		strbuf_puts(out, ",");
		csv_put_number(out, number[c]);
	}
	strbuf_puts(out, o->met ? ",1\n" : ",0\n");
}

void paper_jobs_csv(const struct paper_result *r, struct strbuf *out)
{
	strbuf_puts(out, "set,job,cpus,njobs");
	for (size_t c = 0; c < r->trace->n_columns; c++) {
		strbuf_puts(out, ",");
		csv_put(out, r->trace->column[c]);
	}
	strbuf_puts(
		out,
		",slo_s,policy,batch,promised,predicted_s,upper_s,predicted_accuracy,time_s,accuracy,met\n");
	for (int s = 0; s < 2; s++)
		for (size_t i = 0; i < r->set[s].n; i++)
			for (int k = 0; k < PAPER_POLICIES; k++)
				csv_row(r, s, k, i, out);
}
