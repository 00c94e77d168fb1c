/* predictors/models/mixed, search/train_mixed: runs beside jobs of another kind, from the table to the model
 * file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predictors/search/train.h"
#include "tests/support/test.h"

static const char grid_text[] = "{\"hybrid\":{\"trees\":[10]}}";

struct school {
	struct csv *csv;
	struct schema *schema;
	struct table *table;
	struct grid *grid;
	struct model *model;
};

/* Times of 10 s and 512 / batch of noise-free sharing; `beside` rows take 1.5 times as long. */
static void put_rows(struct strbuf *b, bool mixed)
{
	strbuf_printf(b, "network,cpus,njobs,batch,epochs,samples,time_s,accuracy%s\n",
		      mixed ? ",beside" : "");
	for (int i = 0; i < 48; i++) {
		int batch = 64 << i % 4, jobs = 1 + i / 4 % 2;
		double time_s = (2.0 + 640.0 / batch) * jobs * (1.0 + 0.004 * (i * 7 % 11 - 5));

		strbuf_printf(b, "%s,1,%d,%d,1,1000,%.5f,0.9%s\n", i % 3 ? "lenet5" : "simplenet", jobs,
			      batch, time_s, mixed ? "," : "");
	}
	for (int i = 0; i < 4 && mixed; i++)
		strbuf_printf(b, "lenet5,1,2,%d,1,1000,%.5f,0.9,%s\n", 64 << i,
			      1.5 * 2.0 * (2.0 + 640.0 / (64 << i)),
			      i % 2 ? "loud" : "\"loud network=vgg,data=big\"");
}

static void learn(struct school *s, bool mixed)
{
	struct strbuf text = { 0 };
	struct json *v = NULL;
	struct err err = { 0 };
	struct train_report report;
	struct train_params p = { .split = { .kind = SPLIT_KFOLD, .folds = 5, .seed = 1 },
				  .ctx = { .seed = 1 },
				  .data_name = "t.csv" };

	*s = (struct school){ 0 };
	put_rows(&text, mixed);
	if (schema_default(&s->schema, &err) || csv_parse("t.csv", text.text, text.len, &s->csv, &err) ||
	    table_read(s->csv, s->schema, TABLE_NEEDS_TARGETS, &s->table, &err) ||
	    json_parse("g", grid_text, strlen(grid_text), &v, &err) || grid_from_json("g", v, &s->grid, &err))
		fail_msg("%s", err.text);
	json_free(v);
	p.table = s->table;
	p.grid = p.accuracy_grid = s->grid;
	if (train_model(&p, &s->model, &report, &err))
		fail_msg("%s", err.text);
	train_report_release(&report);
	strbuf_release(&text);
}

static void leave(struct school *s)
{
	model_free(s->model);
	grid_free(s->grid);
	table_free(s->table);
	schema_free(s->schema);
	csv_free(s->csv);
}

static double time_at(const struct school *s, size_t row)
{
	double x[64], y = NAN, *all = NULL;
	struct table *t = NULL;

	assert_int_equal(table_read(s->csv, s->model->schema, TABLE_NEEDS_TARGETS, &t, NULL), 0);
	assert_int_equal(features_encode_table(s->model->features, t, &all, NULL), 0);
	table_free(t);
	memcpy(x, all + row * s->model->features->n, s->model->features->n * sizeof *x);
	predictor_predict(&s->model->time.predictor, x, 1, &y);
	free(all);
	return y;
}

TEST(test_the_model_of_time_does_not_learn_from_runs_beside_others)
{
	struct school plain, with;

	learn(&plain, false);
	learn(&with, true);
	assert_int_equal(with.model->time.n_rows, plain.model->time.n_rows);
	assert_int_equal(with.model->accuracy.n_rows, plain.model->accuracy.n_rows + 4);
	for (size_t i = 0; i < 48; i++)
		assert_true(fabs(time_at(&with, i) / time_at(&plain, i) - 1.0) < 1e-9);
	assert_int_equal(plain.model->mixed.n, 0);
	leave(&plain);
	leave(&with);
}

TEST(test_runs_beside_others_are_kept_with_what_they_took)
{
	struct school s;
	const struct mixed_runs *m;
	double level = 0.0;
	size_t plain = 0;

	learn(&s, true);
	m = &s.model->mixed;
	assert_true(m->n > 4);
	for (size_t i = 0; i < m->n; i++) {
		assert_string_equal(m->run[i].of, "network=lenet5");
		if (i < 4) {
			assert_string_equal(m->run[i].beside, i % 2 ? "loud" : "loud network=vgg,data=big");
			assert_true(fabs(m->run[i].score - log(1.5)) < 0.06);
			assert_true(m->run[i].held == 1.0 && m->run[i].processes == 2.0);
		} else {
			assert_string_equal(m->run[i].beside, "");
			assert_true(m->run[i].held == 0.0);
			level += m->run[i].score;
			plain++;
		}
	}
	assert_int_equal(plain, 32);
	assert_true(fabs(level / (double)plain) < 0.03);
	leave(&s);
}

