/* The page's style sheet and pieces. See html.h. */
#include "common/draw/html.h"

#include <stdio.h>
#include <string.h>

#include "common/csv.h"
#include "common/draw/svg.h"
#include "common/text/text.h"

/* Charts are drawn twice: for a desk or paper, and for a phone, where the first one would shrink its
 * letters beyond reading. Colours of text keep a contrast of 4.5 on their background in both schemes. */
/* clang-format off */
static const char page_style[] =
	":root{color-scheme:light dark;--ink:#1a1a1a;--soft:#4a4a4a;--back:#fff;--card:#f5f6f8;"
	"--rule:#cfd4da;"
	"--link:#0b5394;--good:#0b6b3a;--bad:#a3260f}"
	"*{box-sizing:border-box}"
	"html{-webkit-text-size-adjust:100%}"
	"body{margin:0;background:var(--back);color:var(--ink);"
	"font:16px/1.5 system-ui,-apple-system,'Segoe UI','Helvetica Neue',Arial,sans-serif}"
	"main{max-width:1120px;margin:0 auto;padding:16px}"
	"h1{font-size:1.75rem;line-height:1.2;margin:.4em 0 .3em}"
	"h2{font-size:1.35rem;line-height:1.25;margin:1.8em 0 .5em}"
	"h3{font-size:1.1rem;line-height:1.3;margin:0 0 .2em}"
	"p{margin:.4em 0 .7em;max-width:75ch}"
	"a{color:var(--link)}"
	"code,.word{overflow-wrap:anywhere}"
	"code{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:.9em}"
	".lead{font-size:1.06rem}"
	".soft{color:var(--soft);font-size:.92rem}"
	"dl.facts{display:grid;grid-template-columns:max-content 1fr;gap:.2em 1.2em;margin:.6em 0;"
	"font-size:.95rem}"
	"dl.facts dt{color:var(--soft)}dl.facts dd{margin:0;min-width:0;overflow-wrap:anywhere}"
	"figure{margin:0 0 2.2em;padding:0}"
	"figcaption p{margin:.1em 0 .6em}"
	".scroll{overflow-x:auto;max-width:100%}"
	".scroll:focus-visible{outline:2px solid var(--link)}"
	"table{border-collapse:collapse;font-size:.92rem;font-variant-numeric:tabular-nums}"
	"caption{text-align:left;color:var(--soft);padding:.6em 0 .2em}"
	"th,td{padding:.4em .75em;text-align:right;vertical-align:top;"
	"border-bottom:1px solid var(--rule);white-space:nowrap}"
	"thead th{vertical-align:bottom;white-space:normal;min-width:6.6em;font-weight:600}"
	"th:first-child,td:first-child{text-align:left;padding-left:0}"
	"tbody th{font-weight:600;position:sticky;left:0;background:var(--back);min-width:0}"
	"td small,th small{display:block;color:var(--soft);font-size:.85em;font-weight:400}"
	"td small.win{color:var(--good)}td small.loss{color:var(--bad)}"
	"table.words td{text-align:left}"
	".chart{display:block;max-width:100%;height:auto}"
	".chart.narrow{display:none}"
	".fixed svg{display:block;min-width:1000px;width:100%;height:auto}"
	".data{margin:.3em 0;font-size:.92rem}"
	"details{margin:.3em 0;font-size:.92rem}"
	"summary{cursor:pointer;color:var(--link)}"
	"footer{border-top:1px solid var(--rule);margin-top:3em;padding-top:.5em}"
	".back{fill:var(--back)}.target{stroke:var(--ink);stroke-width:2.5}"
	"@media (max-width:860px){.chart.wide{display:none}.chart.narrow{display:block;width:100%;"
	"max-width:560px}"
	"tbody th{min-width:7em;max-width:38vw;white-space:normal;overflow-wrap:anywhere}"
	"dl.facts{grid-template-columns:1fr;gap:0}dl.facts dd{margin-bottom:.5em}h1{font-size:1.4rem}}"
	/* A table too wide for a telephone: a row becomes a list, each cell with the name of its column. */
	"@media screen and (max-width:640px){"
	"table.cards,.cards caption,.cards tbody,.cards tr,.cards tbody th{display:block}"
	".cards thead{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}"
	".cards tr{padding:.5rem 0;border-bottom:1px solid var(--rule)}"
	".cards tbody th,.cards tbody td{border:0;padding:.15rem 0}"
	".cards td{display:grid;grid-template-columns:minmax(0,1fr) auto;column-gap:1rem}"
	".cards td>small{grid-column:2}"
	".cards td::before{content:attr(data-label);grid-row:1/span 3;text-align:left;white-space:normal;"
	"color:var(--soft)}}"
	"@media (prefers-color-scheme:dark){:root{--ink:#eee;--soft:#bcc2c9;--back:#15181c;"
	"--card:#1e2329;--rule:#3a414a;"
	"--link:#8ec7ff;--good:#6fdc9f;--bad:#ff9d85}}"
	"@media print{:root{--ink:#000;--soft:#333;--back:#fff;--link:#000}"
	"body{font-size:10.5pt}main{max-width:none;padding:0}"
	".chart.wide{display:block;width:100%}.chart.narrow{display:none}"
	"dl.facts{grid-template-columns:max-content 1fr;gap:.2em 1.2em}"
	".scroll{overflow:visible}.fixed svg{min-width:0}"
	"table{font-size:7.5pt}th,td{padding:.2em .4em}thead th{min-width:0}"
	"figure,tr{break-inside:avoid}h2,h3{break-after:avoid}.data,details{display:none}}";
