/* Who may ask, and what every answer says about itself. A web page from elsewhere can make a browser send
 * requests to this machine; it cannot choose their Host and Origin. So both are checked, against the names of
 * the address that is listened on and those of the configuration. See http.h. */
#include <event2/keyvalq_struct.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "scheduler/daemon/http/http_internal.h"

/* No script, style or picture but our own; no frame around us; nothing is sent elsewhere. */
#define POLICY                                                                                               \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "      \
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

void guard_headers(struct evhttp_request *r, const char *type)
{
	struct evkeyvalq *out = evhttp_request_get_output_headers(r);

	evhttp_add_header(out, "Content-Type", type);
	evhttp_add_header(out, "Content-Security-Policy", POLICY);
	evhttp_add_header(out, "X-Content-Type-Options", "nosniff");
	evhttp_add_header(out, "X-Frame-Options", "DENY");
	evhttp_add_header(out, "Referrer-Policy", "no-referrer");
	evhttp_add_header(out, "Cross-Origin-Opener-Policy", "same-origin");
	evhttp_add_header(out, "Cross-Origin-Resource-Policy", "same-origin");
	evhttp_add_header(out, "Cache-Control", "no-store");
}

/* evhttp sends the body of an answer to HEAD as well, and the peer takes it for the next answer. So it
 * gets the length alone. */
void http_send(struct evhttp_request *r, int status, const char *type, struct evbuffer *body)
{
	char length[32];

	guard_headers(r, type);
	if (body && evhttp_request_get_command(r) == EVHTTP_REQ_HEAD) {
		snprintf(length, sizeof length, "%zu", evbuffer_get_length(body));
		evhttp_add_header(evhttp_request_get_output_headers(r), "Content-Length", length);
		evbuffer_drain(body, evbuffer_get_length(body));
	}
	evhttp_send_reply(r, status, NULL, body);
}

void http_drop(struct evhttp_request *r)
{
	if (!evhttp_request_get_connection(r))
		evhttp_request_free(r);
}

void http_error(struct evhttp_request *r, int status, const char *code, const char *message)
{
	struct evbuffer *body = evbuffer_new();
	struct strbuf text = { 0 };
	struct json_writer w;

	json_begin(&w, &text, false);
	json_open(&w, '{');
	json_kv_bool(&w, "ok", false);
	json_kv_open(&w, "error", '{');
	json_kv_string(&w, "code", code);
	json_kv_string(&w, "message", message);
	json_close(&w, '}');
	json_close(&w, '}');
	if (body)
		evbuffer_add(body, strbuf_text(&text), text.len);
	http_send(r, status, "application/json", body);
	if (body)
		evbuffer_free(body);
	strbuf_release(&text);
}

static bool loopback(const struct sockaddr_storage *a)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;

	if (a->ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	if (a->ss_family != AF_INET6)
		return false;
	return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
	       (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && v6->sin6_addr.s6_addr[12] == 127);
}

bool guard_is_local(struct http *h, struct evhttp_request *r)
{
	struct bufferevent *bev = evhttp_connection_get_bufferevent(evhttp_request_get_connection(r));
	struct sockaddr_storage peer;
	socklen_t len = sizeof peer;

	memset(&peer, 0, sizeof peer);
	return !h->is_unix && getpeername(bufferevent_getfd(bev), (struct sockaddr *)&peer, &len) == 0 &&
	       loopback(&peer);
}

bool guard_who(struct http *h, struct evhttp_request *r, struct http_who *out)
{
	const char *given = evhttp_find_header(evhttp_request_get_input_headers(r), "Authorization");

	*out = (struct http_who){ 0 };
	if (!given)
		return true;
	out->known = !strncasecmp(given, "Bearer ", 7) &&
		     tokens_find(&h->tokens, given + 7, daemon_now_ns(h->d) / 1000000000, &out->token);
	if (!out->known)
		http_error(r, 401, "bad_token", "this token is not known, or has expired: postrider token");
	return out->known;
}

static bool same_host(const char *given, const char *name, int port)
{
	size_t n = strlen(name);
	char with_port[80];

	if (!strcasecmp(given, name))
		return port == 80 || port == 0;
	snprintf(with_port, sizeof with_port, ":%d", port);
	return !strncasecmp(given, name, n) && !strcmp(given + n, with_port);
}

static bool is_ours(const struct http *h, const char *host)
{
	static const char *const local[] = { "localhost", "127.0.0.1", "[::1]" };
	const struct config_http *c = &h->d->setup->config->http;

	for (size_t i = 0; i < sizeof local / sizeof *local; i++) {
		if (same_host(host, local[i], h->port))
			return true;
	}
	for (size_t i = 0; i < c->n_hosts; i++) {
		if (!strcasecmp(host, c->host[i]) || same_host(host, c->host[i], h->port))
			return true;
	}
	return !h->is_unix && !strcasecmp(host, c->listen);
}

static bool origin_is_ours(const struct http *h, const char *origin)
{
	if (!strncmp(origin, "http://", 7))
		return is_ours(h, origin + 7);
	return !strncmp(origin, "https://", 8) && is_ours(h, origin + 8); /* of a proxy */
}

bool guard_allows(struct http *h, struct evhttp_request *r)
{
	struct evkeyvalq *in = evhttp_request_get_input_headers(r);
	const char *host = evhttp_find_header(in, "Host"), *origin = evhttp_find_header(in, "Origin");
	const char *site = evhttp_find_header(in, "Sec-Fetch-Site");
	const char *mode = evhttp_find_header(in, "Sec-Fetch-Mode");
	int lengths = 0;
	bool navigates = mode && !strcmp(mode, "navigate"); /* a link to the page is harmless */

	for (const struct evkeyval *kv = in->tqh_first; kv; kv = kv->next.tqe_next)
		lengths += !strcasecmp(kv->key, "Content-Length") ||
			   !strcasecmp(kv->key, "Transfer-Encoding");
	if (lengths > 1) { /* a proxy in front may believe the other one, and take the rest for a request */
		evhttp_add_header(evhttp_request_get_output_headers(r), "Connection", "close");
		http_error(r, 400, "bad_request", "the request says more than once how long its body is");
		return false;
	}
	if (!host || !is_ours(h, host)) {
		http_error(r, 421, "wrong_host",
			   "this name is not one of the daemon's; an operator may add it to http.hosts");
		return false;
	}
	if (origin && !origin_is_ours(h, origin)) {
		http_error(r, 403, "wrong_origin", "requests from pages of other sites are refused");
		return false;
	}
	if (site && strcmp(site, "same-origin") && strcmp(site, "none") && !navigates) {
		http_error(r, 403, "wrong_origin", "requests from pages of other sites are refused");
		return false;
	}
	return true;
}
