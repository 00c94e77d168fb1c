/* Says in words why a job is outside the data of a model. See decide.h. It is a separate file, so that a
 * client need not link the models. */
#include <math.h>
#include <stdio.h>

#include "scheduler/core/decide.h"

#define NUMBER 32

/* Three digits of a fraction tell enough; whole numbers are shown as they are. */
static const char *number(double v, char *out)
{
	snprintf(out, NUMBER, v == round(v) ? "%.6g" : "%.3g", v);
	return out;
}

void decide_out_of_range_text(const struct decide_out_of_range *o, struct strbuf *out)
{
	char value[NUMBER], least[NUMBER], most[NUMBER];

	if (!o->column)
		strbuf_puts(out, "outside the data the model was trained on");
	else if (o->category)
		strbuf_printf(out, "its %s is not in the training table", o->column);
	else if (isnan(o->least))
		strbuf_printf(out, "the training table has no %s", o->column);
	else if (isnan(o->value))
		strbuf_printf(out, "%s is not given; the training table has %s to %s", o->column,
			      number(o->least, least), number(o->most, most));
	else
		strbuf_printf(out, "%s %s is outside %s to %s of the training table", o->column,
			      number(o->value, value), number(o->least, least), number(o->most, most));
}
