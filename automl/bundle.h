/* From a fitted technique to a model bundle (model.h), which `postrider predict` and the scheduler read. */
#ifndef AUTOML_BUNDLE_H
#define AUTOML_BUNDLE_H

#include "automl/select.h"

/* Takes the model out of f; who made it and when is the caller's to say. Bounds come from residuals of five
 * folds that the technique has not seen. */
int bundle_make(const struct automl *a, size_t technique, const struct attempt *t, struct fitted *f,
                struct model **out, struct err *err);

#endif
