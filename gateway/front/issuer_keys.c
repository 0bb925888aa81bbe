/* issuer_keys.c - keys in the order in which they were named, searched linearly: there are few, or
 * as many as a set may have.
 *
 * A set file is identified by the hash of its last content, valid or not, so that the same content
 * is neither parsed nor reported twice. */
#include "gateway/front/issuer_keys.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <openssl/sha.h>

#include "base/alloc.h"

void issuer_keys_done(struct issuer_keys *issuer)
{
    for (unsigned i = 0; i < issuer->key_count; i++)
        token_key_free(issuer->keys[i]);
    for (unsigned i = 0; i < issuer->file_count; i++) {
        jwk_set_free(issuer->files[i].set);
        mem_free(issuer->files[i].path);
    }
    mem_free(issuer->keys);
    mem_free(issuer->files);
}

/* --- files --- */

static int add_key(struct issuer_keys *issuer, int r, struct token_key *key)
{
    if (r < 0)
        return r;
    token_key_narrow(key, issuer->settings->algorithms);
    issuer->keys[issuer->key_count++] = key;
    return 0;
}

int issuer_keys_add_secret(struct issuer_keys *issuer, const char *path, struct failure *reterr)
{
    struct token_key *key = NULL;
    int r = token_key_read_secret(path, &key, reterr);

    return add_key(issuer, r, key);
}

int issuer_keys_add_public(struct issuer_keys *issuer, const char *path, struct failure *reterr)
{
    struct token_key *key = NULL;
    int r = token_key_read_public(path, &key, reterr);

    return add_key(issuer, r, key);
}

static int parse_set(struct key_set_reading *reading, struct sl_slice bytes)
{
    struct failure why;
    int r = jwk_set_parse(bytes, &reading->set, &why);

    if (r < 0)
        return failure_set(&reading->why, r, "'%s': %.350s", reading->path, why.text);
    for (unsigned i = 0; i < jwk_set_count(reading->set); i++)
        token_key_narrow(jwk_set_key(reading->set, i), reading->algorithms);
    return 1;
}

int key_set_reading_begin(struct key_set_reading *reading, const struct key_set_file *file)
{
    *reading = (struct key_set_reading){.path = mem_strndup(file->path, strlen(file->path)),
                                        .algorithms = file->issuer->algorithms,
                                        .error = file->error};
    memcpy(reading->seen, file->seen, sizeof(reading->seen));
    return reading->path ? 0 : -ENOMEM;
}

void key_set_reading_run(struct key_set_reading *reading)
{
    unsigned char hash[SHA256_DIGEST_LENGTH] = {0};
    struct buffer bytes = BUFFER_INIT;
    int r = jwk_set_load(reading->path, &bytes, &reading->why);

    if (r == 0)
        SHA256((const unsigned char *)bytes.data, bytes.size, hash);
    if (r != reading->error || memcmp(hash, reading->seen, sizeof(hash)) != 0) {
        reading->error = r;
        memcpy(reading->seen, hash, sizeof(hash));
        reading->result = r == 0 ? parse_set(reading, buffer_slice(&bytes)) : r;
    }
    buffer_done(&bytes);
}

void key_set_reading_forget(struct key_set_reading *reading)
{
    jwk_set_free(reading->set);
    mem_free(reading->path);
}

int key_set_reading_end(struct key_set_reading *reading, struct key_set_file *file,
                        struct failure *reterr)
{
    struct jwk_set *old = file->set;

    file->error = reading->error;
    memcpy(file->seen, reading->seen, sizeof(file->seen));
    if (reading->result > 0) {
        file->set = reading->set;
        reading->set = old;
    }
    if (reading->result < 0)
        *reterr = reading->why;
    key_set_reading_forget(reading);
    return reading->result;
}

int key_set_file_reread(struct key_set_file *file, struct failure *reterr)
{
    struct key_set_reading reading;
    int r = key_set_reading_begin(&reading, file);

    if (r < 0)
        return r;
    key_set_reading_run(&reading);
    return key_set_reading_end(&reading, file, reterr);
}

static int add_file(struct issuer_keys *issuer, const char *path, bool may_be_missing,
                    struct failure *reterr)
{
    struct key_set_file *file = &issuer->files[issuer->file_count];
    int r;

    *file = (struct key_set_file){.path = mem_strndup(path, strlen(path)),
                                  .may_be_missing = may_be_missing,
                                  .issuer = issuer->settings};
    if (!file->path)
        return -ENOMEM;
    issuer->file_count++;
    r = key_set_file_reread(file, reterr);
    if (r < 0 && r != -ENOMEM && issuer->allows_bad_sets && !may_be_missing) {
        file->error = 1; /* different from no error: it is reported when the file is read again */
        return 0;
    }
    return r > 0 || (may_be_missing && r != -ENOMEM) ? 0 : r;
}

int issuer_keys_add_set(struct issuer_keys *issuer, const char *path, struct failure *reterr)
{
    return add_file(issuer, path, false, reterr);
}

