/* A job type from a description of the job: the design that `postrider profile` measures by. What varies
 * there is a parameter here, so that names, kinds and values are written once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/config/type_parts.h"
#include "scheduler/profiler/design.h"

/* The levels of a factor of numbers, ascending; v has room for PROFILE_MAX_LEVELS. */
static void levels_of(const struct profile_factor *f, double *v)
{
	for (size_t i = 0; i < f->n_levels; i++) {
		double level = 0.0;
		size_t at = i;

		text_number(f->level[i], &level);
		for (; at && v[at - 1] > level; at--)
			v[at] = v[at - 1];
		v[at] = level;
	}
}

static void take_batches(struct fields *f, const struct profile_factor *from, struct job_type *t)
{
	double v[PROFILE_MAX_LEVELS];

	if (!from->number || from->n_levels > JOB_TYPE_MAX_BATCHES) {
		fields_fail(f, ERR_FORMAT, "job", "its batches are not numbers");
		return;
	}
	levels_of(from, v);
	if (!(v[0] >= 1.0 && v[0] == floor(v[0]))) {
		fields_fail(f, ERR_FORMAT, "job", "its batch %g is not a whole number from 1 on", v[0]);
		return;
	}
	memcpy(t->batch, v, from->n_levels * sizeof *v);
	t->n_batches = from->n_levels;
}

static void take_cpus(struct fields *f, const struct profile_factor *from, struct job_type *t)
{
	double v[PROFILE_MAX_LEVELS];

	levels_of(from, v);
	if (!from->number || !(v[0] >= 1.0 && v[from->n_levels - 1] <= JOB_TYPE_MAX_CPUS)) {
		fields_fail(f, ERR_FORMAT, "job", "its cpus are not numbers from 1 to %d", JOB_TYPE_MAX_CPUS);
		return;
	}
	t->cpus_min = t->cpus_default = (uint32_t)v[0];
	t->cpus_max = (uint32_t)v[from->n_levels - 1];
}

/* epochs: how many a job has that says none; NULL: the levels are the range it may choose from. */
static void take_number(struct fields *f, const struct profile_factor *from, const char *epochs,
			struct job_param *p)
{
	double v[PROFILE_MAX_LEVELS];
	char text[PROFILE_MAX_VALUE], level[TEXT_NUMBER];
	bool whole = true;

	levels_of(from, v);
	for (size_t i = 0; i < from->n_levels; i++)
		whole &= v[i] == floor(v[i]);
	p->kind = whole ? PARAM_INTEGER : PARAM_NUMBER;
	p->min = v[0];
	p->max = v[from->n_levels - 1];
	snprintf(text, sizeof text, "%s", text_shortest(v[from->n_levels / 2], level));
	if (whole && !strcmp(from->name, "epochs")) {
		/* Others than those measured are possible; how long they take is for the bounds to say. */
		p->min = 1.0;
		p->max = fmax(EPOCHS_MAX, p->max);
		if (epochs)
			snprintf(text, sizeof text, "%s", epochs);
		else if (from->n_levels > 1)
			snprintf(text, sizeof text, "%.0f..%.0f", fmax(v[0], 1.0), v[from->n_levels - 1]);
	}
	p->otherwise = mem_strdup(text);
	if (!p->otherwise)
		fields_nomem(f, "job");
}

/* Nothing depends on it, so a job may have any other. */
static void take_free(struct fields *f, const struct profile_factor *from, struct job_param *p)
{
	p->kind = PARAM_WORD;
	p->min = p->max = NAN;
	p->free = true;
	p->otherwise = mem_strdup(from->level[0]);
	if (!p->otherwise)
		fields_nomem(f, "job");
}

static void take_words(struct fields *f, const struct profile_factor *from, struct job_param *p)
{
	p->kind = PARAM_WORD;
	p->min = p->max = NAN;
	p->word = mem_calloc(from->n_levels + 1, sizeof *p->word);
	p->otherwise = mem_strdup(from->level[0]);
	if (!p->word || !p->otherwise)
		fields_nomem(f, "job");
	for (size_t i = 0; i < from->n_levels && !f->rc; i++) {
		if (!param_word_is_text(from->level[i])) {
			fields_fail(f, ERR_FORMAT, "job", "a value of %s is empty, or longer than %d bytes",
				    from->name, JOB_TYPE_MAX_VALUE);
			return;
		}
		p->word[i] = mem_strdup(from->level[i]);
		if (!p->word[i])
			fields_nomem(f, "job");
		else
			p->n_words++;
	}
}

