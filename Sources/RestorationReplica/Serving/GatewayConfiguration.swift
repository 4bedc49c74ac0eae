// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationWire

/// The administrator's settings (`Protocol/gateway.md`).
package struct GatewayConfiguration: WireObject {
  /// The database, in libpq's form; it may name several hosts and contain a password.
  package var conninfo = ""
  package var pool = 4
  /// Whether data must be stored on a second server as well.
  package var synchronous = true
  package var userBytesMax = 256 << 20
  /// The name of this host; `nil` for the system's.
  package var host: String?
  package var logLevel = "info"

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("conninfo", &conninfo, .name, "The database, as libpq reads it.")
    try members.member("pool", &pool, default: 4, "Connections to the database, 1 to 16.")
    try members.member("synchronous", &synchronous, default: true, "Whether a second server must have what is stored.")
    try members.member("userBytesMax", &userBytesMax, default: 256 << 20, "Bytes of contents that a user may have.")
    try members.optional("host", &host, .role, "The name of this host.")
    try members.member("logLevel", &logLevel, default: "info", "How much is logged.")
  }

  /// A valid file, for messages.
  package static let example =
    #"{"conninfo": "host=db1,db2 dbname=restoration user=HOST password=… sslmode=verify-full"}"#

  package struct Fault: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
  }

  /// - Parameters:
  ///   - text: the file's text.
  ///   - path: for messages.
  package init(_ text: String, of path: String) throws(Fault) {
    let slice: JSONSlice
    do throws(JSONError) {
      slice = try JSONSlice.scan(Array(text.utf8), vocabulary: GatewayProtocol.vocabulary)
    } catch {
      throw Fault("\(path) is not JSON: \(error.message) at byte \(error.position); such as \(Self.example)")
    }
    guard slice.kind == .object else { throw Fault("\(path) is not a JSON object; write \(Self.example)") }
    let known = Self.members.map(\.name)
    if let unknown = slice.members?.first(where: { !known.contains($0.name) }) {
      throw Fault("\(path): unknown setting \(unknown.name); use \(known.joined(separator: ", "))")
    }
    do throws(Misfit) {
      try self.init(wire: slice)
      guard (1...16).contains(pool) else { throw Misfit("an integer from 1 to 16", at: "pool") }
    } catch {
      let isMissing = error.fault == .missing
      let error = error.invalidParameter(at: error.place)
      let hint = isMissing ? "Give it, such as \(Self.example)." : error.data?["hint"]?.string ?? ""
      throw Fault("\(path): \(error.message). \(hint)")
    }
  }
}
