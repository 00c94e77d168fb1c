/* The rows of jobs.csv: checked, and cut down to the numbers that figures need. See data.h. */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "sim/report/data.h"

enum job_column {
	JOB_POLICY,
	JOB_REPLICATION,
	JOB_OUTCOME,
	JOB_CPUS,
	JOB_ARRIVAL,
	JOB_SLO,
	JOB_START,
	JOB_END,
	JOB_RUN,
	JOB_PREDICTED,
	JOB_UPPER,
	JOB_PROCESSES,
	JOB_COLUMNS,
};
static const char *const job_column_name[JOB_COLUMNS] = {
	"policy",  "replication", "outcome", "cpus",        "arrival_s", "slo_s",
	"start_s", "end_s",       "run_s",   "predicted_s", "upper_s",   "processes",
};

static int bad_cell(const struct csv *t, size_t row, const char *column, const char *text,
		    const char *expected, struct err *err)
{
	char shown[48];

	return err_fail(err, ERR_FORMAT, "%s:%u: column %s: '%s' is not %s", text_tail(t->name, 200),
			t->line[row], column, text_printable(text, shown, sizeof shown), expected);
}

static int read_state(const struct csv *t, size_t row, size_t column, uint8_t *out, struct err *err)
{
	const char *text = csv_cell(t, row, column);

	for (size_t s = 0; s < OUTCOME_STATES; s++)
		if (!strcmp(text, outcome_state_name[s])) {
			*out = (uint8_t)s;
			return 0;
		}
	return bad_cell(t, row, "outcome", text, "an outcome", err);
}

static int read_job(struct report_data *d, size_t row, const size_t *column, size_t *io_policy,
		    struct err *err)
{
	const struct csv *t = d->jobs;
	const char *policy = csv_cell(t, row, column[JOB_POLICY]);
	struct report_job *j = &d->job[row];
	double number[JOB_COLUMNS];
	int rc;

	/* rows of a policy stand together */
	if (strcmp(policy, d->policies.policy[*io_policy].name)) {
		size_t found = report_find(&d->policies, policy);

		if (found == SIZE_MAX)
			return bad_cell(t, row, "policy", policy, "a policy of compare.json", err);
		*io_policy = found;
	}
	rc = read_state(t, row, column[JOB_OUTCOME], &j->state, err);
	for (size_t k = 0; k < JOB_COLUMNS && !rc; k++)
		if (column[k] == SIZE_MAX)
			number[k] = NAN;
		else if (k != JOB_POLICY && k != JOB_OUTCOME)
			rc = csv_number(t, row, column[k], &number[k], err);
	if (rc)
		return rc;
	if (!(number[JOB_REPLICATION] >= 0.0 && number[JOB_REPLICATION] <= 1e9))
		return bad_cell(t, row, "replication", csv_cell(t, row, column[JOB_REPLICATION]),
				"the number of a replication", err);
	j->row = (uint32_t)row;
	j->policy = (uint32_t)*io_policy;
	j->replication = (uint32_t)number[JOB_REPLICATION];
	j->cpus = number[JOB_CPUS];
	j->arrival_s = number[JOB_ARRIVAL];
	j->slo_s = number[JOB_SLO];
	j->start_s = number[JOB_START];
	j->end_s = number[JOB_END];
	j->run_s = number[JOB_RUN];
	j->predicted_s = number[JOB_PREDICTED];
	j->upper_s = number[JOB_UPPER];
	j->processes = number[JOB_PROCESSES];
	return 0;
}

int report_read_jobs(struct report_data *d, struct err *err)
{
	size_t column[JOB_COLUMNS], policy = 0;
	int rc = 0;

	for (size_t k = 0; k < JOB_COLUMNS; k++) {
		int at = csv_column(d->jobs, job_column_name[k]);

		if (at < 0 && k != JOB_UPPER) /* which tables of other programs may lack */
			return err_fail(err, ERR_FORMAT, "%s:1: column %s is missing",
					text_tail(d->jobs->name, 200), job_column_name[k]);
		column[k] = at < 0 ? SIZE_MAX : (size_t)at;
	}
	d->job = mem_calloc(d->jobs->n_rows + 1, sizeof *d->job);
	if (!d->job)
		return err_nomem(err, "a report");
	d->first_replication = UINT32_MAX;
	for (; d->n_jobs < d->jobs->n_rows && !rc; d->n_jobs++) {
		rc = read_job(d, d->n_jobs, column, &policy, err);
		if (!rc && d->job[d->n_jobs].replication < d->first_replication)
			d->first_replication = d->job[d->n_jobs].replication;
	}
	return rc;
}
