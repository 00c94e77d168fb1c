/* Benches of fitting forests: one small forest, the paper's grid, a large table, growth with the rows. */
#include "tests/bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pool.h"
#include "common/text/text.h"
#include "predictors/trees/bins.h"
#include "predictors/search/search.h"
#include "predictors/data/split.h"

/* The shortest of `repetitions` fits. Keeps the last forest if asked to. */
static int fit_seconds(const char *settings_text, const struct dataset *d, struct pool *pool, int repetitions,
		       double *io_best_s, struct predictor *out, struct err *err)
{
	const struct predictor_ops *ops = predictor_find("forest");
	struct settings settings;
	int status;

	if (!ops)
		return err_fail(err, ERR_NOTFOUND, "there is no model called forest");
	settings_init(&settings, ops->spec);
	status = settings_parse(&settings, settings_text, err);
	for (int i = 0; !status && i < repetitions; i++) {
		struct fit_context ctx = { .seed = 1 + (uint64_t)i, .pool = pool };
		struct predictor forest = { 0 };
		double start_s = bench_now_s(), took_s;

		status = predictor_fit(ops, &settings, d, &ctx, &forest, err);
		took_s = bench_now_s() - start_s;
		if (!status && took_s < *io_best_s)
			*io_best_s = took_s;
		if (!status && out && i == repetitions - 1)
			*out = forest;
		else
			predictor_release(&forest);
	}
	return status;
}

/* ---- forest.fit.* ---- */

#define FIT_ROUNDS 3

int bench_fit_absolute(struct bench_env *env, struct bench_result *out, struct err *err)
{
	struct bench_rival rival = { .seconds = INFINITY };
	struct dataset *d = NULL;
	int status = bench_small(&d, err);

	out->bar = 40;
	out->unit = "s";
	out->ours = INFINITY;
	bench_what(out, "fit 2000 trees, depth 6, absolute error, %d x %d, 1 thread, against scikit-learn",
		   SMALL_ROWS, SMALL_FEATURES);
	for (int i = 0; !status && i < FIT_ROUNDS; i++) {
		double peer_s = INFINITY;

		status = fit_seconds("trees=2000,depth=6,criterion=absolute", d, NULL, 5, &out->ours, NULL,
				     err);
		if (status || rival.missing)
			continue;
		status = bench_peer_run(env, PEER_SKLEARN, &peer_s, NULL, err, "forest-fit", env->small_csv,
					"--criterion", "absolute", NULL);
		status = bench_rival_add(&rival, PEER_SKLEARN, status, peer_s);
	}
	dataset_free(d);
	if (!status)
		bench_judge(out, &rival, true);
	return status;
}

int bench_fit_squared(struct bench_env *env, struct bench_result *out, struct err *err)
{
	struct bench_rival rival = { .seconds = INFINITY };
	struct dataset *d = NULL;
	double by_peer[3] = { INFINITY, INFINITY, INFINITY };
	bool missing[3] = { false };
	int status = bench_small(&d, err);

	out->bar = 2;
	out->unit = "s";
	out->ours = INFINITY;
	bench_what(out, "fit 2000 trees, depth 6, squared error, %d x %d, 1 thread, against the faster of",
		   SMALL_ROWS, SMALL_FEATURES);
	for (int i = 0; !status && i < FIT_ROUNDS; i++) {
		status = fit_seconds("trees=2000,depth=6,criterion=squared", d, NULL, 10, &out->ours, NULL,
				     err);
		for (enum bench_peer p = PEER_XGBOOST; !status && p <= PEER_RANGER; p++) {
			double peer_s = INFINITY;

			if (missing[p])
				continue;
			status = bench_peer_run(env, p, &peer_s, NULL, err, "forest-fit", env->small_csv,
						"--repetitions", "3", NULL);
			missing[p] = status == -ERR_NOTFOUND;
			status = bench_rival_add(&rival, p, status, peer_s);
			by_peer[p] = fmin(by_peer[p], peer_s);
		}
	}
	dataset_free(d);
	if (status)
		return status;
	for (enum bench_peer p = PEER_XGBOOST; p <= PEER_RANGER; p++) {
		bench_what(out, "%s %s (", p == PEER_XGBOOST ? "" : " and", bench_peer_name(p));
		if (missing[p])
			bench_what(out, "-)");
		else
			bench_what(out, "%.3g s)", by_peer[p]);
	}
	bench_judge(out, &rival, true);
	return 0;
}

