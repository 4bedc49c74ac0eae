// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient

/// Commands about what a state leads to. Those of LibraryClient that have these names do the same; `drop` releases
/// objects, as a program does.
///
///   at {path}                 -> {name}: the program's own object there, or null
///   referred {name, key}      -> {name}: the program's own object that a reference in a decoded state leads to, or null
///   twice {name}              registers another object of the program's under the path            -> {told}: the error
///   pass {from, to}           reads the bytes and the date of a state and writes them to another one
///                             -> {bytes: [number, ...], milliseconds}, as it read them
///   drop {names}              -> {}
extension ServingProcess {
  func lookUp(_ command: JSONValue, _ session: RestorationSession) async throws -> JSONValue {
    let name = command["name"]?.string ?? ""
    switch command["do"]?.string {
    case "at":
      return Self.name(session.object(at: IdentifierPath(command["path"]?.array?.compactMap(\.string) ?? [])))
    case "referred":
      let state = try await session.decode(try object(name)).state
      guard case .object(let object)? = state?[command["key"]?.string ?? ""]?.reference else { return Self.name(nil) }
      return Self.name(object)
    case "twice":
      let path = try object(name).path?.components ?? []
      let another = ServedObject("another", of: self)
      do {
        try await session.register(ObjectRegistration(path.last), restoring: another)
      } catch let error as RestorationSessionError where error.code == .duplicateObject {
        return ["told": .string(error.message)]
      }
    case "pass":
      let state = try await session.decode(try object(command["from"]?.string ?? "")).state
      guard let bytes = state?["data"]?.data, let date = state?["date"]?.date else { throw Fault("no values") }
      try await session.encode(
        ["data": .data(bytes), "date": .date(date)],
        for: try object(command["to"]?.string ?? "")
      )
      let numbers = bytes.map { JSONValue.integer(Int64($0)) }
      return ["bytes": .array(numbers), "milliseconds": .integer(date.milliseconds)]
    case "drop":
      for name in command["names"]?.array?.compactMap(\.string) ?? [] { things[name] = nil }
      names.removeAll { things[$0] == nil }
    default: throw Fault("no such command")
    }
    return [:]
  }

  private func object(_ name: String) throws -> RestorableObject {
    guard let object = things[name]?.object else { throw Fault("there is no object \(name)") }
    return object
  }

  private static func name(_ object: RestorableObject?) -> JSONValue {
    ["name": (object?.restoring as? ServedObject).map { .string($0.name) } ?? .null]
  }
}
