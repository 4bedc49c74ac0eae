// SPDX-License-Identifier: Apache-2.0

internal import Testing

/// The walls between the parts of an application.
@Suite struct PartTests {
  private static func core() throws -> [SourceFile] {
    try SourceFile.sources.get().filter { $0.path.hasPrefix("Sources/RestorationBroker/Core/") }
  }

  /// The variables that are parts, by their types.
  private static func parts() throws -> [String] {
    try storedVariables(of: "Application").compactMap { line in
      line.hasSuffix("()") ? line.split(separator: " ").last.map { String($0.dropLast(2)) } : nil
    }
  }

  /// Its identity and phase are those of its turn.
  @Test func anApplicationHoldsItsTurnAndAtMost16Parts() throws {
    let (variables, parts) = (try Self.storedVariables(of: "Application"), try Self.parts())
    #expect(variables.count == parts.count + 1 && variables.contains { $0.contains("var turn: Turn") })
    #expect((10...16).contains(parts.count))
  }

  @Test func whatAPartHoldsIsPrivate() throws {
    for part in try Self.parts() {
      for line in try Self.storedVariables(of: part) where !line.contains("private") {
        Issue.record("\(part) lets others change it: \(line)")
      }
    }
  }

  /// The restoration asks them while it is being changed, which nothing checks at run time.
  @Test func whatARestorationAsksDoesNotReadIt() throws {
    for file in try Self.core() {
      guard let start = file.code.firstIndex(of: "extension Application: RestorationFacts {") else { continue }
      let body = file.code[start...].prefix { $0 != "}" }
      #expect(body.count > 20 && !body.contains { $0.contains(/\brestoring\b/) })
      return
    }
    Issue.record("no file answers what a restoration asks")
  }

  @Test func noClassOrActorHoldsMoreThan20Variables() throws {
    for file in try SourceFile.sources.get() {
      for (start, line) in file.code.enumerated()
      where (line.has("class ") || line.has("actor ")) && line.contains(/^[a-z@() ]*\b(class|actor) [A-Z]/) {
        let variables = Self.storedVariables(file.code[start...])
        #expect(variables.count <= 20, "\(file): \(line)")
      }
    }
  }

  /// In all its files. What is longer may only become shorter.
  @Test func noTypeIsLongerThan1200Lines() throws {
    let longer = ["Application": 5_600, "BrokerCore": 1_440]
    let words = ["struct ", "class ", "actor ", "enum ", "extension "]
    var lengths: [String: Int] = [:]
    for file in try SourceFile.sources.get() {
      var type: String?
      for line in file.code {
        if words.contains(where: line.has),
          let found = line.firstMatch(of: /^[a-z@() ]*\b(?:struct|class|actor|enum|extension) ([A-Z]\w*)/)
        {
          // Others have a type of that name as well.
          type = (line.hasPrefix(" ") ? "\(file): " : "") + found.1
        }
        if let type { lengths[type, default: 0] += 1 }
        if line.hasPrefix("}") { type = nil }
      }
    }
    #expect(lengths.count > 300)
    for (type, length) in lengths { #expect(length <= longer[type] ?? 1_200, "\(type) has \(length) lines") }
  }

  /// The variables of the type that the file of its name declares.
  private static func storedVariables(of type: String) throws -> [String] {
    let file = try #require(try core().first { $0.name == "\(type).swift" }, "there is no \(type).swift")
    let words = ["struct \(type) {", "struct \(type): ", "class \(type) {", "class \(type): "]
    let start = try #require(file.code.firstIndex { line in words.contains { line.contains($0) } })
    return storedVariables(file.code[start...])
  }

  /// The text is laid out: members are indented by two, and a brace opens what is computed.
  private static func storedVariables(_ type: ArraySlice<String>) -> [String] {
    type.prefix { $0 != "}" }.filter { line in
      line.hasPrefix("  ") && !line.hasPrefix("   ") && !line.contains(" static ") && !line.contains("{")
        && line.split(separator: " ").contains("var")
    }
  }
}