/* ---- forest.grid ---- */

/* Table 7 of the paper. Of 5 features sqrt and log2 both mean 2, so a third of it repeats another third:
 * a search may notice, and this one's peer does not. */
static const char grid_text[] = "{\"forest\":{\"trees\":[50,100,150,500,1000,2000],"
				"\"max_features\":[\"all\",\"sqrt\",\"log2\"],\"depth\":[4,5,6,7,8,9,10],"
				"\"criterion\":[\"absolute\",\"squared\"]}}";

static int grid_once(const struct search_params *p, double *io_best_s, struct err *err)
{
	struct search_result *result = NULL;
	double start_s = bench_now_s(), took_s;
	int status = search_run(p, &result, err);

	took_s = bench_now_s() - start_s;
	for (size_t i = 0; !status && i < p->grid->n; i++)
		if (result[i].failed || !isfinite(result[i].score.mean.mse))
			status = err_fail(err, ERR_NUMERIC, "setting %zu of the grid was not scored: %s", i,
					  result[i].why);
	free(result);
	if (!status && took_s < *io_best_s)
		*io_best_s = took_s;
	return status;
}

int bench_grid(struct bench_env *env, struct bench_result *out, struct err *err)
{
	const struct split_params folds = { .kind = SPLIT_KFOLD, .folds = 5, .seed = 1 };
	struct bench_rival rival = { .seconds = INFINITY };
	struct dataset *d = NULL;
	struct json *grid_json = NULL, *answer = NULL;
	struct grid *grid = NULL;
	struct split *split = NULL;
	struct pool *pool = NULL;
	struct search_params p = { 0 };
	double peer_s = INFINITY;
	int status;

	out->bar = 200;
	out->unit = "s";
	out->ours = INFINITY;
	status = bench_small(&d, err);
	if (!status)
		status = json_parse("grid", grid_text, strlen(grid_text), &grid_json, err);
	if (!status)
		status = grid_from_json("grid", grid_json, &grid, err);
	if (!status)
		status = split_make(d, &folds, &split, err);
	if (!status)
		status = pool_new(2, &pool, err);
	if (status)
		goto out;
	p = (struct search_params){
		.data = d, .grid = grid, .split = split, .ctx = { .seed = 1, .pool = pool }
	};
	bench_what(out,
		   "the paper's grid, %zu settings x 5 folds, both criteria, 2 threads, against GridSearchCV "
		   "with 2 processes",
		   grid->n);
	status = grid_once(&p, &out->ours, err);
	for (int i = 0; !status && i < (env->full ? 1 : 2); i++) {
		struct json *turn = NULL;

		status = bench_peer_run(env, PEER_SKLEARN, &peer_s, &turn, err, "forest-grid", env->small_csv,
					"--sample", env->full ? "0" : "12", NULL);
		if (!status) {
			json_free(answer);
			answer = turn;
		}
		status = bench_rival_add(&rival, PEER_SKLEARN, status, peer_s);
		if (!status)
			status = grid_once(&p, &out->ours, err);
		if (rival.missing)
			break;
	}
	if (status)
		goto out;
	if (json_bool(json_get(answer, "scaled"), false))
		bench_what(out, " (scaled from %.0f settings, %.3g s; BENCH_FULL=1 runs all)",
			   json_number(json_get(answer, "sampled_settings"), NAN),
			   json_number(json_get(answer, "sampled_seconds"), NAN));
	bench_judge(out, &rival, true);
out:
	json_free(answer);
	json_free(grid_json);
	grid_free(grid);
	split_free(split);
	pool_free(pool);
	dataset_free(d);
	return status;
}

/* ---- forest.large ---- */

#define LARGE_TREES 100
#define LARGE_FEW 10 /* trees that the peers fit, scaled up unless BENCH_FULL */
#define LARGE_TEST 10000 /* rows behind the others, to see that a fast forest is a good one too */
#define LARGE_MEMORY 3.0 /* times the data, beyond the data */

static double status_mb(const char *field)
{
	char line[256];
	double kb = NAN;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, field, strlen(field)) && line[strlen(field)] == ':')
			kb = strtod(line + strlen(field) + 1, NULL);
	if (f)
		fclose(f);
	return kb / 1024.0;
}

