/* gateway/front/issuer_keys.h - an issuer and all its keys, wherever they come from.
 *
 * What a key verifies counts for its issuer alone: whoever checks a token asks the issuer that the
 * token names, or each, and takes nothing from another one's answer. Sets are files that may change
 * (issuer_keys_reread()); the others are read once. */
#pragma once

#include "gateway/front/issuers.h"
#include "gateway/front/jwk_set.h"
#include "gateway/front/key_source.h"
#include "gateway/front/token_name.h"

struct key_set_file {
    char *path;
    const struct issuer_settings *issuer;
    struct jwk_set *set;    /* the last good one; NULL: none yet */
    bool may_be_missing;    /* somebody fetches it */
    int error;              /* of the last time: 0, or a negative errno */
    unsigned char seen[32]; /* hash of what was read last, good or bad */
};

struct issuer_keys {
    const struct issuer_settings *settings;
    char name[TOKEN_NAME_SIZE];
    struct token_key **keys;
    struct key_set_file *files;
    unsigned key_count, file_count;
    bool allows_bad_sets;
};

/* Room for so many keys and files of sets, besides those that the settings name and the files of
 * `sources`, NULL allowed, that are of this issuer, which are read. The settings must outlive it. A
 * bad set is an error; where that is allowed, it is no keys until it is read once more. 0; a
 * negative errno: *reterr names the file. In any case issuer_keys_done() follows. */
int issuer_keys_init(struct issuer_keys *issuer, const struct issuer_settings *settings,
                     unsigned more_keys, unsigned more_files, const struct key_sources *sources,
                     bool allows_bad_sets, struct failure *reterr);
void issuer_keys_done(struct issuer_keys *issuer);

int issuer_keys_add_secret(struct issuer_keys *issuer, const char *path, struct failure *reterr);
int issuer_keys_add_public(struct issuer_keys *issuer, const char *path, struct failure *reterr);
int issuer_keys_add_set(struct issuer_keys *issuer, const char *path, struct failure *reterr);
/* Could `kid` choose among the keys that are not of sets? 0; -EEXIST. */
int issuer_keys_check_names(const struct issuer_keys *issuer, struct failure *reterr);

/* What keys there are for a token. Begin with {0}, show it each issuer that counts. */
struct key_choice {
    const struct token_key *key; /* with `fitting` 1 */
    const struct issuer_keys *issuer;
    unsigned called; /* keys of this name, of whatever kind */
    unsigned
        fitting; /* those that take the algorithm, too; a key that is there twice counts once */
};

/* `kid` absent: every key is called so. */
void issuer_keys_choose(const struct issuer_keys *issuer, enum token_algorithm algorithm,
                        struct sl_slice kid, struct key_choice *choice);

/* Is there a set of it that is fetched, and has not been so far? */
bool issuer_keys_are_awaited(const struct issuer_keys *issuer);
/* All its keys, of whatever kind. */
unsigned issuer_keys_count(const struct issuer_keys *issuer);
const struct token_key *issuer_keys_key(const struct issuer_keys *issuer, unsigned n);

/* One reading of a file, in three steps: the middle one, which takes 30 ms for the largest set, may
 * be made by another thread, for a reading has all that it needs. */
struct key_set_reading {
    char *path;
    unsigned algorithms;
    unsigned char seen[32]; /* before; then what was found */
    int error;              /* the same */
    int result;             /* what key_set_reading_end() returns */
    struct jwk_set *set;    /* with `result` 1 */
    struct failure why;     /* with a negative `result` */
};

/* 0: one of the two ends follows; -ENOMEM. */
int key_set_reading_begin(struct key_set_reading *reading, const struct key_set_file *file);
void key_set_reading_run(struct key_set_reading *reading);
/* 1: the file's keys are what was read; 0: it is what it was, good or bad; a negative errno: it is
 * bad, other than before, *reterr names the file, the keys are as before.
 */
int key_set_reading_end(struct key_set_reading *reading, struct key_set_file *file,
                        struct failure *reterr);
/* The file is not ours any more. */
void key_set_reading_forget(struct key_set_reading *reading);
/* All three at once. */
int key_set_file_reread(struct key_set_file *file, struct failure *reterr);
