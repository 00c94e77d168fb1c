/* predictors/anova and anova_plot: designs worked by hand, published fits, relations, awkward tables. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json.h"
#include "common/mem.h"
#include "common/rng.h"
#include "common/strbuf.h"
#include "predictors/anova/anova.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

struct data {
	struct schema *schema;
	struct csv *csv;
	struct table *table;
};

static void data_release(struct data *d)
{
	table_free(d->table);
	csv_free(d->csv);
	schema_free(d->schema);
}

static const char plain_schema[] = "{\"columns\":[{\"name\":\"a\",\"kind\":\"number\"},"
				   "{\"name\":\"b\",\"kind\":\"number\",\"optional\":true},"
				   "{\"name\":\"c\",\"kind\":\"number\",\"optional\":true},"
				   "{\"name\":\"w\",\"kind\":\"category\",\"optional\":true}],"
				   "\"decision\":\"a\",\"targets\":{\"time\":\"y\"}}";

static struct data data_open(struct csv *csv, const char *schema)
{
	struct data d = { .csv = csv };
	struct json *v = NULL;
	struct err err = { 0 };

	if (json_parse("schema", schema, strlen(schema), &v, &err) ||
	    schema_from_json("schema", v, &d.schema, &err) ||
	    table_read(csv, d.schema, false, &d.table, &err))
		fail_msg("%s", err.text);
	json_free(v);
	return d;
}

static struct data data_text(const char *text)
{
	struct csv *csv = NULL;
	struct err err = { 0 };

	if (csv_parse("text", text, strlen(text), &csv, &err))
		fail_msg("%s", err.text);
	return data_open(csv, plain_schema);
}

static struct anova *run(const struct anova_params *p)
{
	struct anova *a = NULL;
	struct err err = { 0 };

	if (anova_run(p, &a, &err))
		fail_msg("%s", err.text);
	return a;
}

static int fails(const struct anova_params *p, struct err *err)
{
	struct anova *a = NULL;
	int rc = anova_run(p, &a, err);

	assert_null(a);
	return rc;
}

static const struct anova_term *term(const struct anova *a, const char *name)
{
	for (size_t i = 0; i < a->n_terms; i++)
		if (!strcmp(a->term[i].name, name))
			return &a->term[i];
	fail_msg("no term %s", name);
	return NULL;
}

static const struct anova_coefficient *coefficient(const struct anova *a, const char *name)
{
	for (size_t i = 0; i < a->n_coefficients; i++)
		if (!strcmp(a->coefficient[i].name, name))
			return &a->coefficient[i];
	fail_msg("no coefficient %s", name);
	return NULL;
}

static bool noted(const struct anova *a, const char *text)
{
	for (size_t i = 0; i < a->n_notes; i++)
		if (strstr(a->note[i], text))
			return true;
	return false;
}

static void near(double got, double want, double relative)
{
	if (!(fabs(got - want) <= relative * fabs(want)))
		fail_msg("got %.17g, want %.17g", got, want);
}

static void check_term(const struct anova *a, const char *name, size_t df, double ss, double f, double p)
{
	const struct anova_term *t = term(a, name);

	assert_int_equal(t->df, df);
	near(t->ss, ss, 1e-9);
	near(t->f, f, 1e-9);
	near(t->p, p, 1e-7); /* a probability far out multiplies the error of F */
	near(t->share, ss / a->total_ss, 1e-9);
	near(t->ms, ss / (double)df, 1e-9);
}

/* ---- worked by hand ---- */

/* 2^2 with two replications. Cell means 3.0 5.4 4.2 9.2; effects q_a = (5.4 + 9.2 - 3.0 - 4.2) / 4 = 1.85,
 * q_b = 1.25, q_ab = 0.65; SS = 2^2 * 2 * q^2 = 27.38, 12.5, 3.38 (Jain, The Art of Computer Systems
 * Performance Analysis, section 18.4); within cells 0.02 + 0.08 + 0.08 + 0.02 = 0.2 on 4 df, so F = SS /
 * 0.05. p: F distribution with 1 and 4 df, from SciPy. */
static const char two_by_two[] = "a,b,y\n"
				 "-1,-1,3.1\n-1,-1,2.9\n1,-1,5.2\n1,-1,5.6\n"
				 "-1,1,4.0\n-1,1,4.4\n1,1,9.1\n1,1,9.3\n";

