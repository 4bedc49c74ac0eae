// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// `Protocol/` and the code say the same.
@Suite struct ProtocolPageTests {
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Protocol")

  static func slice(_ text: String) throws -> JSONSlice {
    try JSONSlice.scan(Array(text.utf8), vocabulary: EncodedState.vocabulary, limits: FrameLimits())
  }

  static func page(_ name: String) throws -> String {
    try String(contentsOf: root.appendingPathComponent(name), encoding: .utf8)
  }

  @Test func everyMethodHasAPageAndEveryPageAMethod() throws {
    let pages = try FileManager.default.contentsOfDirectory(atPath: Self.root.appendingPathComponent("methods").path)
    #expect(Set(pages) == Set(MethodTable.methods.map { "\($0.method).md" }))
    let readme = try Self.page("README.md")
    for method in MethodTable.methods {
      #expect(readme.contains("| [`\(method.method)`](methods/\(method.method).md) |"))
    }
  }

  @Test(arguments: MethodTable.methods.map { $0.method })
  func tablesOfMembersAreThoseOfTheCode(_ name: String) throws {
    let method = try #require(MethodTable.methods.first { $0.method == name })
    let page = try Self.page("methods/\(name).md")
    #expect(page.hasPrefix("# `\(name)`\n"))
    // Limits are listed in a page of their own.
    #expect(method is ReportLimits.Type || !MemberTables.hidesResult(page, of: method), "add a table of the result")
    let renewed = MemberTables.renewed(page, of: method)
    if ProcessInfo.processInfo.environment["RESTORATIOND_WRITE_TABLES"] == "1" {
      try renewed.write(to: Self.root.appendingPathComponent("methods/\(name).md"), atomically: true, encoding: .utf8)
    } else {
      #expect(renewed == page, "renew the tables: RESTORATIOND_WRITE_TABLES=1 swift test --filter tablesOfMembers")
    }
  }

  @Test func aTableHasTheRowsOfTheCodeAndKeepsWhatThePageAddsToThem() {
    let page = """
      ## Parameters

      | | name | type | default | meaning |
      |---|---|---|---|---|
      | 0 | `gone` | string | none | Was there once. |
      | 1 | `object` | string | none | Has [other](words.md) now. And a remark. |
      | 2 | `depth` | integer | the deepest | How [deep](deep.md) to look. Another remark. |

      ## Result

      | name | type | meaning |
      |---|---|---|
      | `pending` | string | How many. For now. |
      """
    let renewed = """
      ## Parameters

      | | name | type | default | meaning |
      |---|---|---|---|---|
      | 0 | `object` | handle or path | required | The object. And a remark. |
      | 1 | `depth` | integer 0–1,000 | the deepest | How [deep](deep.md) to look. Another remark. |
      | 2 | `force` | boolean | false | Look again. |

      ## Result

      | name | type | meaning |
      |---|---|---|
      | `pending` | integer | Those that wait. For now. |
      | `path` | path or null | Where it is. |
      """
    #expect(MemberTables.renewed(page, of: Look.self) == renewed)
    #expect(MemberTables.renewed(renewed, of: Look.self) == renewed)
  }

  @Test func aPageWithoutParametersGetsATableWithTheFirst() {
    let none = "## Parameters\n\nNone.\n"
    #expect(MemberTables.renewed(none, of: ListApplications.self) == none)
    #expect(MemberTables.renewed(none, of: Look.self).contains("\n| 2 | `force` | boolean | false | Look again. |\n"))
  }

  @Test func everyErrorIsListedWithItsCode() throws {
    let page = try Self.page("errors.md")
    for code in ErrorCode.all {
      #expect(page.contains("| −\(-code.rawValue) | `\(code.kind)` |"))
    }
  }

