#include "cli/common_options.h"

const struct cli_option common_options[] = {
    {"redis", COMMON_REDIS, "URL",
     "The URL of Redis: redis://[user:password@]host[:port][/db], unix:///path, "
     "redis+sentinel://[user:password@]host[:port],.../master-name for the master named by "
     "sentinels, or redis+cluster://[user:password@]host[:port],... for a cluster with these "
     "nodes. For TLS it begins with rediss instead of redis, and may have options after a "
     "question mark, joined by &: ssl-ca, ssl-cert and ssl-key, each an absolute path, and "
     "ssl-name. The default is SLUICE_REDIS in the environment, which other users of the machine "
     "cannot see, or else the Redis that a running sluiced has started in its data directory "
     "(SLUICE_DATA_DIR).",
     NULL, CLI_ONCE},
    {"archive", COMMON_ARCHIVE, "URL",
     "The archive for posts beyond profile-max: sqlite:/path/to/file, or "
     "mysql://user[:password]@host[:port]/database for MySQL or MariaDB. The latter may have "
     "options after a question mark, joined by &: socket, password-file, ssl-ca, ssl-cert and "
     "ssl-key, each an absolute path, and timeout in seconds. posts, read, comments and delete "
     "find archived posts, too; worker moves them there. The default is SLUICE_ARCHIVE in the "
     "environment, or else none.",
     NULL, CLI_ONCE},
    {"cache", COMMON_CACHE, "URL",
     "A memcached as a cache of posts: memcached://host[:port][,host...] or "
     "memcached:///path/to/socket. Posts that are read by id or on pages come from there if "
     "possible, and deleted posts are removed from it. The output is the same without it. The "
     "default is SLUICE_CACHE in the environment, or else none.",
     NULL, CLI_ONCE},
    {"wait-replicas", COMMON_WAIT_REPLICAS, "N",
     "Succeed only when this many replicas of Redis have the change, too. If they do not within "
     "a second the command fails, although the change is made: a failover may undo it.",
     NULL, CLI_ONCE},
    {"help", COMMON_HELP, NULL, "Describe a command, or list them all; -h is the same.", NULL,
     CLI_MANY},
    {"version", COMMON_VERSION, NULL, "Print the version.", NULL, CLI_MANY},
    CLI_OPTIONS_END,
};