TEST(test_two_by_two_as_by_hand)
{
	struct data d = data_text(two_by_two);
	const struct anova_coefficient *c;

	for (int coding = 0; coding < 2; coding++) {
		struct anova *a =
			run(&(struct anova_params){ .table = d.table, .coding = (enum anova_coding)coding });

		check_term(a, "a", 1, 27.38, 547.6, 1.97676727303808e-05);
		check_term(a, "b", 1, 12.5, 250.0, 9.34927463999446e-05);
		check_term(a, "a:b", 1, 3.38, 67.6, 0.0011928816409885);
		near(a->residual_ss, 0.2, 1e-9);
		near(a->total_ss, 43.46, 1e-12);
		near(a->residual_sd, sqrt(0.05), 1e-9);
		near(a->r2, 43.26 / 43.46, 1e-12);
		near(a->adjusted_r2, 1.0 - 0.05 / (43.46 / 7.0), 1e-12);
		near(a->f, 43.26 / 3.0 / 0.05, 1e-9);
		assert_int_equal(a->residual_df, 4);
		assert_int_equal(a->model_df, 3);
		assert_int_equal(a->n_settings, 4);
		assert_int_equal(a->min_replications, 2);
		assert_int_equal(a->max_replications, 2);
		assert_false(a->has_lack_of_fit); /* four columns pass through four means */
		assert_int_equal(a->n_notes, 0);
		if (coding == ANOVA_NUMBERS) { /* at +-1 the coefficients are the effects, se = s / sqrt(8) */
			c = coefficient(a, "a");
			near(c->estimate, 1.85, 1e-12);
			near(c->se, sqrt(0.05 / 8.0), 1e-9);
			near(c->t, sqrt(547.6), 1e-9);
			near(c->p, 1.97676727303808e-05, 1e-7);
			near(c->high, 1.85 + 2.7764451051978 * sqrt(0.05 / 8.0), 1e-9);
			near(c->low, 1.85 - 2.7764451051978 * sqrt(0.05 / 8.0), 1e-9);
			near(coefficient(a, "(intercept)")->estimate, 5.45, 1e-12);
		} else { /* differences to the cell of the lowest levels */
			near(coefficient(a, "a=1")->estimate, 2.4, 1e-12);
			near(coefficient(a, "a=1:b=1")->estimate, 9.2 - 5.4 - 4.2 + 3.0, 1e-12);
		}
		anova_free(a);
	}
	data_release(&d);
}

/* 2^3 without replications, up to order 2: the residual is the interaction of all three. Contrasts by hand
 * from 2.1 3.7 2.9 6.1 1.3 4.4 3.2 8.8 (a fastest): sum of y with the signs, squared, over 8. */
TEST(test_two_cubed_as_by_hand)
{
	static const double y[8] = { 2.1, 3.7, 2.9, 6.1, 1.3, 4.4, 3.2, 8.8 };
	static const char *const name[8] = { "", "a", "b", "a:b", "c", "a:c", "b:c", "a:b:c" };
	struct strbuf text = { 0 };
	double ss[8];
	struct data d;
	struct anova *a;

	strbuf_puts(&text, "a,b,c,y\n");
	for (int i = 0; i < 8; i++)
		strbuf_printf(&text, "%d,%d,%d,%g\n", i & 1 ? 8 : 1, i & 2 ? 512 : 64, i & 4 ? 5 : 1, y[i]);
	for (int k = 1; k < 8; k++) {
		double contrast = 0.0;

		for (int i = 0; i < 8; i++)
			contrast += __builtin_popcount(~i & k) % 2 ? -y[i] : y[i];
		ss[k] = contrast * contrast / 8.0;
	}
	near(ss[1], 13.5 * 13.5 / 8.0, 1e-12); /* 3.7 + 6.1 + 4.4 + 8.8 - 2.1 - 2.9 - 1.3 - 3.2 */
	d = data_text(strbuf_text(&text));
	a = run(&(struct anova_params){ .table = d.table, .order = 2 });
	assert_int_equal(a->n_terms, 6);
	near(a->residual_ss, ss[7], 1e-9);
	for (int k = 1; k < 7; k++)
		near(term(a, name[k])->ss, ss[k], 1e-9);
	near(term(a, "a")->f, ss[1] / ss[7], 1e-9);
	assert_int_equal(a->n_notes, 0);
	anova_free(a);
	/* asked for everything, it says why it stops at the same place */
	a = run(&(struct anova_params){ .table = d.table });
	assert_int_equal(a->order, 2);
	assert_true(noted(a, "reduced from order 3"));
	near(a->residual_ss, ss[7], 1e-9);
	anova_free(a);
	data_release(&d);
	strbuf_release(&text);
}

/* A straight line through three places measured twice. Means 1.1 3.0 3.2, slope (3.2 - 1.1) / 2, pure error
 * 0.02 + 0.02 + 0.08; the line misses the means by -17/60, 34/60, -17/60: lack 2 * 6 * (17/60)^2. */
TEST(test_lack_of_fit_as_by_hand)
{
	struct data d = data_text("a,y\n1,1.0\n1,1.2\n2,2.9\n2,3.1\n3,3.4\n3,3.0\n");
	struct anova *a = run(&(struct anova_params){ .table = d.table });

	near(coefficient(a, "a")->estimate, 1.05, 1e-12);
	assert_true(a->has_lack_of_fit);
	near(a->pure_ss, 0.12, 1e-12);
	near(a->lack_ss, 12.0 * 17.0 * 17.0 / 3600.0, 1e-11);
	assert_int_equal(a->pure_df, 3);
	assert_int_equal(a->lack_df, 1);
	near(a->lack_f, 289.0 / 300.0 / 0.04, 1e-11);
	near(a->lack_p, 0.0161997199597561, 1e-9);
	anova_free(a);
	data_release(&d);
}

/* ---- the Courier table ---- */

