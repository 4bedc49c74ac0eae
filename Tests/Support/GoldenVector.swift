// SPDX-License-Identifier: Apache-2.0

/// One test vector of `Protocol/vectors`, and how it is played against a broker.
package struct GoldenVector: Sendable, CustomStringConvertible {
  package let name: String
  private let text: String

  package var description: String { name }

  /// All vectors of the repository.
  package static let all: [GoldenVector] = {
    let directory = "\(Products.repository)/Protocol/vectors"
    return Files.list(directory).filter { $0.hasSuffix(".json") && $0 != "schema.json" }.compactMap { file in
      (try? Files.text("\(directory)/\(file)")).map { GoldenVector(name: String(file.dropLast(5)), text: $0) }
    }
  }()

  /// The vector's description of itself.
  package func contents() throws -> (name: String, rules: [String], steps: Int) {
    let value = try VectorValue(parsing: text)
    let rules = value["rules"]?.array?.compactMap(\.string) ?? []
    return (value["name"]?.string ?? "", rules, value["steps"]?.array?.count ?? 0)
  }

  /// Plays the vector with an application of its own; throws with the step that failed.
  package func play(_ connect: () throws -> any VectorConnection) throws {
    let own = text.split(separator: "$APPLICATION", omittingEmptySubsequences: false).joined(
      separator: "vector.\(name)"
    )
    guard let steps = try VectorValue(parsing: own)["steps"]?.array else { throw TestFailure("\(name) has no steps") }
    var match = VectorMatch()
    var clients: [String: VectorClient] = [:]
    for (number, step) in steps.enumerated() {
      let key = step["client"]?.string ?? ""
      do {
        let client = try clients[key] ?? VectorClient(connect())
        clients[key] = client
        try client.perform(step, &match)
        if step["close"]?.isTrue == true { clients.removeValue(forKey: key)?.wire.close() }
      } catch {
        let note = step["note"]?.string.map { " (\($0))" } ?? ""
        throw TestFailure("\(name), step \(number + 1), client \(key)\(note): \(error)\n  step: \(step.shown)")
      }
    }
  }
}

/// A connection to a broker, by bytes and lines.
package protocol VectorConnection {
  func send(bytes: [UInt8]) throws
  /// Sends no more; what is owed still comes.
  func halfClose()
  func close()
  /// The next line; throws if none comes.
  func receive() throws -> String
  /// The lines up to the end.
  func receiveToEnd() throws -> [String]
}

extension VectorConnection {
  fileprivate func send(_ text: String) throws { try send(bytes: Array(text.utf8)) }
}

/// One connection of a vector, with its unread messages.
private final class VectorClient {
  let wire: any VectorConnection
  private var inbox: [(value: VectorValue, text: String)] = []

  init(_ wire: any VectorConnection) { self.wire = wire }

  func perform(_ step: VectorValue, _ match: inout VectorMatch) throws {
    if let message = step["send"] { try wire.send(try match.filled(message).text + "\n") }
    if let text = step["raw"]?.string { try wire.send(text) }
    if let digits = step["hex"]?.string { try wire.send(bytes: Self.bytes(digits)) }
    if step["endInput"]?.isTrue == true { wire.halfClose() }
    if let expected = step["expect"] {
      let (value, text) = try take(expected)
      do {
        try match.match(expected, value)
      } catch {
        throw TestFailure("\(error)\n  received: \(text.prefix(2_000))")
      }
      for part in step["contains"]?.array ?? [] where !Self.contains(text, part.string ?? "") {
        throw TestFailure("the answer does not contain \(part.text)\n  received: \(text.prefix(2_000))")
      }
    }
    if step["expectNothing"]?.isTrue == true {
      let fence = #"{"jsonrpc":"2.0","id":"fence","method":"ping"}"#
      try wire.send(fence + "\n")
      _ = try take(VectorValue(parsing: #"{"id":"fence"}"#))
      guard inbox.isEmpty else { throw TestFailure("expected nothing, received \(inbox.map(\.text))") }
    }
    if step["expectClose"]?.isTrue == true {
      let rest = inbox.map(\.text) + (try wire.receiveToEnd())
      guard rest.isEmpty else { throw TestFailure("expected the end, received \(rest)") }
    }
  }

  /// The first message that `expected` can be about: by method, by id, or the first array.
  private func take(_ expected: VectorValue) throws -> (VectorValue, String) {
    var seen = 0
    while true {
      while seen < inbox.count {
        if Self.concerns(inbox[seen].value, expected) { return inbox.remove(at: seen) }
        seen += 1
      }
      let line = try wire.receive()
      inbox.append((try VectorValue(parsing: line), line))
    }
  }

  private static func concerns(_ message: VectorValue, _ expected: VectorValue) -> Bool {
    if expected.array != nil || VectorMatch.directive(expected)?.name == "$unordered" { return message.array != nil }
    guard message.members != nil else { return false }
    if let method = expected["method"]?.string { return message["method"]?.string == method }
    guard let id = expected["id"], let found = message["id"], message["method"] == nil else { return false }
    return id.isSameScalar(as: found)
  }

  /// By bytes: a text's characters may combine with those around it.
  private static func contains(_ text: String, _ part: String) -> Bool {
    let (text, part) = (Array(text.utf8), Array(part.utf8))
    guard part.count <= text.count else { return false }
    return (0...(text.count - part.count)).contains { text[$0..<($0 + part.count)].elementsEqual(part) }
  }

  private static func bytes(_ digits: String) -> [UInt8] {
    let digits = digits.filter(\.isHexDigit).compactMap(\.hexDigitValue)
    return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] * 16 + digits[$0 + 1]) }
  }
}
