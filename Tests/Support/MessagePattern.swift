// SPDX-License-Identifier: Apache-2.0

/// The expected line of the broker: its exact bytes, or JSON with at least the given members.
package enum MessagePattern: Sendable, ExpressibleByStringLiteral {
  case exactly(String)
  /// JSON text, with the directives of `Protocol/vectors`; members that are not mentioned do not count.
  case like(String)

  /// A literal is `like`.
  package init(stringLiteral text: String) { self = .like(text) }

  /// An error answer.
  package static func error(_ id: String, _ code: Int, _ kind: String, _ more: String = "") -> MessagePattern {
    let data = #"{"kind":"\#(kind)","hint":{"$any":1}\#(more.isEmpty ? "" : ",\(more)")}"#
    return .like(#"{"jsonrpc":"2.0","id":\#(id),"error":{"code":\#(code),"data":\#(data)}}"#)
  }

  /// An answer with a result that has at least these members.
  package static func result(_ id: String, _ result: String = "{}") -> MessagePattern {
    .like(#"{"jsonrpc":"2.0","id":\#(id),"result":\#(result)}"#)
  }

  /// Throws with the first difference.
  package func check(_ line: String) throws {
    switch self {
    case .exactly(let text):
      guard line.utf8.elementsEqual(text.utf8) else { throw TestFailure("received \(line)\n  expected \(text)") }
    case .like(let text):
      var match = VectorMatch()
      try match.match(try VectorValue(parsing: text), try VectorValue(parsing: line))
    }
  }

  /// Finds a line for each pattern, in any order; throws when one is missing or left.
  package static func check(_ patterns: [MessagePattern], against lines: [String]) throws {
    var left = lines
    for pattern in patterns {
      guard let index = left.firstIndex(where: { (try? pattern.check($0)) != nil }) else {
        throw TestFailure("nothing like \(pattern)\n  received: \(lines.map { String($0.prefix(400)) })")
      }
      left.remove(at: index)
    }
    guard left.isEmpty else { throw TestFailure("not expected: \(left.map { String($0.prefix(400)) })") }
  }
}