static bool is_of(const struct key_source *source, const struct issuer_settings *issuer)
{
    return issuer->name && strcmp(source->issuer, issuer->name) == 0;
}

static int add_all(struct issuer_keys *issuer, const struct key_sources *sources,
                   struct failure *reterr)
{
    const struct issuer_settings *settings = issuer->settings;
    int r = 0;

    for (unsigned i = 0; r == 0 && i < settings->public_keys.count; i++)
        r = issuer_keys_add_public(issuer, settings->public_keys.items[i], reterr);
    for (unsigned i = 0; r == 0 && i < settings->jwks_files.count; i++)
        r = add_file(issuer, settings->jwks_files.items[i], false, reterr);
    for (unsigned i = 0; r == 0 && sources && i < sources->count; i++) {
        if (is_of(&sources->items[i], settings))
            r = add_file(issuer, sources->items[i].path, true, reterr);
    }
    return r;
}

int issuer_keys_init(struct issuer_keys *issuer, const struct issuer_settings *settings,
                     unsigned more_keys, unsigned more_files, const struct key_sources *sources,
                     bool allows_bad_sets, struct failure *reterr)
{
    size_t keys = (size_t)settings->public_keys.count + more_keys + 1;
    size_t files =
        (size_t)settings->jwks_files.count + more_files + (sources ? sources->count : 0) + 1;

    *issuer = (struct issuer_keys){.settings = settings, .allows_bad_sets = allows_bad_sets};
    token_name(sl_slice_str(settings->name ? settings->name : ""), issuer->name);
    issuer->keys = mem_alloc(mem_array_size(keys, sizeof(issuer->keys[0])));
    issuer->files = mem_alloc(mem_array_size(files, sizeof(issuer->files[0])));
    if (!issuer->keys || !issuer->files)
        return -ENOMEM;
    return add_all(issuer, sources, reterr);
}

/* --- names --- */

static bool share_an_algorithm(const struct token_key *a, const struct token_key *b)
{
    for (int i = 0; i < TOKEN_ALGORITHM_COUNT; i++) {
        if (token_key_takes(a, (enum token_algorithm)i) &&
            token_key_takes(b, (enum token_algorithm)i))
            return true;
    }
    return false;
}

int issuer_keys_check_names(const struct issuer_keys *issuer, struct failure *reterr)
{
    for (unsigned i = 0; i < issuer->key_count; i++) {
        const char *name = token_key_name(issuer->keys[i]);

        for (unsigned j = 0; j < i; j++) {
            if (token_key_is_called(issuer->keys[j], sl_slice_str(name)) &&
                share_an_algorithm(issuer->keys[i], issuer->keys[j]))
                return failure_set(reterr, -EEXIST, "two keys are called '%s'", name);
        }
    }
    return 0;
}

static bool is_same(const struct token_key *a, const struct token_key *b)
{
    return a && token_key_thumbprint(a)[0] != '\0' &&
           strcmp(token_key_thumbprint(a), token_key_thumbprint(b)) == 0;
}

static void see(const struct issuer_keys *issuer, const struct token_key *key,
                enum token_algorithm algorithm, struct sl_slice kid, struct key_choice *choice)
{
    if (kid.data && !token_key_is_called(key, kid))
        return;
    choice->called++;
    if (!token_key_takes(key, algorithm) || (choice->issuer == issuer && is_same(choice->key, key)))
        return;
    choice->fitting++;
    choice->key = key;
    choice->issuer = issuer;
}

void issuer_keys_choose(const struct issuer_keys *issuer, enum token_algorithm algorithm,
                        struct sl_slice kid, struct key_choice *choice)
{
    for (unsigned i = 0; i < issuer->key_count; i++)
        see(issuer, issuer->keys[i], algorithm, kid, choice);
    for (unsigned i = 0; i < issuer->file_count; i++) {
        const struct jwk_set *set = issuer->files[i].set;

        for (unsigned j = 0; set && j < jwk_set_count(set); j++)
            see(issuer, jwk_set_key(set, j), algorithm, kid, choice);
    }
}

bool issuer_keys_are_awaited(const struct issuer_keys *issuer)
{
    for (unsigned i = 0; i < issuer->file_count; i++) {
        if (issuer->files[i].may_be_missing && !issuer->files[i].set)
            return true;
    }
    return false;
}

unsigned issuer_keys_count(const struct issuer_keys *issuer)
{
    unsigned count = issuer->key_count;

    for (unsigned i = 0; i < issuer->file_count; i++)
        count += issuer->files[i].set ? jwk_set_count(issuer->files[i].set) : 0;
    return count;
}

const struct token_key *issuer_keys_key(const struct issuer_keys *issuer, unsigned n)
{
    assert(n < issuer_keys_count(issuer));
    if (n < issuer->key_count)
        return issuer->keys[n];
    n -= issuer->key_count;
    for (unsigned i = 0; i < issuer->file_count; i++) {
        const struct jwk_set *set = issuer->files[i].set;
        unsigned count = set ? jwk_set_count(set) : 0;

        if (n < count)
            return jwk_set_key(set, n);
        n -= count;
    }
    return NULL;
}
