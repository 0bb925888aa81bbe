/* tests/support/decode_scene.h - one decoder for all tests of a group, and the origin of their
 * events. */
#pragma once

#include "gateway/intake/event.h"
#include "gateway/intake/event_decode.h"

extern const struct event_origin decode_origin;

/* For cmocka_run_group_tests(). */
int decode_scene_begin(void **state);
int decode_scene_end(void **state);

/* Decodes a copy without a byte after it, so that reading past the end is noticed. Otherwise like
 * event_decode(). */
int decode(struct sl_slice message, struct event **ret_event, struct failure *reterr);