/* The peak so far is forgotten, so that the next reading is that of the fit. */
static void peak_reset(void)
{
	FILE *f = fopen("/proc/self/clear_refs", "w");

	if (f) {
		fputs("5", f);
		fclose(f);
	}
}

static double test_mse(const struct predictor *p, const struct dataset *test)
{
	double sum = 0.0, predicted;

	for (size_t i = 0; i < test->n_rows; i++) {
		predictor_predict(p, test->x + i * test->n_features, 1, &predicted);
		sum += (predicted - test->y[i]) * (predicted - test->y[i]);
	}
	return sum / (double)test->n_rows;
}

int bench_large_child(int argc, char **argv)
{
	struct strbuf text = { 0 };
	struct json_writer w;
	struct dataset *d = NULL, *test = NULL;
	struct pool *pool = NULL;
	struct predictor forest = { 0 };
	struct err err = { 0 };
	uint64_t rows, trees, few;
	double before_mb = NAN, peak_mb = NAN, seconds = INFINITY, few_s = INFINITY;
	char settings[96];
	int status;

	if (argc != 4 || !text_uint64(argv[1], &rows) || !text_uint64(argv[2], &trees) ||
	    !text_uint64(argv[3], &few))
		return 2;
	status = pool_new(2, &pool, &err);
	if (!status)
		status = bench_large_read(argv[0], rows, LARGE_TEST, &test, &err);
	if (!status)
		status = bench_large_read(argv[0], 0, rows, &d, &err);
	if (!status) {
		snprintf(settings, sizeof settings, "trees=%llu,depth=10,criterion=squared",
			 (unsigned long long)trees);
		peak_reset();
		before_mb = status_mb("VmRSS");
		status = fit_seconds(settings, d, pool, 1, &seconds, &forest, &err);
		peak_mb = status_mb("VmHWM");
	}
	if (!status) {
		json_begin(&w, &text, false);
		json_open(&w, '{');
		json_kv_number(&w, "seconds", seconds);
		json_kv_number(&w, "rss_before_mb", before_mb);
		json_kv_number(&w, "peak_rss_mb", peak_mb);
		json_kv_number(&w, "test_mse", test_mse(&forest, test));
		predictor_release(&forest);
		forest = (struct predictor){ 0 };
		/* As many trees as the peer grows, for a fair look at the errors. */
		snprintf(settings, sizeof settings, "trees=%llu,depth=10,criterion=squared",
			 (unsigned long long)few);
		status = fit_seconds(settings, d, pool, 1, &few_s, &forest, &err);
		if (!status)
			json_kv_number(&w, "test_mse_few", test_mse(&forest, test));
		json_close(&w, '}');
	}
	if (!status)
		printf("%s\n", strbuf_text(&text));
	else
		fprintf(stderr, "postrider-bench: %s\n", err.text);
	predictor_release(&forest);
	strbuf_release(&text);
	dataset_free(d);
	dataset_free(test);
	pool_free(pool);
	return status ? 1 : 0;
}

