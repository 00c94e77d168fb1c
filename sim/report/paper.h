/* The page of the paper's experiment, from the paper.json that `compare --paper -o DIR` writes. */
#ifndef SIM_REPORT_PAPER_H
#define SIM_REPORT_PAPER_H

#include "common/json/json.h"
#include "common/strbuf.h"

/* ERR_FORMAT names the member that is not as it should be. */
int report_paper(const struct json *root, struct strbuf *out, struct err *err);

#endif
