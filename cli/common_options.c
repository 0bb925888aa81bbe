#include "cli/common_options.h"

const struct cli_option common_options[] = {
    {"redis", COMMON_REDIS, "URL",
     "Where Redis is: redis://[user:password@]host[:port][/db], unix:///path, "
     "redis+sentinel://[user:password@]host[:port],.../master-name for the master that sentinels "
     "name, or redis+cluster://[user:password@]host[:port],... for a cluster with these nodes. "
     "Over TLS it begins with rediss, not redis; behind a question mark may stand then ssl-ca, "
     "ssl-cert and ssl-key, each with an absolute path, and ssl-name, with & between them. "
     "Else SLUICE_REDIS in the environment, which other users of the machine cannot see; else "
     "the Redis that a running sluiced has started in its data directory (SLUICE_DATA_DIR).",
     NULL, CLI_ONCE},
    {"archive", COMMON_ARCHIVE, "URL",
     "Where posts are that have outgrown profile-max: sqlite:/path/to/file, or "
     "mysql://user[:password]@host[:port]/database in MySQL or MariaDB. Behind a question mark the "
     "latter takes socket, password-file, ssl-ca, ssl-cert and ssl-key, each with an absolute "
     "path, "
     "and timeout in seconds, with & between them. posts, read, comments and delete find them "
     "there, "
     "too; worker moves them there. Else SLUICE_ARCHIVE in the environment; else there is none.",
     NULL, CLI_ONCE},
    {"cache", COMMON_CACHE, "URL",
     "A memcached that keeps posts at hand: memcached://host[:port][,host...] or "
     "memcached:///path/to/socket. Posts that are read by id or on pages come from there as far as "
     "they can, and those that are deleted are taken out. Whether it answers changes nothing of "
     "what "
     "is shown. Else SLUICE_CACHE in the environment; else there is none.",
     NULL, CLI_ONCE},
    {"wait-replicas", COMMON_WAIT_REPLICAS, "N",
     "Succeed only when so many replicas of Redis have the change, too. When they do not within a "
     "second the command fails, though the change is made: a failover may undo it.",
     NULL, CLI_ONCE},
    {"help", COMMON_HELP, NULL, "Say what a command is for, or list them all; -h is the same.",
     NULL, CLI_MANY},
    {"version", COMMON_VERSION, NULL, "Print the version.", NULL, CLI_MANY},
    CLI_OPTIONS_END,
};
