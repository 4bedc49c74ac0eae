// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// Where the functions of the schema are called.
package protocol PostgresServer: Sendable {
  /// - Parameter user: Whose turn it takes among the calls that wait.
  nonisolated(nonsending) func run(
    _ call: PostgresCall,
    for user: String
  ) async throws(PostgresFailure) -> [PostgresRow]
}

/// What calls can be made of: nothing else is ever sent.
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
  case erase = "erase_1"

  /// Whether it changes anything: if its answer is lost, its outcome is unknown.
  var isWrite: Bool {
    switch self {
    case .take, .want, .renew, .append, .snapshot, .release, .erase: true
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
  case change(ChangeID?)

  /// The number of its type in every server's catalogue.
  var type: UInt32 {
    switch self {
    case .integer: 20
    case .text: 25
    case .bytes: 17
    case .truth: 16
    case .change: 2950
    }
  }

  /// As the server reads it in binary; `nil` for NULL.
  var encoded: [UInt8]? {
    switch self {
    case .integer(let number): number.map { BigEndian.bytes(UInt64(bitPattern: $0)) }
    case .text(let text): text.map { Array($0.utf8) }
    case .bytes(let bytes): bytes
    case .truth(let isTrue): [isTrue ? 1 : 0]
    case .change(let change): change.map { BigEndian.bytes($0.high) + BigEndian.bytes($0.low) }
    }
  }
}

/// A row of an answer: its columns as the server writes them in binary. What is missing, or of another type, is `nil`.
package struct PostgresRow: Sendable {
  private let columns: [[UInt8]?]

  package init(_ columns: [[UInt8]?]) { self.columns = columns }

  package func bytes(_ column: Int) -> [UInt8]? { column < columns.count ? columns[column] : nil }

  package func integer(_ column: Int) -> Int64? {
    guard let bytes = bytes(column), bytes.count == 8 else { return nil }
    return Int64(bitPattern: BigEndian.number(bytes[...]))
  }

  package func truth(_ column: Int) -> Bool { bytes(column) == [1] }

  package func text(_ column: Int) -> String? { bytes(column).map { String(decoding: $0, as: UTF8.self) } }

  package func change(_ column: Int) -> ChangeID? {
    guard let bytes = bytes(column), bytes.count == 16 else { return nil }
    return ChangeID(high: BigEndian.number(bytes[..<8]), low: BigEndian.number(bytes[8...]))
  }
}

/// Why a call has no answer.
package enum PostgresFailure: Error, Hashable, Sendable {
  /// No server carried it out.
  case away(String)
  /// Whether it was carried out is unknown.
  case unknown(String)
  /// The server refused it and changed nothing; its SQLSTATE, and what it says.
  case refused(state: String, String)
}

/// Numbers of eight bytes, the highest first.
enum BigEndian {
  static func bytes(_ number: UInt64) -> [UInt8] {
    stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> UInt64($0)) }
  }

  static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
}
