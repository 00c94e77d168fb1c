/* The schema of a model that a policy wants: the user's, without the columns of the load where the policy
 * does without. Called by `postrider train --policy` and wherever else such a model is trained. */
#include <string.h>

#include "scheduler/core/policy/policy.h"

int policy_schema(const struct policy *p, const struct schema *s, struct schema **out, struct err *err)
{
	static const enum feature_role load[] = { ROLE_PROCESSES, ROLE_NJOBS, ROLE_OTHER };
	struct schema *made;
	int rc = schema_clone(s, &made, err), at;

	if (rc)
		return rc;
	for (size_t i = 0; p->without_load && i < sizeof load / sizeof *load; i++) {
		/* once its column is gone, another one may go by the role's own name */
		while (!rc && (at = schema_role(made, load[i])) >= 0) {
			if (!strcmp(schema_source_name(made, (size_t)at), made->decision))
				rc = err_fail(
					err, ERR_ARG,
					"policy %s does without the load, but the schema decides on it: "
					"column '%s'",
					p->name, made->decision);
			else
				rc = schema_drop(made, (size_t)at, load[i] != ROLE_OTHER, err);
		}
	}
	if (rc)
		schema_free(made);
	else
		*out = made;
	return rc;
}
