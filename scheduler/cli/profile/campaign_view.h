/* The output of `postrider profile`: the plan of a campaign before it runs, and the summary after it. */
#ifndef SCHEDULER_CLI_PROFILE_CAMPAIGN_VIEW_H
#define SCHEDULER_CLI_PROFILE_CAMPAIGN_VIEW_H

#include "scheduler/cli/cli.h"
#include "scheduler/profiler/campaign.h"

int profile_plan_text(const struct profile_campaign *k, const struct cli *c, struct strbuf *out,
                      struct err *err);
int profile_plan_json(const struct profile_campaign *k, struct strbuf *out, struct err *err);
void profile_summary_text(const struct profile_campaign *k, const struct profile_summary *m,
                          const struct cli *c, struct strbuf *out);
void profile_summary_json(const struct profile_campaign *k, const struct profile_summary *m,
                          struct strbuf *out);

#endif
