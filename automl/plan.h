/* The grid of one technique of a campaign, for campaign.c, which reads it. The rest is in campaign.h. */
#ifndef AUTOML_PLAN_H
#define AUTOML_PLAN_H

#include "automl/campaign.h"

/* Reads the technique's section of a file and checks every value of every axis. tune: priors are allowed. */
int plan_read(const struct ini *ini, bool tune, struct plan *p, struct err *err);
void plan_release(struct plan *p);

#endif
