// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
internal import RestorationReplica

package protocol PostgresServer: Sendable {
  /// - Parameter user: whose turn the call takes among those that wait.
  nonisolated(nonsending) func run(
    _ call: PostgresCall,
    for user: String
  ) async throws(PostgresFailure) -> [PostgresRow]
}

/// The functions that can be called: no other statement is ever sent.
package enum PostgresFunction: String, Sendable {
  case server = "server_1"
  case look = "look_1"
  case take = "take_1"
  case want = "want_1"
  case renew = "renew_1"
  case wanted = "wanted_1"
  case append = "append_1"
  case load = "load_1"
  case snapshot = "snapshot_1"
  case release = "release_1"
  case list = "list_1"
  case usage = "usage_1"

  /// Whether it changes data: if its answer is lost, its outcome is unknown.
  var isWrite: Bool {
    switch self {
    case .take, .want, .renew, .append, .snapshot, .release: true
    case .server, .look, .wanted, .load, .list, .usage: false
    }
  }
}

package struct PostgresCall: Sendable {
  package let function: PostgresFunction
  package let values: [PostgresValue]

  package init(_ function: PostgresFunction, _ values: [PostgresValue] = []) {
    (self.function, self.values) = (function, values)
  }

  /// The size of its long values.
  var bytes: Int { values.reduce(0) { if case .bytes(let bytes) = $1 { $0 + bytes.count } else { $0 } } }

  /// Values are parameters, never text of the statement.
  var text: String {
    let places = values.indices.map { "$\($0 + 1)" }.joined(separator: ", ")
    return "SELECT * FROM restoration.\(function.rawValue)(\(places))"
  }
}

/// A parameter; `nil` is NULL.
package enum PostgresValue: Sendable {
  case integer(Int64?)
  case text(String?)
  case bytes([UInt8])
  case truth(Bool)
  case uuid(ChangeID?)

  /// The type's number in every server's catalogue.
  var type: UInt32 {
    switch self {
    case .integer: 20
    case .text: 25
    case .bytes: 17
    case .truth: 16
    case .uuid: 2950
    }
  }

  /// In the server's binary form; `nil` for NULL.
  var encoded: [UInt8]? {
    var encoded: [UInt8] = []
    switch self {
    case .integer(nil), .text(nil), .uuid(nil): return nil
    case .integer(let number?): encoded.append(number: number)
    case .text(let text?): encoded += text.utf8
    case .bytes(let bytes): return bytes
    case .truth(let isTrue): encoded = [isTrue ? 1 : 0]
    case .uuid(let uuid?): encoded.append(uuid)
    }
    return encoded
  }
}

/// A row of an answer, in the server's binary form. A missing column, or one of another type, reads as `nil`.
package struct PostgresRow: Sendable {
  private let columns: [[UInt8]?]

  package init(_ columns: [[UInt8]?]) { self.columns = columns }

  package func bytes(_ column: Int) -> [UInt8]? { column < columns.count ? columns[column] : nil }

  package func integer(_ column: Int) -> Int64? {
    guard var bytes = bytes(column)?[...], bytes.count == 8 else { return nil }
    return bytes.takeNumber()
  }

  package func truth(_ column: Int) -> Bool { bytes(column) == [1] }

  package func text(_ column: Int) -> String? { bytes(column).map { String(decoding: $0, as: UTF8.self) } }

  package func uuid(_ column: Int) -> ChangeID? {
    guard var bytes = bytes(column)?[...], bytes.count == 16 else { return nil }
    return bytes.takeChange()
  }
}

package enum PostgresFailure: Error, Hashable, Sendable {
  /// No server executed the call.
  case away(String)
  case unknown(String)
  /// The server refused the call and changed nothing; its SQLSTATE and message.
  case refused(state: String, String)

  static let schemaRemedy =
    "apply the schema of this version to the database: restoration-gateway schema | psql DATABASE"

  /// Why, and if functions or rights are missing what to do.
  var text: String {
    switch self {
    case .away(let why), .unknown(let why): why
    case .refused(state: "42501", let why):
      "\(why) (42501); the administrator lets this host in by SELECT restoration.admit('HOST', 'USER')"
    case .refused(let state, let why):
      ["3F", "42"].contains(state.prefix(2)) ? "\(why) (\(state)); \(Self.schemaRemedy)" : "\(why) (\(state))"
    }
  }
}
