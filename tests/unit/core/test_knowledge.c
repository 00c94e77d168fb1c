/* scheduler/core/admit/knowledge: which jobs the model knows, and what is strange about the others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/core/admit/knowledge.h"
#include "tests/support/test.h"

/* What training leaves of a table: a schema and the features; no more is looked at. */
static struct model *model_of(const char *table)
{
	struct model *m = calloc(1, sizeof *m);
	struct csv *csv = NULL;
	struct table *t = NULL;
	struct err err = { 0 };

	if (schema_default(&m->schema, &err) || csv_parse("t", table, strlen(table), &csv, &err) ||
	    table_read(csv, m->schema, true, &t, &err) || features_fit(t, &m->features, &err))
		fail_msg("%s", err.text);
	table_free(t);
	csv_free(csv);
	return m;
}

static void ask(const struct model *m, const char *job, bool open, const char *expected)
{
	struct job_values v;
	struct err err = { 0 };
	char why[128] = "untouched";
	bool knows;

	assert_int_equal(job_values_init(&v, m->schema, NULL), 0);
	if (*job && job_values_parse(&v, m->schema, job, &err))
		fail_msg("%s", err.text);
	knows = model_knows(m, &v, open, why, sizeof why);
	if (knows != !*expected || strcmp(why, expected))
		fail_msg("%s: '%s', not '%s'", job, why, expected);
	assert_int_equal(model_knows(m, &v, open, NULL, 0), knows);
	job_values_release(&v);
}

static const char two[] = "network,cpus,njobs,batch,epochs,time_s\n"
			  "lenet5,1,1,64,2,3\nlenet5,2,1,128,4,4\nsimplenet,1,2,64,2,5\n";
static const char three[] = "network,cpus,njobs,batch,time_s\n"
			    "lenet5,1,1,64,3\nresnet,1,1,128,4\nsimplenet,1,2,64,5\n";
static const char one[] = "network,cpus,njobs,batch,time_s\nlenet5,1,1,64,3\nlenet5,2,1,128,4\n";

TEST(test_jobs_like_those_of_training_are_known)
{
	struct model *m = model_of(two);

	ask(m, "network=lenet5,cpus=1,epochs=2", false, "");
	ask(m, "network=simplenet,cpus=2,epochs=4", false, "");
	ask(m, "network=simplenet,cpus=200,epochs=400,samples=7", false,
	    ""); /* far away, but of a known kind */
	model_free(m);
	m = model_of(three);
	ask(m, "network=resnet,cpus=3", false, "");
	ask(m, "network=resnet", false, ""); /* cpus never changed */
	model_free(m);
}

TEST(test_a_category_never_seen_is_not_known)
{
	struct model *m = model_of(two);

	ask(m, "network=resnet,cpus=1,epochs=2", false, "the model has never seen network 'resnet'");
	model_free(m);
	m = model_of(three);
	ask(m, "network=vgg,cpus=1", false, "the model has never seen network 'vgg'");
	model_free(m);
	m = model_of(one);
	ask(m, "network=lenet5,cpus=1", false, "");
	ask(m, "network=resnet,cpus=1", false, "the model has never seen network 'resnet'");
	model_free(m);
}

TEST(test_what_training_told_jobs_apart_by_must_be_said)
{
	struct model *m = model_of(two);

	ask(m, "cpus=1,epochs=2", false, "the model tells jobs apart by network");
	ask(m, "network=lenet5,epochs=2", false, "the model tells jobs apart by cpus");
	ask(m, "network=lenet5,cpus=1", false, "the model tells jobs apart by epochs");
	ask(m, "network=lenet5,cpus=1", true, ""); /* they are part of the decision */
	ask(m, "", false, "the model tells jobs apart by network");
	model_free(m);
	m = model_of(one);
	ask(m, "cpus=1", false, ""); /* one network alone: nothing to tell apart */
	model_free(m);
}
