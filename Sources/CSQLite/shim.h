// SPDX-License-Identifier: Apache-2.0

#ifndef RESTORATION_CSQLITE_SHIM_H
#define RESTORATION_CSQLITE_SHIM_H

#include <sqlite3.h>

/// `sqlite3_db_config` is variadic, which Swift cannot call; every option used here takes an `int` and an `int *`.
static inline int restoration_sqlite3_db_config(sqlite3 *connection, int option, int value) {
  return sqlite3_db_config(connection, option, value, (int *)0);
}

/// Lets pages of caches be allocated one by one: SQLite would take 20 at once for each connection, and keep them until
/// it is closed. Only before the first connection of the process, or other use of SQLite; later it fails, and changes
/// nothing.
static inline int restoration_sqlite3_config_pages(void) {
  return sqlite3_config(SQLITE_CONFIG_PAGECACHE, (void *)0, 0, 0);
}

#endif
