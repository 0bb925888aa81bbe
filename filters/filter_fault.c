#include "filters/filter_fault.h"

#include <errno.h>

static const struct {
    const char *code, *message;
    int status;
} faults[] = {
    [SL_FAULT_EMPTY_TRACK] = {"empty_track", "track has no phrase", 400},
    [SL_FAULT_TOO_MANY_PHRASES] = {"too_many_phrases", "too many track phrases", 413},
    [SL_FAULT_PHRASE_TOO_LONG] = {"phrase_too_long", "track phrase longer than 60 characters", 413},
    [SL_FAULT_EMPTY_KEYWORD] = {"empty_keyword", "keyword has no letter, digit or emoji", 400},
    [SL_FAULT_EMPTY_FOLLOW] = {"empty_follow", "follow has no user", 400},
    [SL_FAULT_TOO_MANY_USERS] = {"too_many_users", "too many users", 413},
    [SL_FAULT_BAD_FOLLOW] = {"bad_follow", "follow item is neither an id nor @login", 400},
    [SL_FAULT_BAD_LOCATIONS] = {"bad_locations", "locations needs 4 numbers a box", 400},
    [SL_FAULT_TOO_MANY_BOXES] = {"too_many_boxes", "too many boxes", 413},
    [SL_FAULT_BAD_NUMBER] = {"bad_number", "not a decimal number", 400},
    [SL_FAULT_BAD_BOX] = {"bad_box", "box out of range or south of itself", 400},
    [SL_FAULT_EMPTY_RULE] = {"empty_rule", "rule is empty", 400},
    [SL_FAULT_RULE_TOO_LONG] = {"rule_too_long", "rule longer than 1024 characters", 413},
    [SL_FAULT_SYNTAX] = {"syntax", "syntax error", 400},
    [SL_FAULT_UNCLOSED_QUOTE] = {"unclosed_quote", "closing quote missing", 400},
    [SL_FAULT_UNCLOSED_BRACKET] = {"unclosed_bracket", "closing bracket missing", 400},
    [SL_FAULT_UNKNOWN_OPERATOR] = {"unknown_operator", "unknown operator", 400},
    [SL_FAULT_EMPTY_OPERAND] = {"empty_operand", "operator has no operand", 400},
    [SL_FAULT_BAD_OPERAND] = {"bad_operand",
                              "brackets belong to bounding_box and point_radius, and only there",
                              400},
    [SL_FAULT_BAD_USER] = {"bad_user", "operand is not a user", 400},
    [SL_FAULT_BAD_URL] = {"bad_url", "not a host", 400},
    [SL_FAULT_BAD_HAS] = {"bad_has", "unknown has:", 400},
    [SL_FAULT_BAD_IS] = {"bad_is", "unknown is:", 400},
    [SL_FAULT_BAD_COUNTRY] = {"bad_country", "not a country code", 400},
    [SL_FAULT_BAD_RADIUS] = {"bad_radius", "not a valid radius", 400},
    [SL_FAULT_TOO_DEEP] = {"too_deep", "too many nested parentheses", 413},
    [SL_FAULT_TOO_MANY_ATOMS] = {"too_many_atoms", "too many terms", 413},
    [SL_FAULT_SAMPLE_PLACEMENT] = {"sample_placement", "sample: must be a top-level AND operand",
                                   400},
    [SL_FAULT_RULE_TOO_BROAD] =
        {"rule_too_broad", "rule needs at least one keyword, entity, user, url, place or area",
         400},
    [SL_FAULT_BAD_LANGUAGE] = {"bad_language",
                               "malformed language range [a-z]{2,8}(-[a-z0-9]{1,8})*", 400},
    [SL_FAULT_BAD_SAMPLE] = {"bad_sample", "sample must be above 0 and at most 100", 400},
    [SL_FAULT_BAD_PARTITION] = {"bad_partition", "partition must be k/n", 400},
    [SL_FAULT_BAD_TYPES] = {"bad_types", "unknown event type", 400},
    [SL_FAULT_NO_SELECTOR] = {"no_selector", "filter selects nothing", 400},
};

int sl_filter_refuse(struct sl_filter_error *reterr, enum sl_filter_fault fault, const char *param)
{
    if (reterr) {
        *reterr = (struct sl_filter_error){
            .code = faults[fault].code,
            .message = faults[fault].message,
            .param = param,
            .status = faults[fault].status,
        };
    }
    return -EINVAL;
}