static const char courier_schema[] =
	"{\"columns\":[{\"name\":\"network\",\"kind\":\"category\"},{\"name\":\"cpus\",\"kind\":\"number\","
	"\"alias\":[\"cpu\"]},"
	"{\"name\":\"njobs\",\"kind\":\"number\"},{\"name\":\"batch\",\"kind\":\"number\"}],"
	"\"decision\":\"batch\",\"targets\":{\"time\":\"time_s\",\"accuracy\":\"accuracy\"}%s}";

static bool courier(struct data *d, bool without_suspects)
{
	const char *path = support_shared_data("courier-bigdl/fullfactorial_rep1.csv");
	struct csv *csv = NULL;
	struct err err = { 0 };
	char schema[1024];

	if (!path)
		return false;
	if (csv_read_file(path, &csv, &err))
		fail_msg("%s", err.text);
	snprintf(schema, sizeof schema, courier_schema,
		 without_suspects ? ",\"exclude\":{\"suspect\":\"yes\"}" : "");
	*d = data_open(csv, schema);
	return true;
}

/* The authors' printed fits: R2 0.705, F 12.742 and R2 0.695, F 28.659. The longer numbers: NumPy (QR) and
 * SciPy. */
TEST(test_courier_numbers_as_the_authors_printed)
{
	static const char *const three[] = { "cpu", "batch", "njobs" };
	struct data d;
	struct anova *a;

	if (!courier(&d, false))
		skip();
	a = run(&(struct anova_params){ .table = d.table });
	assert_int_equal(a->n, 96);
	assert_int_equal(a->model_df, 15);
	assert_int_equal(a->residual_df, 80);
	near(a->r2, 0.7049368613690705, 1e-11);
	near(a->adjusted_r2, 0.6496125228757712, 1e-11);
	near(a->f, 12.741894084363082, 1e-10);
	near(a->p, 1.7010192949113964e-15, 1e-7);
	near(a->residual_sd, 116.92456743552239, 1e-11);
	check_term(a, "network", 1, 26881.761300433, 1.96628368896826, 0.16471137093945);
	check_term(a, "cpus", 1, 62344.1353849121, 4.5602018089569, 0.0357819953001817);
	check_term(a, "njobs", 1, 215168.009663754, 15.7386022091786, 0.000157577996516442);
	check_term(a, "batch", 1, 2063200.33171726, 150.914112880848, 4.2093388228662e-20);
	check_term(a, "cpus:njobs", 1, 69155.6006661644, 5.05843081005603, 0.0272556783096296);
	check_term(a, "cpus:batch", 1, 87734.000594924, 6.41735980056309, 0.0132550741644875);
	check_term(a, "cpus:njobs:batch", 1, 46560.4358027924, 3.40569296956038, 0.0686717228889146);
	/* 20 of 3.7 million: a difference that keeps ten digits of sixteen */
	near(term(a, "network:cpus:njobs:batch")->ss, 19.958605266409, 1e-8);
	near(coefficient(a, "(intercept)")->se, 104.365091590897, 1e-10);
	near(coefficient(a, "batch")->estimate, -0.652839277000139, 1e-10);
	/* t(0.975; 80 df) = 1.990063421254446: its closed form for even df, in 40 digits; SciPy is 1e-10
	 * off */
	near(coefficient(a, "batch")->low, -0.652839277000139 - 1.990063421254446 * 0.353749485923426, 1e-11);
	near(coefficient(a, "batch")->high, -0.652839277000139 + 1.990063421254446 * 0.353749485923426,
	     1e-10);
	near(coefficient(a, "batch")->p, 0.0686669062913662, 1e-9);
	near(coefficient(a, "network=simplenet:cpus")->t, 0.178855872365138, 1e-9);
	anova_free(a);
	a = run(&(struct anova_params){ .table = d.table, .factor = three, .n_factors = 3 });
	near(a->r2, 0.69509343355598, 1e-11);
	near(a->f, 28.659000533602363, 1e-10);
	assert_int_equal(a->residual_df, 88);
	/* without the network every setting was run twice */
	assert_int_equal(a->n_settings, 48);
	assert_int_equal(a->min_replications, 2);
	anova_free(a);
	data_release(&d);
}