  @Test func everyLimitIsListedWithItsDefaultAndRange() throws {
    let page = try Self.page("limits.md")
    for limit in Limit.all {
      let row = try #require(page.split(separator: "\n").first { $0.hasPrefix("| `\(limit.name)` |") })
      let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      let value = cells[1].split(separator: " ").first.map(String.init)
      #expect(value == Self.grouped(Limits()[keyPath: limit.keyPath]))
      #expect(cells[2] == limit.unit.rawValue)
      #expect(cells[3] == "\(Self.grouped(limit.range.lowerBound)) – \(Self.grouped(limit.range.upperBound))")
      #expect(cells[4] == limit.summary)
    }
  }

  @Test func everyNotificationAndCallIsListed() throws {
    let text = try Self.page("notifications.md") + Self.page("calls.md")
    for served in ServedMethod.allCases {
      #expect(text.contains("`\(served.rawValue)`"))
    }
  }

  @Test(arguments: MethodTable.methods.map { "methods/\($0.method).md" } + ["notifications.md"])
  func exchangesHaveTheFormOfTheirMethods(_ name: String) throws {
    var asked: [String: any RestorationMethod.Type] = [:]
    for line in try exchange(in: Self.page(name)) {
      let message = try Self.slice(line.text)
      guard let id = message["id"].map({ String(decoding: $0.text, as: UTF8.self) }) else { continue }
      if line.isToBroker {
        let name = message["method"]?.string()
        asked["\(line.client) \(id)"] = MethodTable.methods.first { $0.method == name }
      } else if let result = message["result"], result.kind != .string, let method = asked["\(line.client) \(id)"] {
        #expect(try isResult(result, of: method), "\(line.text)")
      } else if let error = message["error"] {
        let code = try #require(error["code"]?.integer())
        let kind = ErrorCode(rawValue: Int(code)).kind
        #expect(kind == String(code) || kind == error["data"]?["kind"]?.string())
      }
    }
  }

  private func isResult<Method: RestorationMethod>(_ slice: JSONSlice, of: Method.Type) throws -> Bool {
    Method.Reply(slice) != nil
  }

  private struct Line {
    let client: String
    let isToBroker: Bool
    let text: String
  }

  /// The lines of all exchanges of a page, with values in place of `<…>`.
  private func exchange(in page: String) throws -> [Line] {
    let limits = Limits().text.string
    let values = [
      "<handle>": "4294967297", "<sequence>": "7", "<pid>": "4711", "<bytes>": "4096", "<milliseconds>": "3",
      "<token>": "00112233445566778899aabbccddeeff",
      "<uuid>": "6f9619ff-8b86-4011-b42d-00c04fc964ff", "<time>": "2026-02-28T09:05:00.042Z", "<version>": "1.0",
      "<call>": "4294967298", "<round>": "1", "<system>": "12", "<limits>": limits, "<result>": "\"any\"",
    ]
    return page.split(separator: "\n").compactMap { line in
      guard let arrow = line.firstIndex(where: { $0 == "→" || $0 == "←" }),
        line.distance(from: line.startIndex, to: arrow) <= 2
      else { return nil }
      var text = line[line.index(after: arrow)...].trimmingCharacters(in: .whitespaces)
      guard text.hasPrefix("{") else { return nil }
      for (name, value) in values {
        text = text.replacingOccurrences(of: name, with: value)
      }
      return Line(client: String(line[..<arrow]), isToBroker: line[arrow] == "→", text: text)
    }
  }

  static func grouped(_ number: Int) -> String {
    var digits = Array(String(number))
    for index in stride(from: digits.count - 3, to: 0, by: -3) {
      digits.insert(",", at: index)
    }
    return String(digits)
  }
}

/// A method that the broker does not have.
private struct Look: RestorationMethod {
  static let method = "look"
  static let summary = "Looks."

  var object = ObjectReference.blank
  var depth: Int64?
  var force = false

  mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, "The object.")
    try members.optional("depth", &depth, .range(0...1_000), "How deep to look.")
    try members.flag("force", &force, "Look again.")
  }

  struct Reply: WireObject {
    var pending = 0
    var path: IdentifierPath?

    mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("pending", &pending, "Those that wait.")
      try members.nullable("path", &path, "Where it is.")
    }
  }
}
