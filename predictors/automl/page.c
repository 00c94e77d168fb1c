/* The results of a campaign as one HTML page. */
#include "common/draw/html.h"
#include "predictors/automl/automl.h"

int automl_page(const struct automl *a, struct strbuf *out, struct err *err)
{
	html_begin(out, a->c->ini->file);
	html_end(out);
	return out->failed ? err_nomem(err, "the page") : 0;
}
