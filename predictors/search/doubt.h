/* Times that look wrong: found before a model of time is fitted, so that none believes them.
 *
 * Two signs are enough. A time that repeats one of another setting to the last digit was read twice: a parser
 * that keeps the value of the file before makes such rows. Two names that mean one thing make them, too, all
 * over the table; those are believed. And a time may be far from what all other rows
 * say of its setting. The first is tested against chance (times written with few digits repeat anyway), the
 * second against the table's own spread. */
#ifndef PREDICTORS_SEARCH_DOUBT_H
#define PREDICTORS_SEARCH_DOUBT_H

#include "predictors/predictor.h"

#define DOUBT_MAX_ROWS 5000 /* of a larger table a few wrong rows hardly matter */

enum doubt {
	DOUBT_NONE,
	DOUBT_REPEATED, /* the time of another setting, and the other one fits better */
	DOUBT_FAR,      /* far from what the other rows say */
};

/* out: n_rows of enum doubt. The times are d->y, all above 0. Nothing is doubted in a table of fewer than 20
 * or more than DOUBT_MAX_ROWS rows, or where more than a fifth of the rows would be: then it is not they that
 * are wrong. Returns how many in *out_n. */
int doubt_find(const struct dataset *d, const struct fit_context *ctx, uint8_t *out, size_t *out_n,
               struct err *err);

#endif
