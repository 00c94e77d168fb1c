/* Bench of a campaign: ridge and decision trees with the grids of the Ray paper's Table II, chosen by 5
 * folds, against the same campaign written with scikit-learn (aMLLibrary itself is not packaged; it adds
 * its own costs to these). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/io.h"
#include "automl/automl.h"
#include "tests/bench/bench.h"

static const char campaign_text[] =
	"[General]\ny = 'y'\ntechniques = ['LRRidge', 'DecisionTree']\nhp_selection = KFold\n"
	"folds = 5\nvalidation = HoldOut\nhold_out_ratio = 0.2\n"
	"[DataPreparation]\ninput_path = 'small.csv'\n"
	"[LRRidge]\nalpha = [0.01, 0.1, 1]\n"
	"[DecisionTree]\ncriterion = ['mse', 'friedman_mse', 'mae']\n"
	"max_depth = [3, 5, 10, 20]\nmax_features = ['auto', 'sqrt', 'log2']\n"
	"min_samples_split = [0.01, 0.1, 0.2, 0.5]\n"
	"min_samples_leaf = [0.01, 0.05, 0.1, 0.2, 0.3]\n"
	"[Postrider]\nlearning_curve = False\n";

/* The whole campaign once, on one thread, journal and model files included. */
static int campaign_once(struct bench_env *env, int turn, double *io_best_s, struct err *err)
{
	char path[320], dir[320];
	struct campaign *c = NULL;
	struct prepared *p = NULL;
	struct automl *a = NULL;
	struct strbuf results = { 0 };
	double start_s;
	int rc;

	snprintf(path, sizeof path, "%s/campaign.ini", env->dir);
	snprintf(dir, sizeof dir, "%s/campaign-%d", env->dir, turn);
	rc = io_write_file(path, campaign_text, sizeof campaign_text - 1, err);
	if (!rc && mkdir(dir, 0700))
		rc = err_fail(err, ERR_IO, "%s: cannot be made", dir);
	start_s = bench_now_s();
	if (!rc)
		rc = campaign_read(path, &(struct campaign_params){ 0 }, &c, err);
	if (!rc)
		rc = prepare(c, env->small_csv, &p, err);
	if (!rc)
		rc = automl_run(
			&(struct automl_params){
				.c = c, .p = p, .dir = dir, .program = "bench", .created = "" },
			&a, err);
	if (!rc) {
		automl_results_json(a, &results);
		*io_best_s = fmin(*io_best_s, bench_now_s() - start_s);
	}
	strbuf_release(&results);
	automl_free(a);
	prepared_free(p);
	campaign_free(c);
	return rc;
}

int bench_automl_campaign(struct bench_env *env, struct bench_result *out, struct err *err)
{
	struct bench_rival rival = { .seconds = INFINITY };
	int status = 0;

	out->bar = 50;
	out->unit = "s";
	out->ours = INFINITY;
	bench_what(out,
		   "a campaign of 3615 experiments (ridge, decision trees) on %d rows, 1 thread, against the "
		   "same "
		   "loop over scikit-learn, imports not counted",
		   SMALL_ROWS);
	for (int i = 0; !status && i < 2; i++) {
		double peer_s = INFINITY;

		status = bench_peer_run(env, PEER_SKLEARN, &peer_s, NULL, err, "campaign", env->small_csv,
					NULL);
		status = bench_rival_add(&rival, PEER_SKLEARN, status, peer_s);
		if (!status)
			status = campaign_once(env, i, &out->ours, err);
	}
	if (!status)
		bench_judge(out, &rival, true);
	return status;
}
