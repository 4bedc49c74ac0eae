// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Descriptions say what the pages of `Protocol/` say.
@Suite struct DescriptionTests {
  private static func described(_ name: String) throws -> [JSONValue] {
    let text = MethodTable.document.text.string
    let methods = try JSONCodec.parse(Array(text.utf8))["methods"]?.array ?? []
    return methods.filter { $0["name"]?.string == name }
  }

  @Test func everyMethodCallAndNotificationIsDescribedOnce() throws {
    let toBroker = MethodTable.methods.map { $0.method } + ["$/cancelRequest"]
    let toClient = ServedMethod.allCases.map(\.rawValue) + ["event"]
    for (names, direction) in [(toBroker, "toBroker"), (toClient, "toClient")] {
      for name in names {
        let methods = try Self.described(name)
        #expect(methods.count == 1, "\(name)")
        #expect(methods.first?["x-direction"]?.string == direction, "\(name)")
        #expect(methods.first?["summary"]?.string?.isEmpty == false, "\(name)")
      }
    }
    for name in ["event", "progress", "pathChanged", "$/cancelRequest"] {
      #expect(try Self.described(name).first?["x-notification"]?.bool == true, "\(name)")
    }
  }

  @Test func everyEventIsDescribed() throws {
    guard case .object(let events)? = try Self.described("event").first?["x-events"] else {
      Issue.record("event has no x-events")
      return
    }
    #expect(events.members.map(\.name) == EventName.allCases.map(\.rawValue))
    let page = try ProtocolPageTests.page("notifications.md")
    let rows = Self.tables(page)
    for name in EventName.allCases {
      let row = try #require(rows.joined().first { $0.count == 3 && $0[0] == "`\(name.rawValue)`" }, "\(name)")
      let members = EventNotification.facts(of: name).members.map(\.name)
      #expect(Set(Self.names(row[2])) == Set(members), "\(name)")
      let summary = EventNotification.facts(of: name).summary
      #expect(Self.withoutLinks(row[1]).hasPrefix(summary.dropLast()), "\(name)")
    }
  }

  @Test(arguments: MethodTable.methods.map { $0.method })
  func aDescriptionSaysWhatThePageSays(_ name: String) throws {
    let method = try #require(MethodTable.methods.first { $0.method == name })
    let page = try ProtocolPageTests.page("methods/\(name).md")
    let readme = try ProtocolPageTests.page("README.md")
    #expect(readme.contains("| [`\(name)`](methods/\(name).md) | \(method.summary) |"))

    let parameters = try Self.section("Parameters", of: page).first { $0[0].count == 5 } ?? []
    let required = parameters.filter { $0[3] == "required" }.flatMap { Self.names($0[1]) }
    #expect(method.members.filter(\.isRequired).map(\.name) == required)

    let errors = try Self.section("Errors", of: page).joined().flatMap { Self.names($0[0]) }
    #expect(method.errors.map(\.kind) == errors)

    let results = try Self.section("Result", of: page).first { $0[0].first == "name" } ?? []
    let listed = Set(results.dropFirst().flatMap { Self.names($0[0]) })
    #expect(Self.members(try Self.described(name).first?["result"]?["schema"]) == listed.union(Self.alsoListed(method)))
  }

  /// Members of results that their page does not list in a table of its own.
  private static func alsoListed(_ method: any RestorationMethod.Type) -> Set<String> {
    if method.method == ReportLimits.method { return Set(Limit.all.map(\.name)) }
    return method.mayBeDiscarded ? ["discarded"] : []
  }

  @Test func everyErrorIsDescribedAsItsPageDoes() throws {
    let rows = Self.tables(try ProtocolPageTests.page("errors.md")).joined().filter { $0.count >= 4 }
    for error in ErrorCode.all {
      let row = try #require(rows.first { $0[1] == "`\(error.kind)`" }, "\(error)")
      #expect(row[0] == "−\(-error.rawValue)", "\(error)")
      #expect(Self.withoutLinks(row[2]).hasPrefix(try #require(error.summary).dropLast()), "\(error)")
    }
    #expect(Set(ErrorCode.all.map(\.kind)).count == ErrorCode.all.count)
  }