TEST(test_courier_levels_log_and_missing_rows_as_in_numpy)
{
	struct data d, clean;
	struct anova *a;

	if (!courier(&d, false) || !courier(&clean, true))
		skip();
	a = run(&(struct anova_params){ .table = d.table, .log = true });
	near(a->r2, 0.8548031593567803, 1e-11);
	check_term(a, "network", 1, 1.04547410660359, 13.3315626041707, 0.000464087122405149);
	check_term(a, "network:cpus:njobs:batch", 1, 0.0269920397906951, 0.344194146953044,
		   0.559070154625703);
	anova_free(a);
	a = run(&(struct anova_params){ .table = d.table, .order = 2, .coding = ANOVA_LEVELS });
	near(a->r2, 0.9415449659348468, 1e-11);
	assert_int_equal(a->residual_df, 57);
	check_term(a, "batch", 3, 2833228.79802345, 248.442995800583, 1.09263013801039e-32);
	check_term(a, "cpus:batch", 9, 152223.864638626, 4.44945274563851, 0.000192659175150071);
	near(coefficient(a, "cpus=8")->estimate, 160.553414625, 1e-10);
	near(coefficient(a, "cpus=8")->se, 47.0896231242132, 1e-10);
	anova_free(a);
	/* 89 rows: unbalanced, where the types of sums of squares part */
	a = run(&(struct anova_params){ .table = clean.table, .order = 2, .coding = ANOVA_LEVELS });
	assert_int_equal(a->n, 89);
	near(a->f, 80.29017656936024, 1e-10);
	check_term(a, "network", 1, 45936.7597413687, 42.6546536499533, 3.25082119186539e-08);
	check_term(a, "cpus", 3, 110944.770350666, 34.3393161977824, 3.40117884522289e-12);
	check_term(a, "network:njobs", 2, 223.873138730756, 0.103938885196214, 0.901474596061256);
	anova_free(a);
	a = run(&(struct anova_params){ .table = clean.table });
	check_term(a, "njobs", 1, 192078.450910591, 16.1092948663033, 0.000143258603305586);
	check_term(a, "network:cpus", 1, 14897.4983361602, 1.24942799324833, 0.267326904162956);
	anova_free(a);
	a = run(&(struct anova_params){ .table = d.table, .target = "accuracy", .order = 1 });
	assert_int_equal(a->n, 53);
	assert_int_equal(a->n_no_target, 43);
	assert_true(noted(a, "43 rows without accuracy"));
	anova_free(a);
	data_release(&d);
	data_release(&clean);
}

TEST(test_courier_two_level_design)
{
	struct data d;
	struct anova *a;

	if (!courier(&d, false))
		skip();
	a = run(&(struct anova_params){ .table = d.table, .extremes = true });
	assert_int_equal(a->n, 16);
	assert_int_equal(a->n_not_extreme, 80);
	assert_int_equal(a->order, 3); /* 16 runs: the interaction of all four is the residual */
	check_term(a, "batch", 1, 825296.2130267967, 1812.230397620577, 0.014951802595107918);
	check_term(a, "cpus:njobs:batch", 1, 46885.93184977556, 102.95468412160422, 0.0625398519199222);
	near(a->r2, 0.9996202395397671, 1e-11);
	anova_free(a);
	data_release(&d);
}

/* ---- awkward tables ---- */

TEST(test_aliased_factor_is_named_and_has_no_df)
{
	struct data d = data_text("a,b,c,y\n1,2,5,1\n2,4,3,3.1\n3,6,5,2\n4,8,1,5\n5,10,4,4.2\n6,12,2,7\n");
	struct anova *a = run(&(struct anova_params){ .table = d.table, .order = 1 });

	assert_true(noted(a, "1 column of the design can be made from the others and is left out: b"));
	assert_int_equal(term(a, "b")->df, 0);
	assert_true(term(a, "b")->ss == 0.0 && isnan(term(a, "b")->f) && isnan(term(a, "b")->p));
	assert_int_equal(a->n_coefficients, 3);
	assert_int_equal(a->residual_df, 3);
	anova_free(a);
	data_release(&d);
}

TEST(test_empty_cell_takes_its_df_from_the_interaction)
{
	/* 3 x 2 levels, (3, 2) never run */
	struct data d = data_text(
		"a,b,y\n1,1,1\n1,1,1.3\n1,2,2\n1,2,2.2\n2,1,3\n2,1,3.3\n2,2,5\n2,2,5.1\n3,1,4\n3,1,4.4\n");
	struct anova *a = run(&(struct anova_params){ .table = d.table, .coding = ANOVA_LEVELS });

	assert_int_equal(term(a, "a:b")->df, 1);
	assert_int_equal(term(a, "a:b")->n_columns, 2);
	assert_true(noted(a, "a=3:b=2"));
	assert_int_equal(a->residual_df, 5);
	anova_free(a);
	data_release(&d);
}

TEST(test_constant_and_missing_cells_are_left_out_and_said)
{
	static const char *const all[] = { "a", "b" };
	struct data d =
		data_text("a,b,w,y\n1,7,x,1\n2,7,z,2.2\n3,7,x,2.9\n4,7,,4\n5,7,z,\n6,7,x,6.3\n7,7,z,7\n");
	struct anova *a = run(&(struct anova_params){ .table = d.table, .order = 1 });

	assert_int_equal(a->n, 5);
	assert_int_equal(a->n_no_target, 1);
	assert_int_equal(a->n_no_factor, 1);
	assert_true(noted(a, "1 row without y"));
	assert_true(noted(a, "1 row in which a factor is missing"));
	assert_int_equal(a->n_factors, 2); /* a and w: b does not vary */
	anova_free(a);
	a = run(&(struct anova_params){ .table = d.table, .factor = all, .n_factors = 2 });
	assert_int_equal(a->n_factors, 1);
	assert_true(noted(a, "b is 7 in all rows"));
	anova_free(a);
	data_release(&d);
}

TEST(test_exact_fit_tests_nothing)
{
	struct data d = data_text("a,y\n1,5.37\n2,8.37\n4,14.37\n5,17.37\n");
	struct anova *a = run(&(struct anova_params){ .table = d.table });

	assert_true(noted(a, "fits every row exactly"));
	assert_true(isnan(a->f) && isnan(term(a, "a")->f) && isnan(coefficient(a, "a")->t));
	near(coefficient(a, "a")->estimate, 3.0, 1e-12);
	assert_true(a->r2 == 1.0);
	anova_free(a);
	data_release(&d);
}