int bench_large(struct bench_env *env, struct bench_result *out, struct err *err)
{
	struct bench_rival rival = { .seconds = INFINITY };
	struct json *answer = NULL;
	char file[300], rows[32], trees[32], few[32], test_rows[32];
	const char *child[] = { env->self, "--child", file, rows, trees, few, NULL };
	double data_mb = (double)env->large_rows * (LARGE_FEATURES + 1) * 8 / 1048576.0;
	double growth_mb, mse, mse_few, peer_mse = NAN;
	bool lean;
	int status;

	out->bar = 1;
	out->unit = "s";
	snprintf(file, sizeof file, "%s/large.bin", env->dir);
	snprintf(rows, sizeof rows, "%zu", env->large_rows);
	snprintf(trees, sizeof trees, "%d", LARGE_TREES);
	snprintf(few, sizeof few, "%d", env->full ? LARGE_TREES : LARGE_FEW);
	snprintf(test_rows, sizeof test_rows, "%d", LARGE_TEST);
	bench_say("writing %zu rows", env->large_rows + LARGE_TEST);
	status = bench_large_write(file, env->large_rows + LARGE_TEST, err);
	if (!status)
		status = bench_run_json(child, &answer, err);
	if (status)
		return status;
	out->ours = json_number(json_get(answer, "seconds"), NAN);
	growth_mb = json_number(json_get(answer, "peak_rss_mb"), NAN) -
		    json_number(json_get(answer, "rss_before_mb"), NAN);
	mse = json_number(json_get(answer, "test_mse"), NAN);
	mse_few = json_number(json_get(answer, "test_mse_few"), NAN);
	json_free(answer);
	answer = NULL;
	lean = growth_mb <= LARGE_MEMORY * data_mb;
	bench_say("ours %.3g s, %.0f MB beyond %.0f MB of data, test MSE %.4g", out->ours, growth_mb, data_mb,
		  mse);

	bench_what(out, "%zu x %d, %d trees, depth 10, squared error, 2 threads, against the faster of",
		   env->large_rows, LARGE_FEATURES, LARGE_TREES);
	for (int i = 0; i < 2; i++) {
		enum bench_peer p = i ? PEER_SKLEARN : PEER_RANGER;
		double peer_s = INFINITY;

		status = bench_peer_run(env, p, &peer_s, &answer, err, "forest-large", file, "--trees", few,
					"--test-rows", test_rows, NULL);
		bench_what(out, "%s %s (", i ? " and" : "", bench_peer_name(p));
		if (status == -ERR_NOTFOUND)
			bench_what(out, "-)");
		else if (!status)
			bench_what(out, "%.4g s%s)", peer_s,
				   json_bool(json_get(answer, "scaled"), false) ? " scaled" : "");
		status = bench_rival_add(&rival, p, status, peer_s);
		if (status)
			return status;
		if (rival.seconds == peer_s && answer)
			peer_mse = json_number(json_get(answer, "test_mse"), NAN);
		json_free(answer);
		answer = NULL;
	}
	remove(file);
	bench_what(out, "; memory beyond the data %.2f x the data (bar %g)", growth_mb / data_mb,
		   LARGE_MEMORY);
	/* One forest's error moves by 1 % and more with its seed; what the bins cost is far less. */
	bench_what(out, "; test MSE with %s trees %.3f", few, mse_few);
	if (isfinite(peer_mse))
		bench_what(out, ", of %s %.3f", bench_peer_name(rival.fastest), peer_mse);
	if (env->large_rows > BINS_MAX_LEVELS)
		bench_what(
			out,
			"; ours splits between %d quantiles of a feature, the peers between any two values",
			BINS_QUANTILES);
	bench_judge(out, &rival, lean);
	return 0;
}

/* ---- forest.scaling ---- */

int bench_scaling(struct bench_env *env, struct bench_result *out, struct err *err)
{
	enum { SIZES = 4, ROUNDS = 3 };
	size_t rows[SIZES];
	double best_s[SIZES];
	struct dataset *d = NULL;
	int status = bench_large_new(env->large_rows, &d, err);

	out->kind = BAR_AT_MOST;
	/* n log n is the bar; a tenth more is what the machine's noise may add to the shortest of several
	 * fits. */
	out->bar = 1.1;
	out->unit = "x";
	out->ours = 0.0;
	for (int k = SIZES - 1; k >= 0; k--) {
		rows[k] = k == SIZES - 1 ? env->large_rows : rows[k + 1] / 10;
		best_s[k] = INFINITY;
	}
	if (!status && rows[0] < 100)
		status = err_fail(err, ERR_ARG, "needs at least 100000 rows, not %zu", env->large_rows);
	for (int round = 0; !status && round < ROUNDS; round++) {
		for (int k = 0; !status && k < SIZES; k++) {
			struct dataset part = *d;
			double start_s = bench_now_s();

			part.n_rows = rows[k];
			do /* a second's worth of each size, at least once */
				status = fit_seconds("trees=20,depth=10,criterion=squared", &part, NULL, 1,
						     &best_s[k], NULL, err);
			while (!status && bench_now_s() - start_s < 1.0);
		}
	}
	dataset_free(d);
	if (status)
		return status;
	bench_what(out,
		   "largest growth of fit time over that of n log n, per tenfold rows (20 trees, depth 10, "
		   "10 features, 1 thread):");
	for (int k = 0; k < SIZES; k++)
		bench_what(out, "%s %zu rows %.3g s", k ? "," : "", rows[k], best_s[k]);
	for (int k = 0; k + 1 < SIZES; k++) {
		double n = (double)rows[k], m = (double)rows[k + 1];

		out->ours = fmax(out->ours, best_s[k + 1] / best_s[k] / (m * log(m) / (n * log(n))));
	}
	out->holds = out->ours <= out->bar ? HOLDS_YES : HOLDS_NO;
	return 0;
}
