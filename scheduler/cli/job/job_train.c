/* From the tables of a job's folder to its model: what was measured is in use, however measuring ended. See
 * job_folder.h. */
#include <stdlib.h>
#include <sys/stat.h>

#include "common/csv.h"
#include "scheduler/cli/job/job_folder.h"
#include "scheduler/cli/model/views.h"

/* Is a value of the column above `least`? */
static bool exceeds(const struct csv *t, const char *column, double least)
{
	int at = csv_column(t, column);

	for (size_t i = 0; at >= 0 && i < t->n_rows; i++) {
		if (atof(csv_cell(t, i, (size_t)at)) > least)
			return true;
	}
	return false;
}

/* Curves tell more than the runs do if the runs differ in epochs and one has more than one. */
static bool has_curves(const struct job_folder *f)
{
	struct csv *runs = NULL, *curves = NULL;
	bool has = job_folder_has(f->curves) && !csv_read_file(f->table, &runs, NULL) &&
		   !csv_read_file(f->curves, &curves, NULL) && csv_column(runs, "epochs") >= 0 &&
		   exceeds(curves, "epoch", 1.0);

	csv_free(runs);
	csv_free(curves);
	return has;
}

bool job_folder_untrained(const struct job_folder *f)
{
	struct stat table, model;
	struct csv *runs = NULL;
	bool is;

	if (!job_folder_has(f->table) || stat(f->table, &table))
		return false;
	if (!stat(f->model, &model) &&
	    (model.st_mtim.tv_sec != table.st_mtim.tv_sec ? model.st_mtim.tv_sec > table.st_mtim.tv_sec
							  : model.st_mtim.tv_nsec >= table.st_mtim.tv_nsec))
		return false;
	is = !csv_read_file(f->table, &runs, NULL) && exceeds(runs, "time_s", 0.0);
	csv_free(runs);
	return is;
}

int job_folder_train(const struct job_folder *f, bool quiet)
{
	char *argv[12] = { "train", (char *)f->table, "-o", (char *)f->model, "--policy", "postrider" };
	int argc = 6, code;
	struct err err = { 0 };

	if (has_curves(f)) {
		argv[argc++] = "--curves";
		argv[argc++] = (char *)f->curves;
	}
	if (quiet)
		argv[argc++] = "-q";
	code = train_in_words(argc, argv);
	if (!code && job_folder_configure(f, &err))
		code = cli_fail(&err);
	return code;
}
