// SPDX-License-Identifier: Apache-2.0

internal import CSQLite

/// SQLite as an application would use it by itself: its own file, one durable transaction for each state.
final class SQLitePeer: RunningPeer {
  private var connection: OpaquePointer?
  private var write: OpaquePointer?
  private var read: OpaquePointer?

  init(_ path: String) throws {
    guard sqlite3_open(path, &connection) == SQLITE_OK else { throw failure }
    for text in [
      "PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "CREATE TABLE states (object TEXT PRIMARY KEY, state TEXT)",
    ] {
      guard sqlite3_exec(connection, text, nil, nil, nil) == SQLITE_OK else { throw failure }
    }
    sqlite3_prepare_v2(connection, "INSERT OR REPLACE INTO states VALUES (?1, ?2)", -1, &write, nil)
    sqlite3_prepare_v2(connection, "SELECT state FROM states WHERE object = ?1", -1, &read, nil)
  }

  deinit {
    sqlite3_finalize(write)
    sqlite3_finalize(read)
    sqlite3_close(connection)
  }

  private var failure: Failure { Failure("SQLite: \(String(cString: sqlite3_errmsg(connection)))") }

  func fill(_ subject: Subject) throws {
    sqlite3_exec(connection, "BEGIN", nil, nil, nil)
    let work = work(.encode, subject)
    for key in 0..<subject.objects { try work(key) }
    guard sqlite3_exec(connection, "COMMIT", nil, nil, nil) == SQLITE_OK else { throw failure }
  }

  func measure(_ work: Work, _ subject: Subject, seconds: Double) throws -> Figures {
    let work = self.work(work, subject)
    var figures = Figures()
    let (start, cpu) = (Clock.now, Clock.ownCPU)
    let end = start + UInt64(seconds * 1e9)
    var now = start
    var count = 0
    while now < end {
      try work(count % max(1, subject.objects))
      count += 1
      let next = Clock.now
      figures.latency.note(next - now)
      now = next
    }
    figures.seconds = Double(now - start) / 1e9
    figures.serverCPU = Clock.ownCPU - cpu
    return figures
  }

  private func work(_ work: Work, _ subject: Subject) -> (Int) throws -> Void {
    let object = MessageTemplate("window-\(MessageTemplate.key)")
    let state = MessageTemplate(SampleState.text(bytes: subject.size)).message()
    let statement = work == .decode ? read : write
    return { [self] key in
      sqlite3_reset(statement)
      let name = object.message(key: key)
      // Both stay until the step is done.
      let result = name.withUnsafeBytes { name in
        state.withUnsafeBytes { state in
          let bytes = name.baseAddress?.assumingMemoryBound(to: CChar.self)
          sqlite3_bind_text(statement, 1, bytes, Int32(name.count), nil)
          if statement == write {
            let bytes = state.baseAddress?.assumingMemoryBound(to: CChar.self)
            sqlite3_bind_text(statement, 2, bytes, Int32(state.count), nil)
          }
          return sqlite3_step(statement)
        }
      }
      guard result == (work == .decode ? SQLITE_ROW : SQLITE_DONE) else { throw failure }
    }
  }
}
