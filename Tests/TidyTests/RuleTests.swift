// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// `Protocol/rules.md` says which tests hold each rule, and they do: they exist and name the rule themselves.
@Suite struct RuleTests {
  private struct Row {
    let rule: String
    /// `Suite.test`
    let tests: [String]
    let vectors: [String]
  }

  /// The rows of the table: rule, tests, vectors.
  private static func table() throws -> [Row] {
    try SourceFile("Protocol/rules.md").lines.compactMap { line in
      let cells = line.split(separator: "|", omittingEmptySubsequences: false)
      guard line.hasPrefix("| R"), cells.count == 5 else { return nil }
      return Row(rule: cells[1].filter { $0 != " " }, tests: quoted(cells[2]), vectors: quoted(cells[3]))
    }
  }

  /// The texts between backquotes.
  private static func quoted(_ cell: Substring) -> [String] {
    cell.split(separator: "`", omittingEmptySubsequences: false).enumerated()
      .filter { !$0.offset.isMultiple(of: 2) }.map { String($0.element) }
  }

  /// The rules of each vector.
  private static let vectors = Result {
    Dictionary(uniqueKeysWithValues: try GoldenVector.all.map { ($0.name, try $0.contents().rules) })
  }

  /// Every test, as `Suite.test`, with the rules it names: in the comment above it, in its title or in its name.
  private static let tests = Result { try findTests() }

  private static func findTests() throws -> [String: Set<String>] {
    var tests: [String: Set<String>] = [:]
    for file in try SourceFile.tests.get() {
      var suite = ""
      var heading: [String] = []
      for line in file.lines {
        // Few lines need the regular expressions, which take long.
        if let first = line.utf8.first, first != UInt8(ascii: " "), line.hasSuffix("{"),
          let match = line.firstMatch(of: /\b(?:struct|class|actor|enum|extension) (\w+)/)
        {
          suite = String(match.1)
        }
        let isMarked = heading.contains(where: isTest) || isTest(line)
        if isMarked, line.has("func "), let match = line.firstMatch(of: /^ +.*\bfunc (\w+)\(/) {
          tests["\(suite).\(match.1)"] = rules(in: (heading + [line]).joined(separator: "\n"))
        }
        let isDeclaration = line.has("func ") || line.has(" = ")
        if line.allSatisfy({ $0 == " " }) || line.hasSuffix("}") || line.hasSuffix("{") || isDeclaration {
          heading = []
        } else {
          heading.append(line)
        }
      }
    }
    return tests
  }

  private static func isTest(_ line: String) -> Bool { line.has("@Test") }

  private static func rules(in text: String) -> Set<String> {
    Set(text.matches(of: /[Rr](\d{1,2})(?![0-9a-z])/).map { "R\($0.1)" })
  }

  /// The numbers of the rules in `Protocol/README.md`, and how many words each has.
  private static func rules() throws -> [(number: String, words: Int)] {
    let lines = try SourceFile("Protocol/README.md").lines
    var rules: [(number: String, words: Int)] = []
    for line in lines.drop(while: { $0 != "## Rules" }).dropFirst().prefix(while: { !$0.hasPrefix("## ") }) {
      let words = line.split(separator: " ").count
      if let match = line.prefixMatch(of: /- \*\*(R\d+)\*\*/) {
        rules.append((String(match.1), words - 2))
      } else if line.hasPrefix("  "), !rules.isEmpty {
        rules[rules.count - 1].words += words
      }
    }
    return rules
  }

  /// A rule that needs more words is to be designed again. What only one method needs is on its page.
  @Test func rulesAreFewAndShort() throws {
    let rules = try Self.rules()
    #expect(!rules.isEmpty && rules.count <= 30, "\(rules.count) rules")
    for rule in rules { #expect(rule.words <= 90, "\(rule.number) has \(rule.words) words") }
    let words = rules.reduce(0) { $0 + $1.words }
    #expect(words <= 2_000, "\(words) words in all")
  }

  @Test func everyRuleHasATestThatNamesIt() throws {
    let table = try Self.table()
    let rules = try Self.rules().map(\.number)
    #expect(table.map(\.rule) == rules)
    let tests = try Self.tests.get()
    #expect(tests.count > 500, "\(tests.count) tests were found")
    let vectors = try Self.vectors.get()
    for row in table {
      #expect(!row.tests.isEmpty || !row.vectors.isEmpty, "\(row.rule) has no test")
      for test in row.tests {
        let known = tests.filter { $0.value.contains(row.rule) }.keys.sorted()
        #expect(tests[test]?.contains(row.rule) == true, "\(test) does not name \(row.rule); these do: \(known)")
      }
      for vector in row.vectors {
        #expect(vectors[vector]?.contains(row.rule) == true, "the vector \(vector) does not name \(row.rule)")
      }
    }
  }

  /// `Protocol/guarantees.md` names tests, and suites.
  @Test func everyTestThatHoldsAGuaranteeIsThere() throws {
    let tests = Set(try Self.tests.get().keys)
    let suites = Set(tests.map { String($0.prefix { $0 != "." }) })
    let page = try SourceFile("Protocol/guarantees.md").text
    let names = page.matches(of: /`(\w+Tests(?:\.\w+)?)`/).map { String($0.1) }
    #expect(names.count > 80)
    for name in names { #expect(tests.contains(name) || suites.contains(name), "\(name)") }
  }

  /// Vectors show a rule to authors of other brokers: the table lists all of them.
  @Test func everyVectorOfARuleIsInTheTable() throws {
    let vectors = try Self.vectors.get()
    let rules = Set(try Self.rules().map(\.number))
    for (name, cited) in vectors { #expect(rules.isSuperset(of: cited), "\(name)") }
    for row in try Self.table() {
      #expect(Set(row.vectors) == Set(vectors.filter { $0.value.contains(row.rule) }.keys), "\(row.rule)")
    }
  }
}