TEST(test_column_unknown_to_the_schema_can_be_factor_or_target)
{
	static const char *const factor[] = { "node", "load" };
	struct data d = data_text("a,y,node,load,watts\n1,1,n1,3,4\n2,2,n2,1,5\n3,3,n1,2,6.5\n4,4,n2,2,6\n5,"
				  "5,n3,1,7\n6,6,n3,9,9\n");
	struct anova *a = run(&(struct anova_params){
		.table = d.table, .factor = factor, .n_factors = 2, .target = "watts", .order = 1 });

	assert_true(a->factor[0].category);
	assert_int_equal(term(a, "node")->df, 2);
	assert_false(a->factor[1].category);
	assert_string_equal(a->target, "watts");
	anova_free(a);
	/* the target is not its own factor */
	a = run(&(struct anova_params){ .table = d.table, .target = "y" });
	assert_int_equal(a->n_factors, 1);
	anova_free(a);
	data_release(&d);
}

TEST(test_mistakes_are_named)
{
	static const char *const wrong[] = { "bb" }, *const twice[] = { "a", "a" }, *const self[] = { "y" };
	struct data d = data_text("a,b,w,y,z\n1,2,p,1,0\n2,2,q,2,1\n3,3,p,4,2\n4,5,r,4,3\n");
	struct data flat = data_text("a,y\n1,2.5\n2,2.5\n3,2.5\n"),
		    few = data_text("a,b,c,y\n1,2,3,4\n2,5,1,7\n");
	struct err err = { 0 };

	assert_int_equal(
		fails(&(struct anova_params){ .table = d.table, .factor = wrong, .n_factors = 1 }, &err),
		-ERR_ARG);
	assert_non_null(strstr(err.text, "did you mean 'b'"));
	assert_int_equal(
		fails(&(struct anova_params){ .table = d.table, .factor = twice, .n_factors = 2 }, &err),
		-ERR_ARG);
	assert_non_null(strstr(err.text, "twice"));
	assert_int_equal(
		fails(&(struct anova_params){ .table = d.table, .factor = self, .n_factors = 1 }, &err),
		-ERR_ARG);
	assert_int_equal(fails(&(struct anova_params){ .table = d.table, .target = "nothing" }, &err),
			 -ERR_ARG);
	assert_int_equal(fails(&(struct anova_params){ .table = d.table, .target = "w" }, &err), -ERR_FORMAT);
	assert_int_equal(fails(&(struct anova_params){ .table = d.table, .target = "z", .log = true }, &err),
			 -ERR_NUMERIC);
	assert_non_null(strstr(err.text, "text:2: z is 0"));
	assert_int_equal(fails(&(struct anova_params){ .table = flat.table }, &err), -ERR_NODATA);
	assert_non_null(strstr(err.text, "no variation"));
	assert_int_equal(fails(&(struct anova_params){ .table = few.table }, &err), -ERR_NODATA);
	data_release(&d);
	data_release(&flat);
	data_release(&few);
}

TEST(test_squares_too_large_are_refused)
{
	struct data d = data_text("a,y\n1,1e200\n2,3e200\n3,2e200\n4,9e200\n");
	struct data x = data_text(
		"a,b,y\n1e200,1e200,1\n2e200,5e200,2\n3e200,2e200,4\n1e200,3e200,4\n4e200,3e200,3\n");
	struct err err = { 0 };

	assert_int_equal(fails(&(struct anova_params){ .table = d.table }, &err), -ERR_NUMERIC);
	assert_int_equal(fails(&(struct anova_params){ .table = x.table }, &err), -ERR_NUMERIC);
	assert_non_null(strstr(err.text, "a:b"));
	data_release(&d);
	data_release(&x);
}

/* Whatever the table: sums of squares and F are not negative, probabilities are probabilities, and moving a
 * number's origin changes no sum of squares. */
TEST(test_relations_that_always_hold)
{
	struct rng r = rng_stream(17, 0);

	for (int round = 0; round < 60; round++) {
		struct strbuf text[2] = { { 0 }, { 0 } };
		size_t n = 6 + rng_below(&r, 30);
		struct anova *a[2];
		struct data d[2];

		for (int k = 0; k < 2; k++)
			strbuf_puts(&text[k], "a,b,w,y\n");
		for (size_t i = 0; i < n; i++) {
			unsigned x = 1 + rng_below(&r, 3), z = rng_below(&r, 4);
			double y = 50.0 + rng_normal(&r);

			for (unsigned k = 0; k < 2; k++)
				strbuf_printf(&text[k], "%u,%u,%s,%.17g\n", x + 1000 * k, z,
					      rng_mix(i) % 2 ? "on" : "off", y);
		}
		for (int k = 0; k < 2; k++) {
			d[k] = data_text(strbuf_text(&text[k]));
			a[k] = run(
				&(struct anova_params){ .table = d[k].table,
							.order = 2,
							.coding = round % 2 ? ANOVA_LEVELS : ANOVA_NUMBERS });
		}
		for (size_t i = 0; i < a[0]->n_terms; i++) {
			const struct anova_term *t = &a[0]->term[i];

			assert_true(t->ss >= 0.0 && t->share <= 1.0 + 1e-12);
			assert_true(isnan(t->f) || (t->f >= 0.0 && t->p >= 0.0 && t->p <= 1.0));
			assert_int_equal(a[1]->term[i].df, t->df);
			assert_true(fabs(a[1]->term[i].ss - t->ss) <= 1e-9 * a[0]->total_ss);
		}
		assert_true(a[0]->r2 >= 0.0 && a[0]->r2 <= 1.0);
		for (int k = 0; k < 2; k++) {
			anova_free(a[k]);
			data_release(&d[k]);
			strbuf_release(&text[k]);
		}
	}
}

