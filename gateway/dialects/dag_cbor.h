/* gateway/dialects/dag_cbor.h - encodes JSON as DAG-CBOR, which has exactly one form, and computes
 * the CID of bytes.
 *
 * https://ipld.io/specs/codecs/dag-cbor/spec/: numbers and lengths are as short as possible; the
 * keys of maps are sorted by length, then by bytes. Fractions and links are not supported, because
 * records have none. */
#pragma once

#include <jansson.h>

#include "base/buffer.h"
#include "base/slice.h"

/* Appends the encoded value. 0; -EINVAL: it contains a fraction; -ENOMEM. */
int dag_cbor_append(const json_t *json, struct buffer *ret_bytes);

enum cid_codec { CID_RAW = 0x55, CID_DAG_CBOR = 0x71 };

enum { CID_TEXT_SIZE = 60 }; /* 59 characters and the terminating NUL */

/* CIDv1 with SHA-256, in base32. */
void cid_of(enum cid_codec codec, struct sl_slice bytes, char ret_text[static CID_TEXT_SIZE]);
