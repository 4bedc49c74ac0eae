// SPDX-License-Identifier: Apache-2.0

#ifndef RESTORATION_CSQLITE_SHIM_H
#define RESTORATION_CSQLITE_SHIM_H

#include <sqlite3.h>

/// `sqlite3_db_config` is variadic, which Swift cannot call; every option used here takes an `int` and an `int *`.
static inline int restoration_sqlite3_db_config(sqlite3 *connection, int option, int value) {
  return sqlite3_db_config(connection, option, value, (int *)0);
}

#endif
