/* `token`: users get a token for the page, or revoke all their tokens. See http/token.h. */
#include <stdio.h>

#include "scheduler/daemon/http/http.h"
#include "scheduler/daemon/ops/ops.h"

#define DAYS_DEFAULT 30
#define DAYS_MAX 3650

void op_token(struct request *r)
{
	int64_t now_s = daemon_now_ns(r->d) / 1000000000, until_s;
	struct tokens *t = http_tokens(r->d->http);
	double days = DAYS_DEFAULT;
	char text[TOKEN_TEXT], url[160];
	bool revoke = false;
	struct err err = { 0 };
	int rc;

	field_number(&r->f, "days", 0.001, DAYS_MAX, &days);
	field_bool(&r->f, "revoke", &revoke);
	if (!request_fine(r))
		return;
	if (!t) {
		reply_error(r, "wrong_state", NULL,
			    "set http.listen in the configuration and restart the daemon",
			    "this daemon serves no page, so there is nothing to use a token for");
		return;
	}
	until_s = now_s + (int64_t)(days * 86400.0);
	rc = revoke ? tokens_revoke(t, conn_uid(r->conn), now_s, &err)
		    : tokens_make(t, conn_uid(r->conn), now_s, until_s, text, &err);
	if (rc) {
		reply_error(r, "internal", NULL, NULL, "%s", err.text);
		return;
	}
	http_changed(r->d->http); /* pages that were opened with a token that has gone */
	reply_begin(r);
	json_kv_string(&r->w, "token", revoke ? NULL : text);
	json_kv_moment(&r->w, "expires_at", revoke ? 0 : until_s * 1000000000);
	json_kv_string(&r->w, "url", revoke ? NULL : http_url(r->d->http, text, url, sizeof url));
	json_kv_int(&r->w, "tokens", (long long)tokens_of(t, conn_uid(r->conn), now_s));
	reply_send(r, 0);
}
