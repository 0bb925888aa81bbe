/* gateway/metrics/monitor.h - checks the server regularly and records what it finds.
 *
 * For the parent: twice a second it takes readings, compares them with the limits, and updates the
 * history that workers show: what is wrong since when, an incident for each problem with its begin,
 * end and consequences, and a sample every five seconds. A problem that returns within ten seconds
 * is the same incident. */
#pragma once

#include "gateway/metrics/history.h"

enum { MONITOR_LOOK_MS = 500 };

struct monitor;

/* NULL: out of memory. The other objects stay the caller's. */
struct monitor *monitor_new(const struct metrics_board *board, const struct slow_board *slow_board,
                            struct history *history, bool has_intake);
void monitor_free(struct monitor *monitor);

/* Makes a check. `now_ms`: monotonic. */
void monitor_look(struct monitor *monitor, const struct reading_bounds *bounds, uint64_t now_ms,
                  uint64_t wall_ms);

/* The process `name` ("Worker 1") ended, `how` ("by signal 9 (Killed)"), and with it `streams`. */
void monitor_note_death(struct monitor *monitor, const char *name, const char *how,
                        uint64_t streams, uint64_t wall_ms);
/* Records something that happened and is over. `name`: a string constant. */
void monitor_note(struct monitor *monitor, enum verdict_level level, const char *name,
                  const char *text, uint64_t wall_ms);
