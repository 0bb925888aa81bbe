/* gateway/front/issuer_keys.h - an issuer and all its keys, from all sources.
 *
 * A key is valid for its own issuer only: the caller asks the issuer that the token names, or each
 * in turn, and never combines their answers. Sets are files that may change (issuer_keys_reread());
 * others are read once. */
#pragma once

#include "gateway/front/issuers.h"
#include "gateway/front/jwk_set.h"
#include "gateway/front/key_source.h"
#include "gateway/front/token_name.h"

struct key_set_file {
    char *path;
    const struct issuer_settings *issuer;
    struct jwk_set *set;    /* the last valid one; NULL: none yet */
    bool may_be_missing;    /* a process fetches it */
    int error;              /* of the last reading: 0, or a negative errno */
    unsigned char seen[32]; /* hash of its last content, valid or not */
};

struct issuer_keys {
    const struct issuer_settings *settings;
    char name[TOKEN_NAME_SIZE];
    struct token_key **keys;
    struct key_set_file *files;
    unsigned key_count, file_count;
    bool allows_bad_sets;
};

/* Reads the keys of this issuer: those that the settings name, and the files of `sources`, which
 * may be NULL. Makes room for this many keys and set files in addition. The settings must outlive
 * it. An invalid set is an error; if that is allowed, it has no keys until it is read again. 0; a
 * negative errno: *reterr names the file. Call issuer_keys_done() in any case. */
int issuer_keys_init(struct issuer_keys *issuer, const struct issuer_settings *settings,
                     unsigned more_keys, unsigned more_files, const struct key_sources *sources,
                     bool allows_bad_sets, struct failure *reterr);
void issuer_keys_done(struct issuer_keys *issuer);

int issuer_keys_add_secret(struct issuer_keys *issuer, const char *path, struct failure *reterr);
int issuer_keys_add_public(struct issuer_keys *issuer, const char *path, struct failure *reterr);
int issuer_keys_add_set(struct issuer_keys *issuer, const char *path, struct failure *reterr);
/* Checks that `kid` can distinguish the keys that are not in sets. 0; -EEXIST. */
int issuer_keys_check_names(const struct issuer_keys *issuer, struct failure *reterr);

/* The keys that fit a token. Initialize with {0}, and pass it to issuer_keys_choose() for each
 * issuer to be searched. */
struct key_choice {
    const struct token_key *key; /* if `fitting` is 1 */
    const struct issuer_keys *issuer;
    unsigned called;  /* number of keys with this name, of any kind */
    unsigned fitting; /* those that also support the algorithm; a duplicated key counts once */
};

/* `kid` absent: every name matches. */
void issuer_keys_choose(const struct issuer_keys *issuer, enum token_algorithm algorithm,
                        struct sl_slice kid, struct key_choice *choice);

/* Whether one of its sets is fetched, and has never been received. */
bool issuer_keys_are_awaited(const struct issuer_keys *issuer);
/* The number of its keys, of any kind. */
unsigned issuer_keys_count(const struct issuer_keys *issuer);
const struct token_key *issuer_keys_key(const struct issuer_keys *issuer, unsigned n);

/* A reading of a set file in three steps. The middle one, which takes 30 ms for the largest set,
 * may be run by another thread, because the reading contains everything that it needs. */
struct key_set_reading {
    char *path;
    unsigned algorithms;
    unsigned char seen[32]; /* of the content before; then of the new content */
    int error;              /* before, then after */
    int result;             /* returned by key_set_reading_end() */
    struct jwk_set *set;    /* if `result` is 1 */
    struct failure why;     /* if `result` is negative */
};

/* 0: call one of the two ending functions; -ENOMEM. */
int key_set_reading_begin(struct key_set_reading *reading, const struct key_set_file *file);
void key_set_reading_run(struct key_set_reading *reading);
/* 1: the file has new keys; 0: its content is unchanged, valid or not; a negative errno: it has
 * become invalid, *reterr names the file, and the keys are unchanged. */
int key_set_reading_end(struct key_set_reading *reading, struct key_set_file *file,
                        struct failure *reterr);
/* Ends the reading for a file that is no longer used. */
void key_set_reading_forget(struct key_set_reading *reading);
/* All three steps at once. */
int key_set_file_reread(struct key_set_file *file, struct failure *reterr);
