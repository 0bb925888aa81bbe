/* tests/support/decode_scene.h - one decoder for all tests of a group, and where their events come
 * from. */
#pragma once

#include "gateway/intake/event.h"
#include "gateway/intake/event_decode.h"

extern const struct event_origin decode_origin;

/* For cmocka_run_group_tests(). */
int decode_scene_begin(void **state);
int decode_scene_end(void **state);

/* Decodes a copy that ends where the message ends, so that reading behind it is caught. As
 * event_decode(). */
int decode(struct sl_slice message, struct event **ret_event, struct failure *reterr);
