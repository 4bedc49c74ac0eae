// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import JSONRPC
internal import RestorationWire

/// The tables of members on a method's page, made from the texts of the code.
///
/// A row has the member's name, type and text from the code. The text behind it in the cell, and the default of an
/// optional parameter, belong to the page.
enum MemberTables {
  private static let parameterHead = ["| | name | type | default | meaning |", "|---|---|---|---|---|"]
  private static let resultHead = ["| name | type | meaning |", "|---|---|---|"]
  private static let noParameters = "None."

  /// The page with renewed tables.
  static func renewed<Method: RestorationMethod>(_ page: String, of method: Method.Type) -> String {
    let shapes = Method.Reply.schema.shapes
    var made: [String] = []
    var rest = page.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)[...]
    var section = ""
    while let line = rest.popFirst() {
      if line.hasPrefix("## ") { section = String(line.dropFirst(3)) }
      switch (section, line) {
      case ("Parameters", noParameters), ("Parameters", parameterHead[0]):
        made += parameters(of: method, after: takeRows(&rest))
      case ("Result", resultHead[0]):
        let rows = takeRows(&rest)
        let listed = Set(rows.flatMap { names($0[0]) })
        // Of two objects that share as many members with the table, the smaller one.
        func likeness(_ shape: [Schema.Member]) -> (Int, Int) {
          (listed.intersection(shape.map(\.name)).count, -shape.count)
        }
        let shape = shapes.max { likeness($0) < likeness($1) }
        made += resultHead + (shape ?? []).map { row([name($0), type($0, isGiven: false), meaning($0, in: rows)]) }
      default:
        made.append(line)
      }
    }
    return made.joined(separator: "\n")
  }

  /// Whether the page says nothing of members that a result has.
  static func hidesResult<Method: RestorationMethod>(_ page: String, of _: Method.Type) -> Bool {
    let lists = page.split(separator: "\n## ").contains { $0.hasPrefix("Result\n") && $0.contains(resultHead[0]) }
    return !lists && Method.Reply.schema.shapes.contains { !$0.isEmpty }
  }

  private static func parameters<Method: RestorationMethod>(
    of method: Method.Type,
    after rows: [[String]]
  ) -> [String] {
    guard !Method.members.isEmpty else { return [noParameters] }
    let old = rows.map { Array($0.dropFirst()) }
    return parameterHead
      + Method.members.enumerated().map { index, member in
        let cells = old.first { names($0[0]) == [member.name] }
        let absent = cells.map { $0[2] }.flatMap { $0 == "required" ? nil : $0 } ?? member.schema.usualDefault
        return row([
          String(index), name(member), type(member, isGiven: true), member.isRequired ? "required" : absent,
          meaning(member, in: old),
        ])
      }
  }

  // MARK: Cells

  private static func name(_ member: Schema.Member) -> String { "`\(member.name)`" }

  private static func type(_ member: Schema.Member, isGiven: Bool) -> String {
    member.schema.words(withRange: isGiven, withNull: member.isRequired)
  }

  /// The member's text, and the page's own text behind it. If the member's text has changed, it replaces as many
  /// sentences as it has.
  private static func meaning(_ member: Schema.Member, in rows: [[String]]) -> String {
    // Alternatives may have members of one name.
    let cells = rows.filter { names($0[0]).contains(member.name) }.compactMap(\.last)
    let same = cells.first { cell in
      let plain = cell.replacing(/\[([^\]]*)\]\([^)]*\)/) { $0.output.1 }
      return plain == member.summary || plain.hasPrefix("\(member.summary) ")
    }
    if let same { return same }
    guard let cell = cells.first else { return member.summary }
    let count = sentences(member.summary).count
    return ([member.summary] + sentences(cell).dropFirst(count)).joined(separator: " ")
  }

  private static func sentences(_ text: String) -> [String] {
    let parts = text.components(separatedBy: ". ")
    return parts.dropLast().map { "\($0)." } + parts.suffix(1)
  }

  // MARK: Tables

  /// Takes the rest of a table of which the first line has been taken.
  private static func takeRows(_ lines: inout ArraySlice<String>) -> [[String]] {
    let table = lines.prefix { $0.hasPrefix("|") }
    lines = lines.dropFirst(table.count)
    return table.dropFirst().map { line in
      line.dropFirst().split(separator: "|", omittingEmptySubsequences: false).dropLast()
        .map { $0.trimmingCharacters(in: .whitespaces) }
    }
  }

  private static func row(_ cells: [String]) -> String {
    "|\(cells.map { $0.isEmpty ? " |" : " \($0) |" }.joined())"
  }

  /// The names between backticks in a cell.
  private static func names(_ cell: String) -> [String] {
    cell.split(separator: "`", omittingEmptySubsequences: false).enumerated().filter { $0.offset % 2 == 1 }
      .map { String($0.element) }
  }
}

extension Schema {
  /// The members of each object in it, outermost first; alternatives for one place count as one object.
  fileprivate var shapes: [[Member]] {
    switch self {
    case .object(let members): [members] + members.flatMap(\.schema.shapes)
    case .array(let inner, _), .map(let inner), .nullable(let inner), .shared(_, let inner): inner.shapes
    case .either(let schemas):
      [schemas.flatMap { $0.shapes.first ?? [] }] + schemas.flatMap { $0.shapes.dropFirst() }
    case .any, .keywords, .boolean, .integer, .text, .word, .tagged: []
    }
  }

  /// The default that a table gives a new optional parameter.
  fileprivate var usualDefault: String { words(withRange: false, withNull: false) == "boolean" ? "false" : "none" }

  /// Its type as tables of the pages name it.
  fileprivate func words(withRange: Bool, withNull: Bool) -> String {
    switch self {
    case .any: "any value"
    case .keywords(let object) where object["const"] == false: "`false`"
    case .keywords(let object): object["const"]?.string.map { "`\"\($0)\"`" } ?? "`true`"
    case .boolean: "boolean"
    case .integer(let min, let max): withRange ? Self.integer(from: min, to: max) : "integer"
    case .text, .word: "string"
    case .array(let element, _):
      switch element.words(withRange: false, withNull: false) {
      case "any value": "array"
      case "handle or path": "array of handles and paths"
      case let element: "array of \(element)s"
      }
    case .map, .object, .tagged: "object"
    case .nullable(let inner):
      inner.words(withRange: withRange, withNull: withNull) + (withNull ? " or null" : "")
    case .either(let schemas):
      schemas.map { $0.words(withRange: withRange, withNull: withNull) }.joined(separator: " or ")
        .replacing("handle or array of strings", with: "handle or path")
    case .shared("Handle", _): "handle"
    case .shared("Path", _): "path"
    case .shared("Element", _): "element"
    case .shared(_, let inner): inner.words(withRange: withRange, withNull: withNull)
    }
  }

  private static func integer(from min: Int64?, to max: Int64?) -> String {
    guard let min else { return "integer" }
    guard let max, max < 1 << 53 - 1 else { return "integer ≥ \(min)" }
    return "integer \(min)–\(ProtocolPageTests.grouped(Int(max)))"
  }
}