TEST(test_they_come_back_from_a_file_and_damage_is_refused)
{
	struct school s;
	struct writer w = { 0 }, part = { 0 };
	struct model *back = NULL;
	struct mixed_runs got = { 0 };
	struct err err = { 0 };

	learn(&s, true);
	assert_int_equal(model_encode(s.model, &w, &err), 0);
	assert_int_equal(model_decode("m", w.out.text, w.out.len, &back, &err), 0);
	assert_int_equal(back->mixed.n, s.model->mixed.n);
	for (size_t i = 0; i < back->mixed.n; i++) {
		assert_string_equal(back->mixed.run[i].beside, s.model->mixed.run[i].beside);
		assert_true(back->mixed.run[i].score == s.model->mixed.run[i].score);
	}
	mixed_save(&s.model->mixed, &part);
	for (size_t len = 0; len < part.out.len; len++) {
		struct reader r = { .bytes = (const unsigned char *)part.out.text, .len = len };

		if (!mixed_load(&r, &got, &err))
			assert_true(r.failed); /* the caller sees that, too */
		mixed_release(&got);
	}
	part.out.text[0] = part.out.text[1] = (char)0xff;
	assert_int_equal(mixed_load(&(struct reader){ .bytes = (const unsigned char *)part.out.text,
						      .len = part.out.len },
				    &got, &err),
			 -ERR_FORMAT);
	model_free(back);
	strbuf_release(&w.out);
	strbuf_release(&part.out);
	leave(&s);
}

TEST(test_neighbours_are_a_type_or_categories_or_both)
{
	char type[32];

	assert_string_equal(mixed_neighbour("mlp", type, sizeof type), "");
	assert_string_equal(type, "mlp");
	assert_string_equal(mixed_neighbour("mlp a=b,c=d", type, sizeof type), "a=b,c=d");
	assert_string_equal(type, "mlp");
	assert_string_equal(mixed_neighbour("a=b", type, sizeof type), "a=b");
	assert_string_equal(type, "");
	assert_null(mixed_neighbour("mlp a=b c=d", type, sizeof type));
	assert_null(mixed_neighbour("a=b mlp", type, sizeof type));
	assert_null(mixed_neighbour("", type, sizeof type));
	assert_null(mixed_neighbour("a-name-that-is-longer-than-there-is-room", type, sizeof type));
}

TEST(test_a_table_with_other_words_is_refused_with_its_line)
{
	static const char text[] = "network,cpus,njobs,batch,time_s,beside\n"
				   "lenet5,1,1,64,2.5,\nlenet5,1,2,64,3.5,two words here\n";
	struct csv *csv = NULL;
	struct schema *schema = NULL;
	struct table *t = NULL;
	struct err err = { 0 };

	assert_int_equal(schema_default(&schema, &err), 0);
	assert_int_equal(csv_parse("t.csv", text, sizeof text - 1, &csv, &err), 0);
	assert_int_equal(table_read(csv, schema, TABLE_NEEDS_TARGETS, &t, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "t.csv:3: column beside: 'two words here' names no neighbours"));
	csv_free(csv);
	schema_free(schema);
}

/* The daemon appends its observations to the operator's table. */
TEST(test_a_table_made_of_others_keeps_them)
{
	struct school s;
	struct table_builder *b = NULL;
	struct table *t = NULL;
	const struct table_value row[] = { { "network", "lenet5", NAN },
					   { "cpus", NULL, 1.0 },
					   { "njobs", NULL, 1.0 },
					   { "batch", NULL, 64.0 },
					   { "time_s", NULL, 3.0 } };
	struct err err = { 0 };

	learn(&s, true);
	assert_int_equal(table_builder_new("b", s.schema, &b, &err), 0);
	for (int i = 0; i < 70; i++)
		assert_int_equal(table_builder_row(b, row, 5, &err), 0);
	assert_int_equal(table_builder_append(b, s.table, &err), 0);
	for (int i = 0; i < 200; i++)
		assert_int_equal(table_builder_row(b, row, 5, &err), 0);
	assert_int_equal(table_builder_finish(b, TABLE_NEEDS_TARGETS, &t, &err), 0);
	assert_null(t->beside[0]);
	assert_string_equal(t->beside[70 + 49], "loud");
	assert_true(isnan(t->time[70 + 49]) && t->mixed_time[70 + 49] == s.table->mixed_time[49]);
	assert_null(t->beside[t->n_rows - 1]);
	assert_true(isnan(t->mixed_time[t->n_rows - 1]));
	table_free(t);
	table_builder_free(b);
	leave(&s);
}
