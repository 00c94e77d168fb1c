/* The frame of the report's page: its style sheet, and small pieces of HTML that several parts write.
 * Text from outside goes through svg_escape(), which is right for HTML as well. */
#ifndef COMMON_DRAW_HTML_H
#define COMMON_DRAW_HTML_H

#include <stddef.h>

#include "common/err.h"
#include "common/strbuf.h"

void html_begin(struct strbuf *out, const char *title);
void html_end(struct strbuf *out);

void html_text(struct strbuf *out, const char *text);                /* escaped */
void html_element(struct strbuf *out, const char *tag, const char *text); /* <tag>escaped</tag> */
/* A box that scrolls sideways where what is in it is too wide; reachable by keyboard, and named for
 * screen readers. */
void html_scroll_begin(struct strbuf *out, const char *label);
void html_scroll_end(struct strbuf *out);

/* A link that downloads the CSV as `name`.csv: the data are in the link itself. */
void html_csv_link(struct strbuf *out, const char *name, const struct strbuf *csv);
/* A CSV as a table, numbers rounded for reading. */
int html_csv_table(struct strbuf *out, const char *caption, const struct strbuf *csv, struct err *err);

#endif
