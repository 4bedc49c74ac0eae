// SPDX-License-Identifier: Apache-2.0

internal import CSQLite
internal import Foundation
internal import RestorationArchive

extension FuzzTarget {
  /// Files of an archive, with any of their bytes or rows changed. The first byte says whether its broker was killed;
  /// five bytes are a change. The service opens it, reads all of it, and writes.
  static let archive = FuzzTarget(
    name: "archive",
    seeds: {
      (UInt8(0)..<12).map { (number: UInt8) -> [UInt8] in [number & 1, number * 21, 0, number * 17, 99, 0] }
    },
    run: { input in
      guard let first = input.first else { return }
      let folder = FuzzedArchive(isKilled: first & 1 == 1)
      defer { folder.remove() }
      for start in stride(from: 1, to: min(input.count - 4, 41), by: 5) {
        folder.change(Array(input[start..<start + 5]))
      }
      FuzzedArchive.use(folder.broker())
    }
  )
}

/// A directory with the files of one application's archive.
private struct FuzzedArchive {
  private let folder: FuzzFolder
  private var path: String { folder.path }

  private init(_ files: [String: Data] = [:]) { folder = FuzzFolder(files) }

  init(isKilled: Bool) { self.init(isKilled ? Self.killed : Self.closed) }

  func remove() { folder.remove() }

  func broker() -> FuzzedBroker {
    FuzzedBroker { try SQLiteArchiveStore(directory: path, on: $0, upkeep: ArchiveUpkeep(ballastBytes: 0)) }
  }

  // MARK: Changes

  private static let values = [
    "9223372036854775807", "-9223372036854775808", "-1", "0", "1", "3", "1e300", "NULL", "''", "'x'", "x'ff00fe'",
    "'[[0,99999,1],[-5,2,9223372036854775807]]'", #"'{"strikes":9223372036854775807}'"#, "randomblob(40)",
  ]

  /// - Parameter change: what is changed, and four bytes that say how.
  func change(_ change: [UInt8]) {
    if change[0] >= 128 { return changeRow(change) }
    let names = Self.killed.keys.sorted()
    let file = "\(path)/\(names[Int(change[0]) % names.count])"
    guard var data = FileManager.default.contents(atPath: file), !data.isEmpty else { return }
    let place = Int(change[1]) << 16 | Int(change[2]) << 8 | Int(change[3])
    data[place % data.count] = change[4]
    if change[0] >= 120 { data.removeLast(place % data.count) }
    try? data.write(to: URL(fileURLWithPath: file))
  }

  private func changeRow(_ change: [UInt8]) {
    let (table, column) = Self.columns[(Int(change[0] & 127) << 8 | Int(change[1])) % Self.columns.count]
    let row = change[2] < 128 ? "" : " WHERE rowid = (SELECT max(rowid) FROM \(table))"
    let value = Self.values[Int(change[3]) % Self.values.count]
    // What is refused leaves less damage.
    Self.query(
      "\(path)/App.sqlite",
      change[4] < 16
        ? "DELETE FROM \(table)\(row)" : "UPDATE OR REPLACE \(table) SET \(column) = \(value)\(row)"
    )
  }

  @discardableResult
  private static func query(_ file: String, _ sql: String) -> [(String, String)] {
    var (connection, statement): (OpaquePointer?, OpaquePointer?)
    defer {
      sqlite3_finalize(statement)
      sqlite3_close_v2(connection)
    }
    guard sqlite3_open_v2(file, &connection, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK,
      sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK
    else { return [] }
    var rows: [(String, String)] = []
    while sqlite3_step(statement) == SQLITE_ROW {
      rows.append(
        (String(cString: sqlite3_column_text(statement, 0)), String(cString: sqlite3_column_text(statement, 1)))
      )
    }
    return rows
  }

  // MARK: What is changed

  private static let closed = files(isKilled: false)
  private static let killed = files(isKilled: true)
  private static let columns: [(String, String)] = {
    let folder = FuzzedArchive(isKilled: false)
    defer { folder.remove() }
    return query(
      "\(folder.path)/App.sqlite",
      "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name) p WHERE m.type = 'table' ORDER BY 1, 2"
    )
  }()

  /// The files of an archive with something in most tables.
  private static func files(isKilled: Bool) -> [String: Data] {
    let folder = FuzzedArchive()
    defer { folder.remove() }
    let broker = folder.broker()
    let client = broker.connect()
    let calls = [
      #""initialize","params":{"application":"App","process":"main"}"#,
      #""registerObjectForStateRestoration","params":{"restorationIdentifier":"Main","kind":"viewController"}"#,
      #""registerObjectForStateRestoration","params":{"restorationIdentifier":"List","restorationParent":["Main"]}"#,
      #""encodeRestorableState","params":{"object":["Main"],"state":{"n":1,"to":{"$restorable":["Main","List"]}}}"#,
      #""encodeRestorableState","params":{"object":["Main","List"],"state":{"n":2}}"#,
      #""completeStateRestoration""#, #""saveApplicationState""#,
      #""encodeRestorableState","params":{"object":["Main"],"state":{"n":3}}"#,
    ]
    for (number, call) in calls.enumerated() {
      client.send(#"{"jsonrpc":"2.0","id":\#(number),"method":\#(call)}"#.utf8 + [10])
      broker.run()
    }
    if !isKilled { broker.stop() }
    let files = folder.folder.files
    if isKilled { broker.stop() }
    return files
  }

  // MARK: Use

  static func use(_ broker: FuzzedBroker) {
    let (tool, client) = (broker.connect(), broker.connect())
    func call(_ peer: FuzzedPeer, _ method: String, _ parameters: String = "{}") {
      peer.send(#"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":\#(parameters)}"#.utf8 + [10])
      broker.run()
    }
    let named = #"{"application":"App"}"#
    for method in ["listApplications", "describeApplication", "listGenerations", "readArchive", "exportArchive"] {
      call(tool, method, named)
    }
    call(tool, "verifyArchive", named)
    call(tool, "diffGenerations", #"{"application":"App","from":1}"#)
    call(client, "initialize", #"{"application":"App","process":"main"}"#)
    call(client, "explainRestoration", #"{"object":["Main"]}"#)
    call(client, "registerObjectForStateRestoration", #"{"restorationIdentifier":"Main","kind":"viewController"}"#)
    for object in [#"["Main"]"#, #"["Main","List"]"#] {
      call(client, "decodeRestorableState", #"{"object":\#(object)}"#)
    }
    call(client, "encodeRestorableState", #"{"object":["Main"],"state":{"n":7}}"#)
    for method in ["restoreApplicationState", "completeStateRestoration", "saveApplicationState"] {
      call(client, method)
    }
    call(tool, "rollBack", #"{"application":"App","generation":1}"#)
    broker.advance(milliseconds: 30_000)
    demand(tool.isOpen && client.isOpen, "the broker closes the connections of its clients")
    broker.stop()
  }
}