  @Test func aReadDocumentIsTheOneThatWasWritten() throws {
    let text = MethodTable.document.text.string
    #expect(try OpenRPCDocument(wire: ProtocolPageTests.slice(text)).text.string == text)
    #expect(throws: Misfit.self) { try OpenRPCDocument(wire: ProtocolPageTests.slice("{}")) }
  }

  // MARK: Schemas

  @Test(arguments: [
    (Schema.string, #"{"type":"string"}"#),
    (.nullable(.string), #"{"type":["string","null"]}"#),
    (.integer(1...), #"{"type":"integer","minimum":1}"#),
    (.integer(0...7), #"{"type":"integer","minimum":0,"maximum":7}"#),
    (.true, #"{"const":true}"#),
    (.word(["a", "b"], isOpen: false), #"{"enum":["a","b"]}"#),
    (.nullable(.word(["a"], isOpen: false)), #"{"enum":["a",null]}"#),
    (.word(["a"], isOpen: true), #"{"type":"string","examples":["a"]}"#),
    (.array(.boolean, count: 1...Int.max), #"{"type":"array","items":{"type":"boolean"},"minItems":1}"#),
    (.map(.integer), #"{"type":"object","additionalProperties":{"type":"integer"}}"#),
    (.nullable(.shared("S", .any)), ##"{"anyOf":[{"$ref":"#/components/schemas/S"},{"type":"null"}]}"##),
    (.nullable(.either([.string, .boolean])), #"{"anyOf":[{"type":"string"},{"type":"boolean"},{"type":"null"}]}"#),
    (
      .object([.required("a", .string, "A."), .optional("b", .any)]),
      #"{"type":"object","properties":{"a":{"type":"string","description":"A."},"b":{}},"required":["a"]}"#
    ),
    (
      .tagged(by: "t", [("a", [.required("n", .integer)])]),
      #"{"oneOf":[{"type":"object","properties":{"t":{"const":"a"},"n":{"type":"integer"}},"required":["t","n"]},"#
        + #"{"type":"object","properties":{"t":{"type":"string","not":{"enum":["a"]}}},"required":["t"]}]}"#
    ),
  ])
  func aSchemaIsWrittenAsJSONSchema(_ schema: Schema, _ text: String) {
    #expect(schema.text.string == text)
  }

  // MARK: Pages

  /// Rows of each table, as cells.
  private static func tables(_ text: some StringProtocol) -> [[[String]]] {
    var tables: [[[String]]] = [[]]
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("|") {
        let cells = line.dropFirst().split(separator: "|", omittingEmptySubsequences: false).dropLast()
        tables[tables.count - 1].append(cells.map { $0.trimmingCharacters(in: .whitespaces) })
      } else if tables.last?.isEmpty == false {
        tables.append([])
      }
    }
    return tables.filter { !$0.isEmpty }
  }

  private static func section(_ heading: String, of page: String) throws -> [[[String]]] {
    let start = try #require(page.range(of: "\n## \(heading)\n"))
    let rest = page[start.upperBound...]
    return tables(rest[..<(rest.range(of: "\n## ")?.lowerBound ?? rest.endIndex)])
  }

  /// The names that stand in a cell between backticks.
  private static func names(_ cell: String) -> [String] {
    cell.split(separator: "`", omittingEmptySubsequences: false).enumerated().filter { $0.offset % 2 == 1 }
      .map { String($0.element) }
  }

  private static func withoutLinks(_ cell: String) -> String {
    cell.replacing(/\[([^\]]*)\]\([^)]*\)/) { $0.output.1 }
  }

  /// Names of an object's members, or of those of the objects that it may be.
  private static func members(_ schema: JSONValue?) -> Set<String> {
    guard let schema else { return [] }
    if let alternatives = schema["anyOf"]?.array { return Set(alternatives.flatMap { members($0) }) }
    if let name = schema["$ref"]?.string?.split(separator: "/").last {
      let text = MethodTable.document.text.string
      return members(try? JSONCodec.parse(Array(text.utf8))["components"]?["schemas"]?[String(name)])
    }
    guard case .object(let properties)? = schema["properties"] else { return [] }
    return Set(properties.members.map(\.name))
  }
}
