// SPDX-License-Identifier: Apache-2.0

internal import Testing

/// A method or an effect that a switch forgets must not run another one's code.
@Suite struct DispatchTests {
  private static func broker() throws -> [SourceFile] {
    try SourceFile.sources.get().filter {
      $0.path.hasPrefix("Sources/RestorationBroker/") || $0.path.hasPrefix("Sources/restorationd/")
    }
  }

  /// Each method's action is in its row of the table; a switch over names could forget a method.
  @Test func noSwitchIsOverTheNamesOfMethods() throws {
    for file in try Self.broker() {
      for (start, subject) in Self.switches(of: file) where subject.hasSuffix("method") {
        Issue.record("\(file):\(start + 1) is over method names; use MethodTable")
      }
    }
  }

  /// Structs and enumerations of others, of which not every case can be listed.
  private static let subjectsOfOthers: Set<Substring> = ["error.code", "scalar.properties.generalCategory"]

  /// A case that a `default` takes in unseen compiles, and does what was meant for others.
  @Test func noSwitchOverAnEnumerationHasADefault() throws {
    let files = try SourceFile.sources.get()
    #expect(files.contains { Self.switches(of: $0).contains { $0.subject == "effect" } }, "there is no such switch")
    for file in files {
      for (start, subject) in Self.switches(of: file) where !Self.subjectsOfOthers.contains(subject) {
        // The text is laid out: a switch ends at the first brace that is indented like its beginning.
        let indent = String(file.code[start].prefix { $0 == " " })
        let cases = file.code[start...].prefix { $0 != indent + "}" }
        let isOverEnumeration = cases.contains { $0.hasPrefix(indent + "case .") }
        let isWhole = !isOverEnumeration || !cases.contains { $0.hasPrefix(indent + "default:") }
        #expect(isWhole, "\(file):\(start + 1) has a default; list the cases")
      }
    }
  }

  /// Each switch's subject, with the index of its first line.
  private static func switches(of file: SourceFile) -> [(start: Int, subject: Substring)] {
    file.code.enumerated().compactMap { index, line in
      guard line.has("switch "), line.hasSuffix(" {"), let range = line.firstRange(of: "switch ") else { return nil }
      return (index, line[range.upperBound...].dropLast(2))
    }
  }
}