/* clang-format on */

void html_begin(struct strbuf *out, const char *title)
{
	strbuf_puts(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
			 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
	html_element(out, "title", title);
	strbuf_printf(out, "\n<style>%s</style>\n<style>%s</style>\n</head>\n<body>\n<main>\n", svg_style(),
		      page_style);
}

void html_end(struct strbuf *out)
{
	strbuf_puts(out, "</main>\n</body>\n</html>\n");
}

void html_text(struct strbuf *out, const char *text)
{
	svg_escape(out, text);
}

void html_element(struct strbuf *out, const char *tag, const char *text)
{
	strbuf_printf(out, "<%s>", tag);
	html_text(out, text);
	strbuf_printf(out, "</%.*s>", (int)strcspn(tag, " "), tag);
}

void html_scroll_begin(struct strbuf *out, const char *label)
{
	strbuf_puts(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
	html_text(out, label);
	strbuf_puts(out, "\">\n");
}

void html_scroll_end(struct strbuf *out)
{
	strbuf_puts(out, "</div>\n");
}

/* ---- CSV ---- */

static bool unreserved(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~,:", c));
}

void html_csv_link(struct strbuf *out, const char *name, const struct strbuf *csv)
{
	static const char hex[] = "0123456789ABCDEF";
	const char *text = strbuf_text(csv);

	strbuf_printf(out, "<a download=\"%s.csv\" href=\"data:text/csv;charset=utf-8,", name);
	for (size_t i = 0; i < csv->len;) {
		size_t plain = i;
		unsigned char c;

		while (plain < csv->len && unreserved((unsigned char)text[plain]))
			plain++;
		strbuf_add(out, text + i, plain - i);
		i = plain;
		if (i == csv->len)
			break;
		c = (unsigned char)text[i++];
		strbuf_add(out, (char[]){ '%', hex[c >> 4], hex[c & 15] }, 3);
	}
	strbuf_printf(out, "\">%s.csv</a>", name);
}

static void put_cell(struct strbuf *out, const char *tag, const char *cell)
{
	char buf[32];
	double v;

	if (strlen(cell) > 7 && text_number(cell, &v)) {
		snprintf(buf, sizeof buf, "%.5g", v);
		cell = buf;
	}
	html_element(out, tag, cell);
}

int html_csv_table(struct strbuf *out, const char *caption, const struct strbuf *csv, struct err *err)
{
	struct csv *t = NULL;
	int rc = csv_parse("the data of a figure", strbuf_text(csv), csv->len, &t, err);

	if (rc)
		return rc;
	html_scroll_begin(out, caption);
	strbuf_puts(out, "<table>\n<thead><tr>");
	for (size_t k = 0; k < t->n_columns; k++)
		html_element(out, "th scope=\"col\"", t->header[k]);
	strbuf_puts(out, "</tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < t->n_rows; i++) {
		strbuf_puts(out, "<tr>");
		for (size_t k = 0; k < t->n_columns; k++)
			put_cell(out, k ? "td" : "th scope=\"row\"", csv_cell(t, i, k));
		strbuf_puts(out, "</tr>\n");
	}
	strbuf_puts(out, "</tbody>\n</table>\n");
	html_scroll_end(out);
	csv_free(t);
	return 0;
}
