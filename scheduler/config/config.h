/* The configuration of the daemon: one JSON file, every key documented in configs/README.md. Read by
 * postriderd, by `postrider check-config`, and by the client for the place of the socket.
 *
 * A configuration is immutable once read; a reload reads a second one and swaps. Keys that cannot change
 * while the daemon runs (socket, state folder) are compared by config_reloadable(). */
#ifndef SCHEDULER_CONFIG_CONFIG_H
#define SCHEDULER_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/log.h"
#include "scheduler/config/engines.h"
#include "scheduler/config/job_type.h"
#include "scheduler/config/keys.h"
#include "scheduler/store/durability.h"
#include "scheduler/store/keep.h"

#define CONFIG_MAX_BYTES ((size_t)1 << 20)
#define CONFIG_MAX_STATE_DIR 3840 /* bytes: the files of a job below it have paths that the kernel takes */
#define CONFIG_MAX_TYPES 256
#define CONFIG_MAX_ADMINS 64
#define CONFIG_MAX_TENANTS 1024
#define CONFIG_MAX_MEMBERS 4096 /* users, or groups, of one tenant */

/* What happens when a promised job is predicted to be late. The log and the clients that watch show it in any
 * case. */
enum config_on_late {
	ON_LATE_NOTHING,
	ON_LATE_NOTIFY,           /* run `notify` */
	ON_LATE_STOP_BEST_EFFORT, /* and stop jobs without a promise, the youngest first, until no job is late
	                             any more or none is left whose end would help */
};

/* Which events `notify` is run for, each with those before it. */
enum config_notify_of { NOTIFY_OF_LATE, NOTIFY_OF_LOST, NOTIFY_OF_ENDED };

struct config_tenant {
	char *name;
	struct id_list users, groups;
	double weight;           /* > 0; its share is by weight */
	size_t max_queued;       /* 0: no limit */
	uint32_t max_cpus;       /* of its running jobs together; 0: no limit */
	uint32_t max_gpus;       /* the same */
	enum config_on_late on_late; /* of its jobs */
	double chance;           /* of its jobs that do not say one; 0: none */
	double value_budget;     /* what its live jobs may state together of value above the usual 1 */
	char *account, *partition; /* of its jobs at an engine; NULL: the engine's */
};

struct config_learning {
	char *table;             /* observations to start from, CSV; NULL: the daemon's own alone */
	char *schema;            /* what their columns mean; NULL: the model's own, without a model the
	                            default one */
	char *curves;            /* learning curves that belong to the table; NULL: none */
	size_t retrain_after;    /* finished jobs since the last training; 0: never automatically */
	size_t min_observations; /* rows to train on at least */
	size_t test_jobs;        /* latest jobs on which the old and the new model are compared */
	double significance;     /* the new one is taken if its p value is below this */
	size_t keep_versions;    /* model files kept */
	bool adapt;              /* bounds follow the latest jobs (core/learn/adapt.h) */
	size_t promise_after;    /* observations of a type the model does not know before its jobs are
	                            promised anything */
	enum config_probe probe; /* of types that do not say one */
	struct { bool explore, hysteresis, probe_after_s; } retired; /* the file still has them */
};

#define CONFIG_MAX_HOSTS 16
#define CONFIG_MAX_DEVICE_NAMES 1024
#define CONFIG_MAX_DEVICE_NAME 64 /* bytes */

struct config_resources {        /* devices, beside cpus and memory */
	uint32_t gpus;           /* handed out to jobs, each to one at a time */
	char **gpu_name;         /* as many; NULL: "0", "1", ... */
	double gpu_memory_mb;    /* of each; NaN: not known */
	char *gpu_variable;      /* that names a local job's gpus in its environment */
};

struct config_http {             /* the page and the metrics over HTTP */
	char *listen;            /* "127.0.0.1:8080", "[::1]:8080", or the path of a Unix socket; NULL: off */
	char **host; size_t n_hosts; /* names under which it may be asked for, beside those of `listen` */
	size_t max_connections;
};

struct config {
	char *path;              /* where it was read; NULL: defaults alone */
	char *socket;            /* Unix stream socket */
	mode_t socket_mode;      /* 0660; 0600 for a user's own daemon */
	char *socket_group;      /* NULL: as it comes */
	char *state_dir;         /* database and job folders */
	char *policy;            /* "postrider", "fixed:128", ...: see core/policy/policy.h */
	char *model;             /* model file; NULL only for policies that need none */
	double confidence;       /* of jobs that do not say one. There is no default limit on purpose. */
	double chance;           /* jobs that do not say one are taken without a promise if they have this
	                            chance; 0: they are rejected */
	uint64_t seed;           /* of `naive` and of the {seed} placeholder */

	double cores;            /* of the machine; default: those the daemon may run on */
	uint32_t slots;          /* cpus handed out to jobs; default: the cores */
	double memory_mb;        /* for jobs; default: 90 % of what the machine has */
	struct config_resources resources;
	bool pin;                /* give each local job its own cpus by affinity, while slots <= cores */
	char *cgroup;            /* cgroup v2 folder under which each job gets one; NULL: none */

