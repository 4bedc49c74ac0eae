// SPDX-License-Identifier: Apache-2.0

internal import RestorationBroker
internal import Testing

/// Which applications a unit's file names (R22).
@Suite struct UnitFileTests {
  private func applications(_ texts: String..., of unit: String = "editor.service") throws -> [String] {
    UnitFile.applications(texts, of: try #require(UnitName(unit)))
  }

  private let header = "[X-Restoration]\nApplication="

  @Test func r22AFileNamesItsApplicationsOneALine() throws {
    let text = "[Service]\nExecStart=/bin/true\n[X-Restoration]\nApplication=a.b\n Application = c@2 \nOther=x\n"
    #expect(try applications(text) == ["a.b", "c@2"])
    #expect(UnitFile.permits([text], of: try #require(UnitName("editor.service")), for: "c@2"))
    #expect(!UnitFile.permits([text], of: try #require(UnitName("editor.service")), for: "c"))
  }

  @Test func whatStandsElsewhereNamesNothing() throws {
    #expect(try applications("Application=a\n[Unit]\nApplication=b\n[x-restoration]\nApplication=c\n") == [])
    #expect(try applications("[X-Restoration] \napplication=a\nApplications=b\nApplication\n") == [])
    #expect(try applications("[X-Restoration\nApplication=a\n") == [])
    #expect(try applications("[X-Restoration]\n[Install]\nApplication=a\n[X-Restoration]\nApplication=b") == ["b"])
  }

  @Test func commentsAndContinuedLinesAreReadAsSystemdReadsThem() throws {
    #expect(try applications("[X-Restoration]\n#Application=a\n ;Application=b\nApplication=c") == ["c"])
    #expect(try applications("[X-Restoration]\nOther=x\\\nApplication=a\n") == [])
    #expect(try applications("[X-Restoration]\nApplication=\\\n# between\na.b\n") == ["a.b"])
    #expect(try applications("[X-Restoration]\nOther=x\\\\\nApplication=a\n") == ["a"])
    #expect(try applications("\u{FEFF}[X-Restoration]\r\nApplication=a\r\n") == ["a"])
    #expect(try applications("[X-Restoration]\nApplication=a\\") == ["a"])
  }

  @Test func linesEndWhereSystemdEndsThem() throws {
    #expect(try applications("[X-Restoration]\rApplication=a\rApplication=b") == ["a", "b"])
    #expect(try applications("[X-Restoration]\n#x\rApplication=a\n[Unit]\r\nApplication=b\n") == ["a"])
    #expect(try applications("[X-Restoration]\nOther=x\rApplication=\rApplication=a\r\r\n[Unit]") == ["a"])
    // A pair ends one line, so that it can be continued.
    #expect(try applications("[X-Restoration]\r\nApplication=\\\r\na\r\nOther=\\\n\rApplication=b\n\r") == ["a"])
    #expect(try applications("[X-Restoration]\r\rApplication=a\\\r\rb\r") == ["a"])
  }

  @Test func aDropInAddsAndAnEmptyValueTakesBack() throws {
    #expect(try applications(header + "a", header + "b") == ["a", "b"])
    #expect(try applications(header + "a", header + "\nApplication=b") == ["b"])
    #expect(try applications("[X-Restoration]", "Application=a") == [])
  }

  @Test(arguments: [
    ("note@a.b.service", "%i", "a.b"), ("note@a.b.service", "%p", "note"), ("note@a.b.service", "%N", "note@a.b"),
    ("note@a.b.service", "%n", "note@a.b.service"), ("note.service", "x%%%p", "x%note"),
    ("note@a\\x2db.service", "%I", "a-b"), ("note@a-b.service", "%i", "a-b"), ("note@a-b.service", "%I", "a/b"),
    ("org.a.service", "%N", "org.a"),
  ])
  func specifiersAreFollowed(unit: String, value: String, application: String) throws {
    #expect(try applications(header + value, of: unit) == [application])
  }

  @Test(arguments: ["%u", "%", "a%", "%h/x", "%é", "%I"])
  func aSpecifierThatCannotBeFollowedNamesNothing(value: String) throws {
    #expect(try applications(header + value, of: "note@\\xzz.service") == [])
  }

  @Test func whatIsNoFileNamesNothing() throws {
    #expect(try applications("[X-Restoration]\nApplication=a\n\0") == [])
    #expect(try applications(header + "a", "\0") == [])
    #expect(try applications(header + "a" + String(repeating: "#\n", count: 1 << 20)) == [])
    #expect(try applications("[X-Restoration]\n" + String(repeating: "Application=a\n", count: 300)) == [])
    #expect(try applications("", "\n\n=", "[]", "\\") == [])
  }

  @Test(arguments: ["a.service", "a@b.service", "a@b@c.service", "a-b:c_d\\x2d.target", "A9.service"])
  func aServiceOrTargetHasAName(text: String) {
    #expect(UnitName(text)?.description == text)
  }

  @Test(arguments: [
    "", ".service", "a", "a@.service", "@a.service", "a.socket", "a.scope", "/a.service", "../a.service", "a b.service",
    "a.service\n", "a.service\0", "é.service", "a;b.service", "$(a).service", "-- a.service ", "a.service/",
    String(repeating: "a", count: 250) + ".service",
  ])
  func anythingElseIsNoNameOfAUnitThatIsStarted(text: String) {
    #expect(UnitName(text) == nil)
  }

  /// For any bytes: no trap, and no name that is not in them.
  @Test func noTextTrapsTheReader() throws {
    var generator = SystemRandomNumberGenerator()
    let pieces = [
      "[X-Restoration]", "Application=", "%i", "%", "\\", "\n", "\r", " ", "#", ";", "[", "]", "=", "a", "\u{0}",
    ]
    let unit = try #require(UnitName("a@\\x2d.service"))
    for _ in 0..<2_000 {
      let count = Int.random(in: 0...24, using: &generator)
      let text = (0..<count).map { _ in pieces.randomElement(using: &generator) ?? "" }.joined()
      for name in UnitFile.applications([text], of: unit) {
        #expect(text.contains("Application=") && text.contains("[X-Restoration]") && !name.contains("\n"))
      }
    }
  }
}