TEST(test_many_factors_reduce_the_order)
{
	static const char *const name[] = { "f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9" };
	struct strbuf text = { 0 };
	struct rng r = rng_stream(23, 0);
	struct data d;
	struct anova *a;

	strbuf_puts(&text, "a,y");
	for (int j = 0; j < 10; j++)
		strbuf_printf(&text, ",%s", name[j]);
	for (int i = 0; i < 300; i++) {
		strbuf_printf(&text, "\n1,%.17g", 50.0 + rng_normal(&r));
		for (int j = 0; j < 10; j++)
			strbuf_printf(&text, ",%.6f", rng_uniform(&r));
	}
	d = data_text(strbuf_text(&text));
	a = run(&(struct anova_params){ .table = d.table, .factor = name, .n_factors = 10 });
	assert_int_equal(a->order, 3); /* 10 + 45 + 120 terms; with 210 more there are no 300 rows */
	assert_int_equal(a->n_terms, 175);
	assert_true(noted(a, "reduced"));
	anova_free(a);
	data_release(&d);
	strbuf_release(&text);
}

TEST(test_no_memory_is_reported_at_every_allocation)
{
	struct data d =
		data_text("a,b,w,y\n1,2,p,1\n2,2,q,2\n3,3,p,4\n4,5,r,4\n5,9,p,1\n6,2,r,\n7,1,q,3\n8,2,p,7\n");
	bool met = true;

	for (unsigned long k = 1; met; k++) {
		struct strbuf svg = { 0 };
		struct anova *a = NULL;
		struct err err = { 0 };
		int rc;

		mem_fail_at(k, false);
		rc = anova_run(&(struct anova_params){ .table = d.table }, &a, &err);
		if (!rc)
			rc = anova_plot(a, &svg, &err);
		met = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, met ? -ERR_NOMEM : 0);
		anova_free(a);
		strbuf_release(&svg);
	}
	data_release(&d);
}

/* ---- the pictures ---- */

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (text = strstr(text, what); text; text = strstr(text + 1, what))
		n++;
	return n;
}

TEST(test_plot_has_a_panel_for_each_factor_and_pair)
{
	struct data d = data_text("a,b,w,y\n1,2,\"<x>&\"\"'\",1\n2,2,\"<x>&\"\"'\",2\n3,3,q,4\n4,3,q,5\n1,3,"
				  "q,2.5\n2,2,q,2.2\n");
	struct anova *a = run(&(struct anova_params){ .table = d.table, .order = 1 });
	struct strbuf svg = { 0 };
	struct err err = { 0 };

	assert_int_equal(anova_plot(a, &svg, &err), 0);
	assert_int_equal(count(strbuf_text(&svg), "<g class=\"panel\""), 3 + 3);
	assert_int_equal(count(strbuf_text(&svg), "<svg "), 1);
	assert_int_equal(count(strbuf_text(&svg), "</svg>"), 1);
	assert_int_equal(count(strbuf_text(&svg), "<script"), 0);
	assert_int_equal(count(strbuf_text(&svg), "<x>"), 0); /* names are escaped */
	assert_true(count(strbuf_text(&svg), "&lt;x&gt;&amp;&quot;&apos;") > 0);
	assert_int_equal(count(strbuf_text(&svg), "nan"), 0);
	assert_int_equal(count(strbuf_text(&svg), "http"), 1); /* the name of the SVG language itself */
	strbuf_release(&svg);
	anova_free(a);
	data_release(&d);
}

TEST(test_plot_bins_a_factor_of_many_levels)
{
	struct strbuf text = { 0 }, svg = { 0 };
	struct rng r = rng_stream(2, 0);
	struct err err = { 0 };
	struct data d;
	struct anova *a;

	strbuf_puts(&text, "a,b,w,y\n");
	for (int i = 0; i < 400; i++)
		strbuf_printf(&text, "%.9f,%u,w%u,%.9f\n", rng_uniform(&r), rng_below(&r, 30),
			      rng_below(&r, 40), exp(rng_normal(&r)));
	d = data_text(strbuf_text(&text));
	a = run(&(struct anova_params){ .table = d.table, .order = 1, .log = true });
	assert_int_equal(anova_plot(a, &svg, &err), 0);
	assert_true(svg.len < 100000);
	assert_int_equal(count(strbuf_text(&svg), "nan"), 0);
	strbuf_release(&svg);
	strbuf_release(&text);
	anova_free(a);
	data_release(&d);
}

