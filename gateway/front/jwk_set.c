/* jwk_set.c - reads a set key by key; token_key_jwk.c decides about each.
 *
 * The size and the number of keys are checked before any computation, and at most one byte more
 * than the limit is read from a file. The keys are stored in the set itself. */
#include "gateway/front/jwk_set.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/alloc.h"

struct jwk_set {
    unsigned count, skipped;
    struct failure why; /* of the first one skipped */
    struct token_key *keys[JWK_SET_MAX_KEYS];
};

void jwk_set_free(struct jwk_set *set)
{
    if (!set)
        return;
    for (unsigned i = 0; i < set->count; i++)
        token_key_free(set->keys[i]);
    mem_free(set);
}

static int take_key(struct jwk_set *set, const json_t *jwk, size_t place)
{
    struct failure why = {"no reason"};
    int r = token_key_from_jwk(jwk, &set->keys[set->count], &why);

    if (r == -ENOMEM)
        return r;
    if (r == 0) {
        set->count++;
    } else {
        if (set->skipped == 0)
            failure_set(&set->why, r, "keys[%zu]: %.400s", place, why.text);
        set->skipped++;
    }
    return 0;
}

static int take_keys(struct jwk_set *set, const json_t *json, struct failure *reterr)
{
    const json_t *keys = json_object_get(json, "keys");

    if (!json_is_array(keys))
        return failure_set(reterr, -EINVAL, "the set is not an object with a list of keys");
    if (json_array_size(keys) > JWK_SET_MAX_KEYS)
        return failure_set(reterr, -E2BIG, "the set has %zu keys, more than %d",
                           json_array_size(keys), JWK_SET_MAX_KEYS);
    for (size_t i = 0; i < json_array_size(keys); i++) {
        int r = take_key(set, json_array_get(keys, i), i);

        if (r < 0)
            return failure_set(reterr, r, "out of memory");
    }
    if (set->count > 0)
        return 0;
    if (set->skipped > 0)
        return failure_set(reterr, -EINVAL, "the set has no key that verifies tokens: %s",
                           set->why.text);
    return failure_set(reterr, -EINVAL, "the set is empty");
}

int jwk_set_parse(struct sl_slice json, struct jwk_set **ret_set, struct failure *reterr)
{
    struct jwk_set *set;
    json_error_t error;
    json_t *root;
    int r;

    if (json.size > JWK_SET_MAX_BYTES)
        return failure_set(reterr, -E2BIG, "the set has more than %d bytes", JWK_SET_MAX_BYTES);
    root = json_loadb(json.data ? json.data : "", json.size, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return failure_set(reterr, -EINVAL, "the set is not JSON: line %d, column %d: %s",
                           error.line, error.column, error.text);
    set = mem_zalloc(sizeof(*set));
    r = set ? take_keys(set, root, reterr) : failure_set(reterr, -ENOMEM, "out of memory");
    json_decref(root);
    if (r == 0)
        *ret_set = set;
    else
        jwk_set_free(set);
    return r;
}

/* Reads at most one byte more than allowed, which is enough to detect it. */
static int read_bounded(int fd, struct buffer *content)
{
    while (content->size <= JWK_SET_MAX_BYTES) {
        char *room = buffer_reserve(content, JWK_SET_MAX_BYTES + 1 - content->size);
        ssize_t n = room ? read(fd, room, JWK_SET_MAX_BYTES + 1 - content->size) : -1;

        if (!room)
            return -ENOMEM;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        content->size += (size_t)n;
    }
    return 0;
}

int jwk_set_load(const char *path, struct buffer *content, struct failure *reterr)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* must not wait for the
                                                                          writer of a pipe */
    struct stat status;
    int r;

    if (fd < 0)
        return failure_set(reterr, -errno, "cannot read '%s': %s", path, strerror(errno));
    if (fstat(fd, &status) == 0 && !S_ISREG(status.st_mode))
        r = failure_set(reterr, -EINVAL, "cannot read '%s': it is not a file", path);
    else
        r = read_bounded(fd, content);
    close(fd);
    if (r < 0 && r != -EINVAL)
        failure_set(reterr, r, "cannot read '%s': %s", path, strerror(-r));
    return r;
}

unsigned jwk_set_count(const struct jwk_set *set)
{
    return set->count;
}

struct token_key *jwk_set_key(const struct jwk_set *set, unsigned n)
{
    return set->keys[n];
}

unsigned jwk_set_skipped(const struct jwk_set *set)
{
    return set->skipped;
}

const char *jwk_set_skipped_why(const struct jwk_set *set)
{
    return set->skipped > 0 ? set->why.text : NULL;
}