	size_t max_queued;       /* queued jobs; more are refused with queue_full */
	size_t max_queued_per_uid; /* of one user who is not an admin */
	uint32_t max_unstarted_cpus_per_uid; /* of advised jobs that may start and were not; 0: half the
	                                        slots */
	size_t max_finished;     /* finished jobs kept in memory; older ones are in the database */
	size_t max_connections;
	size_t max_connections_per_uid;
	size_t max_output_bytes; /* unread output of one connection; more: it is closed */
	size_t max_output_bytes_per_uid; /* of one user; beyond, nothing is read from them */
	double max_output_mb;    /* of each log of a job whose type does not say; 0: any */
	double idle_timeout_s;   /* a connection without a request and without a watch; 0: never */
	double kill_grace_s;     /* from SIGTERM to SIGKILL */
	double advise_timeout_s; /* an advised job that was told to start and did not */
	double drain_timeout_s;  /* `drain` and SIGTERM with "drain_on_term": wait this long; 0: for ever */
	double idle_exit_s;      /* the daemon exits after this time without jobs and clients; 0: never */
	bool drain_on_term;      /* SIGTERM waits for running jobs instead of leaving them to be re-adopted */
	enum store_durability durability;
	double durability_interval_s;
	struct store_keep keep;  /* of jobs that ended */

	struct id_list admin_users, admin_groups; /* root and the daemon's own user are admins, too */

	struct config_tenant *tenant; size_t n_tenants; /* in the order of the file: the first that fits
	                                                   counts */
	int default_tenant;      /* of users who are in none; -1: each of them is a separate tenant, of
	                            weight 1 */
	double fair_window_s;    /* over which shares are counted, and longest wait of a tenant below its
	                            share */
	enum config_on_late on_late; /* of jobs without a configured tenant */
	char **notify; size_t n_notify; /* a command as types have one, placeholders in it; NULL after the
	                                   last; none: 0 */
	enum config_notify_of notify_of;
	bool other_load;         /* count processes that are not ours (daemon/watch_other_work.c) */
	struct config_learning learning;

	char *executor;          /* of types that name none: an engine, or "local" */
	struct config_engine *engine; size_t n_engines;

	struct config_http http;
	char *metrics_file;      /* the metrics as a file for node_exporter; NULL: none */

	enum log_level log_level;
	int log_json;            /* 1: one JSON object a line, 0: text */

	struct job_type *type; size_t n_types; /* by name, ascending */
};

/* All defaults, as a user's own daemon would have them ($XDG_RUNTIME_DIR, $XDG_STATE_HOME), or the
 * system's (/run/postrider, /var/lib/postrider) when run by root. */
int config_default(struct config **out, struct err *err);
/* Relative paths start from the folder the program was started in, and are absolute from here on. ERR_FORMAT:
 * "FILE:LINE:COLUMN: reason" or "FILE: types.x.argv[2]: reason"; unknown keys name the nearest. */
/* Root, the daemon's own user, or one that is named; groups of admins are not looked at. */
bool config_is_admin(const struct config *c, uid_t uid);
int config_read(const char *path, struct config **out, struct err *err);
int config_from_json(const char *name, const struct json *v, struct config **out, struct err *err);
void config_free(struct config *c);
/* Writes the effective configuration, every key, as JSON: what `check-config --json` prints. */
void config_to_json(const struct config *c, struct json_writer *w);

/* The file to read: `given`, $POSTRIDER_CONFIG, $XDG_CONFIG_HOME/postrider/config.json,
 * /etc/postrider/config.json; NULL when none of them is there (to be freed). */
char *config_find(const char *given);
/* The socket a client talks to: `given`, $POSTRIDER_SOCKET, the configuration's, else the first that exists
 * of the user's own, the system's and that of `postrider run`. Nothing else of the configuration is read,
 * because it is for the daemon. */
int config_socket(const char *given, char **out, struct err *err);

const struct job_type *config_type(const struct config *c, const char *name); /* NULL: none */
const char *config_nearest_type(const struct config *c, const char *name);    /* NULL: none is near */
/* The tenant a user belongs to: one that names the user, else the first with a group the user is in, else the
 * default one, by index in tenant[]; -1: none, so the user is a separate tenant. in_group is called only for
 * groups that some tenant has; NULL: no user is in any. */
typedef bool config_in_group(void *owner, uid_t uid, gid_t gid);
int config_tenant_of(const struct config *c, uid_t uid, config_in_group *in_group, void *owner);
int config_tenant_find(const struct config *c, const char *name); /* -1: none of that name */

/* The command of `notify`, filled in; to be freed with argv_free(). ERR_NOTFOUND: there is none. */
struct config_notice {
	uint64_t job;            /* {job} */
	const char *type, *tenant, *event, *state; /* {type} {tenant} {event} {state}; NULL: an empty text */
	double slo_s, late_s;    /* {slo_s} {late_s}, to the millisecond; NaN: an empty text */
};
int config_notify_argv(const struct config *c, const struct config_notice *n, char ***out, struct err *err);

/* The group of the socket; false in *out_set: as it comes. ERR_NOTFOUND: there is no such group. */
/* Where to listen: a TCP address and port, or (*out_path not NULL, borrowed from the text) a Unix socket.
 * ERR_FORMAT: it is neither. */
struct sockaddr_storage;
int config_http_address(const char *listen, struct sockaddr_storage *out, size_t *out_len,
                        const char **out_path, struct err *err);
int config_socket_group(const struct config *c, gid_t *out, bool *out_set, struct err *err);
/* ERR_ARG, naming the key, where the two differ in something that needs a restart. */
int config_reloadable(const struct config *old, const struct config *fresh, struct err *err);

/* Calls tell() for each retired key that the file still has. */
void config_retired(const struct config *c, keys_tell *tell, void *owner);

/* Whether what a configuration names is there and fits together: model and policy, programs, folders, groups.
 * Told one by one, "FILE: types.digits.argv[0]: reason"; returns how many of them are errors, the rest being
 * worth a look. */
typedef void config_finding(void *owner, bool is_error, const char *text);
size_t config_check(const struct config *c, config_finding *tell, void *owner);

#endif
