/* gateway/dialects/dag_cbor.h - JSON as DAG-CBOR, of which there is one form only, and the CID of
 * bytes.
 *
 * https://ipld.io/specs/codecs/dag-cbor/spec/: numbers and lengths as short as they can be, the
 * keys of maps in the order of their lengths, then of their bytes. Records have no fractions and no
 * links, so neither is here. */
#pragma once

#include <jansson.h>

#include "base/buffer.h"
#include "base/slice.h"

/* Appends it. 0; -EINVAL: there is a fraction in it; -ENOMEM. */
int dag_cbor_append(const json_t *json, struct buffer *ret_bytes);

enum cid_codec { CID_RAW = 0x55, CID_DAG_CBOR = 0x71 };

enum { CID_TEXT_SIZE = 60 }; /* 59 characters and a NUL */

/* CIDv1 with SHA-256, in base32. */
void cid_of(enum cid_codec codec, struct sl_slice bytes, char ret_text[static CID_TEXT_SIZE]);
