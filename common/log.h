/* Talk for people: one line an event, on stderr. Programs log; layers below them return errors. */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include <stdbool.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_set_program(const char *name);      /* "postrider": opens each line */
void log_set_level(enum log_level level);    /* default LOG_INFO */
/* Lines become {"time","level","program","message"} instead of "program: level: message". */
void log_set_json(bool on);
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

/* Colour is for a terminal whose owner did not object (NO_COLOR, TERM=dumb). */
bool log_stream_wants_colour(int fd);

#endif
