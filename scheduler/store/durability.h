/* What a commit means: a choice of the configuration, kept by the store. */
#ifndef SCHEDULER_STORE_DURABILITY_H
#define SCHEDULER_STORE_DURABILITY_H

enum store_durability {
	DURABLE_ALWAYS,   /* every commit is synced before its ticket counts as durable */
	DURABLE_INTERVAL, /* a power cut may take the commits of the last interval; a crash of the daemon
			     takes none */
	DURABLE_NONE,     /* the system writes when it likes; a crash of the daemon takes nothing either */
};

#endif
