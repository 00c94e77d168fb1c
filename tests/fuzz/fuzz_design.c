/* Designs of a campaign: any bytes as the JSON of a design file. What is taken has a canonical text that says
 * the same design, and a plan within its limits. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "scheduler/profiler/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int claim, const char *what)
{
	if (claim)
		return;
	fprintf(stderr, "fuzz_design: %s\n", what);
	abort();
}

static void use(struct profile_design *d)
{
	struct strbuf text = { 0 };
	struct json *v = NULL;
	struct profile_plan plan = { 0 };
	struct err err = { 0 };
	char differs[512];

	profile_design_canonical(d, &text);
	must(!json_parse("canonical", text.text, text.len, &v, &err), "the canonical text is no JSON");
	must(!profile_design_differs(d, v, differs, sizeof differs), "a design differs from itself");
	if (profile_plan_make(d, &plan, &err))
		must(err.text[0] != 0, "a refusal without a reason");
	else
		must(plan.n > 0 && plan.n <= PROFILE_MAX_RUNS, "a plan beyond its limits");
	profile_plan_release(&plan);
	json_free(v);
	strbuf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile_design d;
	struct json *v = NULL;
	struct err err = { 0 };
	int rc;

	if (json_parse("fuzz", (const char *)data, size, &v, &err))
		return 0;
	profile_design_init(&d);
	rc = profile_design_from_json(&d, "fuzz", v, &err);
	if (!rc)
		rc = profile_design_check(&d, &err);
	if (rc)
		must(err.text[0] != 0, "a refusal without a reason");
	else
		use(&d);
	profile_design_release(&d);
	json_free(v);
	return 0;
}
