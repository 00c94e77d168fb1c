/* `postrider report`: the folder of a replay or a comparison as one HTML file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/cli/cli.h"
#include "sim/report/report.h"

/* "DIR/report.html"; to be freed. */
static char *default_output(const char *dir)
{
	static const char name[] = "report.html";
	size_t len = strlen(dir), size = len + sizeof name + 1;
	char *path = mem_alloc(size);

	if (path)
		snprintf(path, size, "%s%s%s", dir, len && dir[len - 1] == '/' ? "" : "/", name);
	return path;
}

int verb_report(int argc, char **argv)
{
	const struct cli_option option[] = { { 0 } };
	const struct cli_usage usage = {
		.verb = "report",
		.synopsis = "DIR [-o FILE.html] [options]",
		.what = "Makes one HTML file from the folder that 'postrider compare -o DIR' (with --paper, "
			"too) or\n"
			"'postrider replay -o DIR' wrote: what was run, the comparison as a table with "
			"intervals and tests, "
			"and\n"
			"figures, each with its data. The file needs no other file, no script and no "
			"network.",
		.option = option,
		.output = "write the report here (default: DIR/report.html)",
		.min_args = 1,
		.max_args = 1,
		.examples = "  postrider report runs/monday\n"
			    "  postrider report runs/monday -o monday.html\n",
	};
	struct strbuf page = { 0 };
	struct err err = { 0 };
	char *path = NULL;
	struct cli c;
	int code, rc = 0;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	path = c.output ? mem_strdup(c.output) : default_output(c.arg[0]);
	if (!path)
		rc = err_nomem(&err, "a path");
	if (!rc) /* without -o the folder may not be there at all: report_make() says so */
		rc = cli_check_output(c.output, &err);
	if (!rc)
		rc = report_make(c.arg[0], &page, &err);
	if (!rc)
		rc = cli_write(path, &page, &err);
	if (!rc && strcmp(path, "-"))
		cli_notice(&c, "wrote %s", cli_clean(path));
	code = rc ? cli_fail(&err) : 0;
	strbuf_release(&page);
	free(path);
	return code;
}
