// SPDX-License-Identifier: Apache-2.0

internal import CSQLite

/// Runs SQL on a closed archive's file behind the store's back; returns the rows, columns joined by `|`.
@discardableResult
func runSQL(_ sql: String, in path: String, keepingLog: Bool = false) throws -> [String] {
  var connection: OpaquePointer?
  defer { sqlite3_close_v2(connection) }
  guard sqlite3_open_v2(path, &connection, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK else {
    throw SQLFailure(message: String(cString: sqlite3_errmsg(connection)))
  }
  if keepingLog { restoration_sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1) }
  var statement: OpaquePointer?
  defer { sqlite3_finalize(statement) }
  guard sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK else {
    throw SQLFailure(message: String(cString: sqlite3_errmsg(connection)))
  }
  var rows: [String] = []
  while true {
    switch sqlite3_step(statement) {
    case SQLITE_ROW:
      let columns = (0..<sqlite3_column_count(statement)).map { column in
        sqlite3_column_text(statement, column).map { String(cString: $0) } ?? ""
      }
      rows.append(columns.joined(separator: "|"))
    case SQLITE_DONE: return rows
    default: throw SQLFailure(message: String(cString: sqlite3_errmsg(connection)))
    }
  }
}

struct SQLFailure: Error {
  let message: String
}
