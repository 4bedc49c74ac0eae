// SPDX-License-Identifier: Apache-2.0

internal import Testing

/// What is not listed is not done: a method or an effect that a switch forgets must not become another one's deed.
@Suite struct DispatchTests {
  private static func broker() throws -> [SourceFile] {
    try SourceFile.sources.get().filter { $0.path.hasPrefix("Sources/RestorationBroker/") }
  }

  /// Refuses, does nothing, or hands on to the switch that lists the rest.
  private static func isHarmless(_ arm: [String]) -> Bool {
    guard arm.count == 1, let line = arm.first else { return false }
    return ["break", "true", "false", "nil"].contains(line) || line.hasPrefix("throw ")
      || line.hasPrefix("try dispatch")
  }

  @Test func noMethodIsPerformedByDefault() throws {
    var count = 0
    for file in try Self.broker() {
      for arm in Self.defaults(of: file, whereSubjectIs: { $0.hasSuffix("method") }) {
        count += 1
        #expect(Self.isHarmless(arm.code), "\(file):\(arm.line) does something for every method it does not list")
      }
    }
    #expect(count > 4, "the switches over methods were not found")
  }

  @Test func everyEffectIsListed() throws {
    var count = 0
    for file in try Self.broker() {
      count += Self.switches(of: file).count { $0.subject == "effect" }
      for arm in Self.defaults(of: file, whereSubjectIs: { $0 == "effect" }) {
        Issue.record("\(file):\(arm.line) drops every effect that it does not list")
      }
    }
    #expect(count > 0, "the switch over effects was not found")
  }

  /// Each switch's subject, with the index of its first line.
  private static func switches(of file: SourceFile) -> [(start: Int, subject: String)] {
    file.code.enumerated().compactMap { index, line in
      guard let range = line.firstRange(of: "switch "), line.hasSuffix("{") else { return nil }
      return (index, line[range.upperBound...].dropLast().trimming())
    }
  }

  /// The code behind `default:` in such switches. The text is laid out: a switch ends at the first brace that is
  /// indented like its beginning, and its cases are indented likewise.
  private static func defaults(
    of file: SourceFile,
    whereSubjectIs isChosen: (String) -> Bool
  ) -> [(line: Int, code: [String])] {
    var arms: [(Int, [String])] = []
    for (start, subject) in switches(of: file) where isChosen(subject) {
      let indent = String(file.code[start].prefix { $0 == " " })
      guard let end = file.code[start...].firstIndex(of: indent + "}"),
        let first = file.code[start..<end].firstIndex(where: { $0.hasPrefix(indent + "default:") })
      else { continue }
      let code = [String(file.code[first].dropFirst(indent.count + "default:".count))] + file.code[(first + 1)..<end]
      arms.append((first + 1, code.map { $0[...].trimming() }.filter { !$0.isEmpty }))
    }
    return arms
  }
}

extension Substring {
  fileprivate func trimming() -> String {
    var text = drop { $0 == " " }
    while text.last == " " { text.removeLast() }
    return String(text)
  }
}
