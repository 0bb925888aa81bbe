/* gateway/api/body.h - internal to the API: reads the JSON of a request.
 *
 * Strict, because a typing error must not silently change what is written: members that are
 * unknown, repeated or of another type are refused by name; invalid JSON by its position. */
#pragma once

#include <jansson.h>

#include "base/slice.h"
#include "gateway/http/http.h"

enum { API_BODY_MAX = 256 << 10, API_BODY_DEPTH_MAX = 32 };

/* Parses an object. 0: the caller owns *ret_body; -EPROTO: *refusal says where it is wrong;
 * -ENOMEM. */
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
    /* The target for this type; unchanged if the member is absent. */
    struct sl_slice *ret_string;
    double *ret_number;
    const json_t **ret_json;
};

/* Reads the members of an object. `inside` is the name of the member that contains the object, or
 * NULL. 0; -EPROTO: *refusal names the wrong member. */
int api_members_read(const json_t *object, const char *inside, const struct api_member *members,
                     size_t count, struct http_refusal *refusal);