static void take_param(struct fields *f, const struct profile_factor *from, const char *epochs,
		       struct job_type *t)
{
	struct job_param *p = &t->param[t->n_params];

	if (param_name_is_taken(from->name) && strcmp(from->name, "lr")) {
		fields_fail(f, ERR_FORMAT, "job",
			    "the factor '%s' has the name of something Postrider sets; call it "
			    "otherwise",
			    from->name);
		return;
	}
	t->n_params++;
	p->name = mem_strdup(from->name);
	if (!p->name)
		fields_nomem(f, "job");
	else if (from->free)
		take_free(f, from, p);
	else if (from->number)
		take_number(f, from, epochs, p);
	else
		take_words(f, from, p);
}

/* A learning rate that does not vary is that of every batch. One that was measured at several values is a
 * parameter, in place of a rule by which it goes with the batch. */
static void take_lr(struct fields *f, const struct profile_factor *from, struct job_type *t)
{
	if (!from->number)
		fields_fail(f, ERR_FORMAT, "job", "its learning rates (lr) are not numbers");
	else if (from->n_levels == 1)
		text_number(from->level[0], &t->lr_base);
	else
		take_param(f, from, NULL, t);
}

static void take_factors(struct fields *f, const struct profile_design *d, struct job_type *t)
{
	t->param = mem_calloc(JOB_TYPE_MAX_PARAMS, sizeof *t->param);
	if (!t->param)
		fields_nomem(f, "job");
	for (size_t i = 0; i < d->n_factors + d->n_fixed && !f->rc; i++) {
		const struct profile_factor *from = profile_factor_at(d, i);

		if (!strcmp(from->name, "batch"))
			take_batches(f, from, t);
		else if (!strcmp(from->name, "cpus"))
			take_cpus(f, from, t);
		else if (!strcmp(from->name, "lr"))
			take_lr(f, from, t);
		else if (strcmp(from->name, "njobs"))
			take_param(f, from, d->epochs, t);
	}
}

static char *copy_of(struct fields *f, const char *text)
{
	char *copy = text && !f->rc ? mem_strdup(text) : NULL;

	if (text && !copy && !f->rc)
		fields_nomem(f, "job");
	return copy;
}

static void take_rest(struct fields *f, const struct profile_design *d, struct job_type *t)
{
	static const char *const of_profile[] = { "copy", "replication", "run", NULL };

	for (size_t i = 0; i < d->n_command && !f->rc; i++) {
		for (size_t k = 0; of_profile[k]; k++) {
			if (template_uses(d->command[i], of_profile[k]))
				fields_fail(f, ERR_FORMAT, "job",
					    "its command has {%s}, which only profile knows", of_profile[k]);
		}
		t->argv[i] = copy_of(f, d->command[i]);
		t->n_argv += t->argv[i] != NULL;
	}
	if (!f->rc && t->n_argv)
		program_absolute(f, "job", d->work_dir, t->argv);
	t->result.accuracy = copy_of(f, d->result.accuracy);
	t->result.epoch = copy_of(f, d->result.epoch);
	t->result.regex = copy_of(f, d->result.regex);
	t->result.epoch_regex = copy_of(f, d->result.epoch_regex);
	t->result.scale = d->result.scale;
	t->work_dir = copy_of(f, d->work_dir);
}

void job_read(struct fields *f, const char *name, void *object)
{
	static const char *const both[] = { "argv", "params", NULL };
	struct job_type *t = object;
	struct profile_design d;
	struct err why = { 0 };

	field_path(f, name, &t->job);
	if (!t->job || f->rc)
		return;
	for (size_t i = 0; both[i]; i++) {
		if (fields_get(f, both[i]))
			fields_fail(f, ERR_FORMAT, both[i],
				    "is in the file that \"job\" names; leave it out here");
	}
	profile_design_init(&d);
	if (profile_design_read(&d, t->job, &why) || profile_design_check(&d, &why))
		fields_fail(f, why.code == ERR_NOMEM ? ERR_NOMEM : ERR_FORMAT, name, "%s", why.text);
	if (!f->rc)
		take_factors(f, &d, t);
	if (!f->rc)
		take_rest(f, &d, t);
	profile_design_release(&d);
}

/* What came from it is written with the other keys; read together they would be said twice. */
void job_write(const void *type, struct json_writer *w)
{
	(void)type;
	json_put_null(w);
}
