// SPDX-License-Identifier: Apache-2.0

/// One exchange as the pages of `Protocol/` show it, and how it is played against a broker.
package struct DocumentedExchange: Sendable, CustomStringConvertible {
  /// The page, and which of its exchanges.
  package let description: String
  private let lines: [String]

  /// All exchanges of all pages.
  package static let all: [DocumentedExchange] = {
    let directory = "\(Products.repository)/Protocol"
    return Files.tree(directory).filter { $0.hasSuffix(".md") }.flatMap { page -> [DocumentedExchange] in
      var exchanges: [[String]] = []
      var isInside = false
      for line in ((try? Files.text("\(directory)/\(page)")) ?? "").split(separator: "\n") {
        if line.hasPrefix("```") {
          isInside = line == "```exchange"
          if isInside { exchanges.append([]) }
        } else if isInside {
          exchanges[exchanges.count - 1].append(String(line))
        }
      }
      return exchanges.enumerated().map { DocumentedExchange(description: "\(page) \($0 + 1)", lines: $1) }
    }
  }()

  /// Plays the exchange against a broker without archives; throws with the line that is not true.
  package func play(socket: String) throws {
    var clients: [Substring: (wire: WireClient, handle: String, call: String)] = [:]
    for line in lines {
      guard let arrow = line.firstIndex(where: { $0 == "→" || $0 == "←" }) else {
        throw TestFailure("neither to nor from the broker: \(line)")
      }
      let name = line[..<arrow]
      let text = String(line[line.index(after: arrow)...])
      var client = try clients[name] ?? (WireClient(socket), "0", "0")
      if line[arrow] == "→" {
        let message = Self.replacing("<handle>", in: text, by: client.handle)
        try client.wire.send(Self.replacing("<call>", in: message, by: client.call) + "\n")
      } else {
        let answer = try client.wire.receive()
        do {
          var match = VectorMatch()
          try match.match(try Self.pattern(text), try VectorValue(parsing: answer), exact: true)
        } catch {
          throw TestFailure("\(self): \(error)\n  the page: \(text)\n  received: \(answer)")
        }
        let message = try VectorValue(parsing: answer)
        if case .number(let number)? = message["result"]?["object"] { client.handle = number }
        for request in [message, message["result"]] where request?["method"] != nil {
          if case .number(let number)? = request?["id"] { client.call = number }
        }
      }
      clients[name] = client
    }
  }

  /// Values that vary become directives; messages and hints are for people.
  private static func pattern(_ text: String) throws -> VectorValue {
    var text = text
    for word in ["token", "uuid", "time", "version", "system"] {
      text = replacing("\"<\(word)>\"", in: text, by: #"{"$match":"(?s).+"}"#)
    }
    let numbers = ["handle", "sequence", "pid", "bytes", "milliseconds", "call", "round"]
    for word in numbers + ["limits", "result", "coder"] { text = replacing("<\(word)>", in: text, by: #"{"$any":1}"#) }
    return relaxed(try VectorValue(parsing: text))
  }

  private static func relaxed(_ value: VectorValue) -> VectorValue {
    switch value {
    case .array(let elements): return .array(elements.map(relaxed))
    case .object(let members):
      let isError = members.contains { $0.name == "code" } && members.contains { $0.name == "data" }
      let isData = members.contains { $0.name == "hint" } && members.contains { $0.name == "kind" }
      let anything = VectorValue.object([(name: "$any", value: .number("1"))])
      return .object(
        members.map { member in
          let isForPeople = isError && member.name == "message" || isData && member.name == "hint"
          return (member.name, isForPeople ? anything : relaxed(member.value))
        }
      )
    default: return value
    }
  }

  private static func replacing(_ part: String, in text: String, by other: String) -> String {
    text.split(separator: part, omittingEmptySubsequences: false).joined(separator: other)
  }
}