/* ---- copies of one run ---- */

/* Two runs of each setting with one, two or three copies; the run means are 10, 12 | 20, 22 | 14, 18 | 26, 30
 * for (a, b) = (-1, -1), (1, -1), (-1, 1), (1, 1). By hand: the grand mean is 19, the effects are 5.5, 3 and
 * 0.5, the sums of squares 242, 72 and 2. The errors within the pairs are 2 + 2 + 8 + 8 = 20 on 4 df. p is by
 * the closed form of Student's t with 4 df. */
static const char with_copies[] = "a,b,replication,copy,y\n"
				  "-1,-1,1,1,10\n"
				  "-1,-1,2,1,11\n-1,-1,2,2,13\n"
				  "1,-1,1,1,18\n1,-1,1,2,22\n"
				  "1,-1,2,1,22\n"
				  "-1,1,1,1,13\n-1,1,1,2,14\n-1,1,1,3,15\n"
				  "-1,1,2,1,18\n"
				  "1,1,1,1,26\n"
				  "1,1,2,1,28\n1,1,2,2,29\n1,1,2,3,33\n";

TEST(test_a_run_is_the_mean_of_its_copies)
{
	struct data d = data_text(with_copies);
	struct anova *a = run(&(struct anova_params){ .table = d.table });

	assert_int_equal(a->n, 8);
	assert_int_equal(a->n_copies, 14);
	assert_int_equal(a->residual_df, 4);
	near(a->residual_ss, 20.0, 1e-12);
	check_term(a, "a", 1, 242.0, 242.0 / 5.0, 0.002243306286);
	check_term(a, "b", 1, 72.0, 72.0 / 5.0, 0.01919046558);
	check_term(a, "a:b", 1, 2.0, 2.0 / 5.0, 0.5614380443);
	near(coefficient(a, "a")->estimate, 5.5, 1e-12);
	assert_int_equal(a->min_replications, 2);
	assert_int_equal(a->max_replications, 2);
	anova_free(a);
	a = run(&(struct anova_params){ .table = d.table, .log = true });
	near(a->y[0], log(10.0), 1e-12);
	near(a->y[1], log(12.0), 1e-12); /* of the mean of 11 and 13, not the mean of their logarithms */
	anova_free(a);
	data_release(&d);
}

TEST(test_a_copy_s_number_that_comes_again_begins_a_run)
{
	struct data d = data_text("a,copy,y\n0,1,1\n0,2,3\n0,1,4\n0,2,6\n1,1,9\n1,1,12\n");
	struct anova *a = run(&(struct anova_params){ .table = d.table });

	assert_int_equal(a->n, 4);
	near(a->y[0], 2.0, 1e-12);
	near(a->y[1], 5.0, 1e-12);
	near(a->y[3], 12.0, 1e-12);
	anova_free(a);
	data_release(&d);
}

TEST(test_copies_that_differ_in_a_factor_are_rows_and_that_is_said)
{
	static const char *const factor[] = { "a", "copy" };
	struct data d = data_text("a,copy,y\n0,1,1\n0,2,3\n0,1,4\n0,2,6\n1,1,9\n1,2,12\n");
	struct anova *a = run(&(struct anova_params){ .table = d.table, .factor = factor, .n_factors = 2 });
	struct err err = { 0 };

	assert_int_equal(a->n, 6);
	assert_true(noted(a, "they are not independent"));
	anova_free(a);
	data_release(&d);
	d = data_text("a,copy,y,z\n0,1,1,1\n0,2,1,-3\n0,1,1,4\n1,1,1,9\n1,2,1,12\n");
	assert_int_equal(fails(&(struct anova_params){ .table = d.table, .target = "z", .log = true }, &err),
			 -ERR_NUMERIC);
	assert_non_null(strstr(err.text, "text:3: z is -3"));
	data_release(&d);
}

/* The published profile: 648 rows, 216 runs. Its figures are in docs/MEASURED.md. */
TEST(test_the_two_core_profile_has_216_runs)
{
	struct csv *csv = NULL;
	struct schema *schema = NULL;
	struct table *t = NULL;
	struct anova *a;

	assert_int_equal(csv_read_file("configs/profiles/two-cores/runs.csv", &csv, NULL), 0);
	assert_int_equal(schema_default(&schema, NULL), 0);
	assert_int_equal(table_read(csv, schema, TABLE_NEEDS_TARGETS, &t, NULL), 0);
	a = run(&(struct anova_params){ .table = t });
	assert_int_equal(a->n, 216);
	assert_int_equal(a->n_copies, 648);
	near(term(a, "njobs")->share, 0.470, 1e-3);
	near(term(a, "network")->share, 0.393, 1e-3);
	near(term(a, "cpus")->p, 0.113, 0.01);
	anova_free(a);
	table_free(t);
	csv_free(csv);
	schema_free(schema);
}

/* ---- 2^k r designs by the sign table ---- */

/* The table above in raw units: a is 2 and 9, b a word. The levels between go, and the effects are those of
 * -1 and +1: 5.5, 3 and 0.5. Their standard error is sqrt(5 / 8), and 95 % of Student's t with 4 df are
 * within 2.776445. */
