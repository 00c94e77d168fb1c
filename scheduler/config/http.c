/* The part `http` of the configuration: where the page and the metrics are served, and under which names.
 * See config.h. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/mem.h"
#include "common/places.h"
#include "common/text/text.h"
#include "scheduler/config/config_parts.h"

#define MAX_LISTEN 256
#define MAX_HOST 253 /* a name of the DNS, its port not counted */

int config_http_address(const char *listen, struct sockaddr_storage *out, size_t *out_len,
			const char **out_path, struct err *err)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
	struct sockaddr_un *un = (struct sockaddr_un *)out;
	const char *colon = strrchr(listen, ':');
	char address[INET6_ADDRSTRLEN + 2];
	uint64_t port;
	size_t n;

	memset(out, 0, sizeof *out);
	*out_path = NULL;
	if (listen[0] == '/') {
		if (strlen(listen) > PLACE_MAX_SOCKET)
			return err_fail(err, ERR_FORMAT, "a socket's path has at most %d bytes",
					PLACE_MAX_SOCKET);
		un->sun_family = AF_UNIX;
		strcpy(un->sun_path, listen);
		*out_path = listen;
		*out_len = sizeof *un;
		return 0;
	}
	n = colon ? (size_t)(colon - listen) : 0;
	if (!colon || n >= sizeof address || !text_uint64(colon + 1, &port) || port > 65535)
		return err_fail(
			err, ERR_FORMAT,
			"must be \"ADDRESS:PORT\", such as \"127.0.0.1:8080\", or the path of a socket");
	snprintf(address, sizeof address, "%.*s", (int)n, listen);
	if (address[0] == '[' && address[n - 1] == ']') {
		address[n - 1] = 0;
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)port);
		*out_len = sizeof *v6;
		if (inet_pton(AF_INET6, address + 1, &v6->sin6_addr) == 1)
			return 0;
	}
	v4->sin_family = AF_INET;
	v4->sin_port = htons((uint16_t)port);
	*out_len = sizeof *v4;
	if (inet_pton(AF_INET, !strcmp(address, "localhost") ? "127.0.0.1" : address, &v4->sin_addr) == 1)
		return 0;
	return err_fail(err, ERR_FORMAT,
			"is not the address of an interface: numbers are needed, as in "
			"\"127.0.0.1:8080\" or \"[::1]:8080\"");
}

/* Letters, digits, "-", ".", ":" and brackets: what a browser sends as Host. */
static bool host_is_good(const char *s)
{
	size_t n = strlen(s);

	return n > 0 && n <= MAX_HOST + 6 &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:[]") == n;
}

static void read_hosts(struct fields *f, const char *name, void *object)
{
	struct config_http *h = object;
	const struct json *list = fields_list(f, name, 0, CONFIG_MAX_HOSTS);
	char key[64];

	if (!list)
		return;
	h->host = mem_calloc(json_size(list) + 1, sizeof *h->host);
	if (!h->host)
		fields_nomem(f, name);
	for (const struct json *e = json_first(list); e && !f->rc; e = json_next(e)) {
		snprintf(key, sizeof key, "%s[%zu]", name, h->n_hosts);
		field_text_value(f, key, e, MAX_HOST + 6, &h->host[h->n_hosts]);
		if (f->rc)
			return;
		if (!h->host[h->n_hosts] || !host_is_good(h->host[h->n_hosts]))
			fields_fail(f, ERR_FORMAT, key,
				    "must be a name of a host, with its port if it has one");
		h->n_hosts++;
	}
}

static void write_hosts(const void *object, struct json_writer *w)
{
	const struct config_http *h = object;

	put_strings(w, h->host, h->n_hosts);
}

void http_check(struct fields *f, void *object)
{
	const struct config_http *h = object;
	struct sockaddr_storage address;
	struct err why = { 0 };
	const char *path;
	size_t len;

	if (h->listen && config_http_address(h->listen, &address, &len, &path, &why))
		fields_fail(f, ERR_FORMAT, "listen", "%s", why.text);
}

void http_release(struct config *c)
{
	for (size_t i = 0; i < c->http.n_hosts; i++)
		free(c->http.host[i]);
	free(c->http.host);
}

#define AT(member) .at = offsetof(struct config_http, member)
const struct key http_keys[] = {
	{ "listen", KEY_TEXT, AT(listen), .max = MAX_LISTEN, .restart = true },
	{ "hosts", KEY_OTHER, .read = read_hosts, .write = write_hosts },
	{ "max_connections", KEY_SIZE, AT(max_connections), 1, 10000, 512 },
	{ 0 },
};
#undef AT
