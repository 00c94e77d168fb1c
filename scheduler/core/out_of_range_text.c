/* Says in words why a job is outside the data of a model. See decide.h. It is a separate file, so that a
 * client need not link the models. */
#include <math.h>

#include "scheduler/core/decide.h"

void decide_out_of_range_text(const struct decide_out_of_range *o, struct strbuf *out)
{
	if (!o->column)
		strbuf_puts(out, "outside the data the model was trained on");
	else if (o->category)
		strbuf_printf(out, "its %s is not in the training table", o->column);
	else if (isnan(o->least))
		strbuf_printf(out, "the training table has no %s", o->column);
	else if (isnan(o->value))
		strbuf_printf(out, "%s is not given; the training table has %.6g to %.6g", o->column,
			      o->least, o->most);
	else
		strbuf_printf(out, "%s %.6g is outside %.6g to %.6g of the training table", o->column,
			      o->value, o->least, o->most);
}