TEST(test_effects_of_a_two_level_design_as_by_hand)
{
	static const char *const name[] = { "(intercept)", "a", "w", "a:w" };
	static const double effect[] = { 19.0, 5.5, 3.0, 0.5 };
	struct data d = data_text("a,w,y\n2,dry,10\n2,dry,12\n9,dry,20\n9,dry,22\n2,wet,14\n2,wet,18\n"
				  "9,wet,26\n9,wet,30\n5,dry,1000\n");
	struct anova *a = run(&(struct anova_params){ .table = d.table, .extremes = true });

	assert_true(a->signs);
	assert_int_equal(a->n, 8);
	assert_int_equal(a->n_coefficients, 4);
	for (size_t i = 0; i < 4; i++) {
		const struct anova_coefficient *c = coefficient(a, name[i]);

		near(c->estimate, effect[i], 1e-12);
		near(c->se, sqrt(5.0 / 8.0), 1e-9);
		near(c->high - c->estimate, 2.7764451 * sqrt(5.0 / 8.0), 1e-7);
	}
	near(term(a, "a")->share, 242.0 / 336.0, 1e-9); /* the allocation of variation */
	near(term(a, "w")->share, 72.0 / 336.0, 1e-9);
	near(a->fitted[0], 11.0, 1e-12);
	near(a->fitted[7], 28.0, 1e-12);
	anova_free(a);
	data_release(&d);
	d = data_text("a,w,y\n1,x,1\n2,x,2\n1,y,3\n2,y,5\n1,z,8\n2,z,9\n1,z,8.5\n");
	a = run(&(struct anova_params){ .table = d.table, .extremes = true, .order = 1 });
	assert_false(a->signs); /* three words are not a two-level factor */
	assert_non_null(coefficient(a, "w=y"));
	anova_free(a);
	data_release(&d);
}

/* ---- residual checks ---- */

enum oddity { EVEN, GROWING, DRIFTING, SPIKED };

static struct anova_check check_of(enum oddity odd, bool log, struct strbuf *text, struct strbuf *svg)
{
	struct rng rng = rng_stream(41, odd);
	struct strbuf table = { 0 };
	struct anova_check c;
	struct anova *a;
	struct data d;

	strbuf_puts(&table, "a,b,y\n");
	for (size_t i = 0; i < 180; i++) {
		double x = (double)(i * 7 % 3), b = (double)(i * 5 % 4), mean = 10.0 + 20.0 * x + 5.0 * b;
		double e = rng_normal(&rng);

		if (odd == GROWING)
			mean *= exp(0.2 * e);
		else if (odd == DRIFTING)
			mean += 0.5 * e + 2.0 * sin((double)i / 20.0);
		else
			mean += odd == SPIKED && i % 36 == 0 ? 8.0 * fabs(e) + 6.0 : 0.5 * e;
		strbuf_printf(&table, "%g,%g,%.9g\n", x, b, mean);
	}
	d = data_text(strbuf_text(&table));
	a = run(&(struct anova_params){ .table = d.table, .order = 1, .coding = ANOVA_LEVELS, .log = log });
	assert_int_equal(anova_check(a, &c, NULL), 0);
	anova_check_text(a, &c, text);
	assert_int_equal(anova_residual_plot(a, &c, svg, NULL), 0);
	anova_free(a);
	data_release(&d);
	strbuf_release(&table);
	return c;
}

static void assert_checked(enum oddity odd, bool log, bool wants_log, bool normal, bool order,
			   const char *says)
{
	struct strbuf text = { 0 }, svg = { 0 };
	struct anova_check c = check_of(odd, log, &text, &svg);

	assert_int_equal(c.wants_log, wants_log);
	assert_int_equal(c.normal >= 0.95, normal);
	assert_int_equal(fabs(c.after) <= c.after_limit, order);
	if (!strstr(strbuf_text(&text), says))
		fail_msg("%s", strbuf_text(&text));
	assert_non_null(strstr(strbuf_text(&svg), "Normal quantiles"));
	assert_non_null(strstr(strbuf_text(&svg), "Spread against mean"));
	assert_null(strstr(strbuf_text(&svg), "nan"));
	strbuf_release(&text);
	strbuf_release(&svg);
}

TEST(test_residual_checks_say_what_is_odd)
{
	assert_checked(EVEN, false, false, true, true, "spread alike at small and large values");
	assert_checked(GROWING, false, true, true, true, "add --log");
	assert_checked(GROWING, true, false, true, true, "spread alike");
	assert_checked(DRIFTING, false, false, true, false, "the machine changed while it was measured");
	assert_checked(SPIKED, false, false, false, true, "not normal");
}

TEST(test_an_exact_fit_has_no_residuals_to_check)
{
	struct data d = data_text("a,y\n1,1\n1,1\n2,2\n2,2\n");
	struct anova *a = run(&(struct anova_params){ .table = d.table });
	struct anova_check c;

	assert_int_equal(anova_check(a, &c, NULL), 0);
	assert_true(c.none);
	anova_free(a);
	data_release(&d);
}
