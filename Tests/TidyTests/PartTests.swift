// SPDX-License-Identifier: Apache-2.0

internal import Testing

/// The walls between the parts of an application.
@Suite struct PartTests {
  /// What an application still holds by itself, beside and including its parts. It may only fall: lower it with the
  /// number, never raise it.
  private static let applicationVariables = 17

  private static func core() throws -> [SourceFile] {
    try SourceFile.sources.get().filter { $0.path.hasPrefix("Sources/RestorationBroker/Core/") }
  }

  @Test func anApplicationHoldsLessAndLessByItself() throws {
    let count = try Self.storedVariables(of: "Application").count
    #expect(count == Self.applicationVariables, "lower the number, or make what was added a part's own")
  }

  @Test func whatAPartHoldsIsPrivate() throws {
    let parts = try Self.storedVariables(of: "Application").compactMap { line in
      line.hasSuffix("()") ? line.split(separator: " ").last.map { String($0.dropLast(2)) } : nil
    }
    #expect(parts.count >= 10, "the parts of an application are not found")
    for part in parts {
      for line in try Self.storedVariables(of: part) where !line.contains("private") {
        Issue.record("\(part) lets others change it: \(line)")
      }
    }
  }

  /// The variables of the type that the file of its name declares.
  private static func storedVariables(of type: String) throws -> [String] {
    let file = try #require(try core().first { $0.name == "\(type).swift" }, "there is no \(type).swift")
    let words = ["struct \(type) {", "struct \(type): ", "class \(type) {", "class \(type): "]
    let start = try #require(file.code.firstIndex { line in words.contains { line.contains($0) } })
    // The text is laid out: members are indented by two, and a brace opens what is computed.
    return file.code[start...].prefix { $0 != "}" }.filter { line in
      line.hasPrefix("  ") && !line.hasPrefix("   ") && !line.contains(" static ") && !line.contains("{")
        && line.split(separator: " ").contains("var")
    }
  }
}
