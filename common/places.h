/* Where things are by default: the daemon's socket and state, the folder relative paths start from, and what
 * was installed with this program. */
#ifndef COMMON_PLACES_H
#define COMMON_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/err.h"

#define PLACE_MAX_SOCKET 107 /* bytes: what sockaddr_un has room for */
#ifndef PLACE_LIBEXEC
#define PLACE_LIBEXEC "/usr/local/libexec/postrider"
#endif
#define PLACE_SYSTEM_SOCKET "/run/postrider/postrider.sock"

/* The path from the folder the program was started in; ERR_FORMAT when it becomes too long. */
int place_absolute(const char *path, char **out, struct err *err);

bool place_is_system(void); /* root: the daemon serves the whole machine; else it serves one user */
int place_state_dir(char **out, struct err *err);
int place_socket(char **out, struct err *err);
/* Where the daemon that `postrider run` starts keeps its things, and its socket. Root, too, has its own as a
 * user, not those of the machine's daemon. */
int place_run(char **out_dir, char **out_socket, struct err *err);
/* "/FOLDER/config.json" of the user's configuration; NULL: there is no home to look in. */
char *place_user_config(void);

/* One of our programs: beside this one, or where `make install` puts it. False: it is not there. */
bool place_program(const char *name, char *out, size_t size);
/* A file of share/postrider of the installation that this program belongs to. False: it is not there. */
bool place_shared(const char *name, char *out, size_t size);

/* ERR_NOTFOUND: there is no such user or group. Digits are taken as the number. */
int place_user(const char *name, uid_t *out, struct err *err);
int place_group(const char *name, gid_t *out, struct err *err);

#endif
