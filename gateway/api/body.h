/* gateway/api/body.h - inside the API: JSON that somebody sent -> its members, or what is wrong.
 *
 * Strict, for a typo must not silently change what is written: members that are not known, are
 * there twice or have another type are refused by their names; what is no JSON, by its position. */
#pragma once

#include <jansson.h>

#include "base/slice.h"
#include "gateway/http/http.h"

enum { API_BODY_MAX = 256 << 10, API_BODY_DEPTH_MAX = 32 };

/* An object. 0: *ret_body is the caller's; -EPROTO: *refusal says where it is wrong; -ENOMEM. */
int api_body_read(const struct http_request *http, json_t **ret_body, struct http_refusal *refusal);

enum api_member_kind {
    API_STRING,
    API_NUMBER,
    API_OBJECT,
    API_ARRAY,
    API_STRING_OR_NULL, /* null is an empty string */
    API_ARRAY_OR_NULL
};

struct api_member {
    const char *name;
    enum api_member_kind kind;
    bool is_required;
    /* One of these, which stays as it is when the member is absent. */
    struct sl_slice *ret_string;
    double *ret_number;
    const json_t **ret_json;
};

/* Reads the members of an object. `inside` is the name of the member that the object is, or NULL.
 * 0; -EPROTO: *refusal names the member at fault. */
int api_members_read(const json_t *object, const char *inside, const struct api_member *members,
                     size_t count, struct http_refusal *refusal);
