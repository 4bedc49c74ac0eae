// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// How files are written. Exceptions are listed here, with the reason.
@Suite struct StyleTests {
  private static func sources() throws -> [SourceFile] { try SourceFile.sources.get() }
  private static func tests() throws -> [SourceFile] { try SourceFile.tests.get() }

  @Test func filesAreShort() throws {
    for file in try Self.sources() { #expect(file.lines.count <= 500, "\(file) has \(file.lines.count) lines") }
    for file in try Self.tests() { #expect(file.lines.count <= 800, "\(file) has \(file.lines.count) lines") }
    let readme = try SourceFile("README.md")
    #expect(readme.lines.count <= 120, "README.md has \(readme.lines.count) lines")
  }

  @Test func linesAreShort() throws {
    for file in try Self.sources() {
      for (index, line) in file.lines.enumerated() where line.count > 120 {
        Issue.record("\(file):\(index + 1) has \(line.count) columns")
      }
    }
  }

  @Test func functionsAreShort() throws {
    for file in try Self.sources() + Self.tests() {
      for (line, length) in Self.functions(of: file) where length > 70 {
        let body = file.code[line...].prefix(length - 2)
        #expect(Self.onlyDispatches(body), "\(file):\(line) has a function of \(length) lines")
      }
    }
  }

  /// Whether all there is to a function is a switch with at most two lines for each case: that is read as a table, and
  /// cut in two each half would need a `default`, which drops new cases.
  private static func onlyDispatches(_ body: ArraySlice<String>) -> Bool {
    guard let first = body.first, let last = body.last else { return false }
    let indent = String(first.prefix { $0 == " " })
    guard first.hasPrefix(indent + "switch "), last == indent + "}" else { return false }
    // The first brace that is indented like its beginning ends the switch.
    guard body.dropLast().allSatisfy({ $0 != indent + "}" }) else { return false }
    let cases = body.indices.filter { body[$0].hasPrefix(indent + "case ") } + [body.endIndex - 1]
    return zip(cases, cases.dropFirst()).allSatisfy { $1 - $0 <= 2 }
  }

  /// First line and length of each function. The text is laid out: a function ends at the first closing brace that is
  /// indented like its beginning.
  private static func functions(of file: SourceFile) -> [(line: Int, length: Int)] {
    let lines = file.lines
    var functions: [(Int, Int)] = []
    let keywords = ["func", "init", "subscript"]
    for (index, line) in lines.enumerated() where keywords.contains(where: line.has) {
      let words = line.split(whereSeparator: { " (<".contains($0) })
      guard words.contains(where: { $0 == "func" || $0 == "init" || $0 == "deinit" || $0 == "subscript" }),
        !line.drop(while: { $0 == " " }).hasPrefix("//")
      else { continue }
      let indent = line.prefix { $0 == " " }
      guard let body = lines[index...].firstIndex(where: { $0.hasSuffix("{") }),
        !lines[index..<body].dropFirst().contains(where: {
          $0.prefix { $0 == " " }.count <= indent.count && !$0.hasPrefix(indent + ")")
        }),
        let end = lines[body...].dropFirst().firstIndex(where: { $0 == indent + "}" })
      else { continue }
      functions.append((index + 1, end - index + 1))
    }
    return functions
  }

  @Test func everyFileNamesItsLicense() throws {
    for file in try Self.sources() + Self.tests() {
      #expect(file.lines.first == "// SPDX-License-Identifier: Apache-2.0", "\(file)")
    }
    for file in try SourceFile.all("Sources", ".h") + SourceFile.all("Tests", ".pl", ".py", ".sh")
      + SourceFile.all("systemd", ".pl", ".py", ".sh") + SourceFile.all("Protocol", ".py") + [
        SourceFile("Package.swift")
      ]
    {
      #expect(file.lines.prefix(3).contains { $0.contains("SPDX-License-Identifier: Apache-2.0") }, "\(file)")
    }
  }

  /// A word that needs a reason, and the files that have one.
  private static let allowed: [(word: String, file: String, reason: String)] = [
    (
      "nonisolated(unsafe)", "ArchiveThreads.swift",
      "a semaphore has to stay at one address; only its own calls touch it"
    ),
    ("@unchecked Sendable", "LongTurn.swift", "its task runs within events of the core, on the loop's thread"),
    ("@unchecked Sendable", "Traits.swift", "what a test is given is its own; it uses it from one thread at a time"),
    ("@unchecked Sendable", "SimulatedDisk.swift", "a simulation has one thread"),
    ("@unchecked Sendable", "HistoryChecker.swift", "a simulation has one thread"),
    ("@unchecked Sendable", "SimulatedLibrary.swift", "a simulation has one thread"),
    ("@unchecked Sendable", "SimulatedNetwork.swift", "a simulation has one thread"),
    ("@unchecked Sendable", "SimulatedRoute.swift", "a simulation has one thread"),
    ("nonisolated(unsafe)", "SimulatedDisk.swift", "counts disks; a simulation has one thread"),
    (
      "nonisolated(unsafe)", "SimulatedDisk+SQLite.swift",
      "a table of functions for SQLite has to stay at one address; it never changes"
    ),
    ("unsafeBitCast", "SQLiteConnection.swift", "SQLite's mark for memory that it is to copy is the address -1"),
    ("unsafeBitCast", "FaultingReads.swift", "SQLite takes each system call as a function without parameters"),
  ]

  private static let guarded = [
    "try!", "as!", "@unchecked Sendable", "nonisolated(unsafe)", "fatalError", "unsafeBitCast",
  ]

  @Test func escapesFromTheCompilerAreListedWithTheirReason() throws {
    var used: Set<String> = []
    for file in try Self.sources() + Self.tests() {
      for (index, line) in file.code.enumerated() {
        for word in Self.guarded where Self.contains(line, word) {
          if let entry = Self.allowed.first(where: { $0.word == word && $0.file == file.name }) {
            used.insert(entry.file)
          } else {
            Issue.record("\(file):\(index + 1) has \(word)")
          }
        }
      }
    }
    #expect(used == Set(Self.allowed.map(\.file)), "entries that are not needed any more are to go")
  }

  private static func contains(_ line: String, _ word: String) -> Bool {
    guard line.has(word), let range = line.firstRange(of: word) else { return false }
    guard range.lowerBound > line.startIndex else { return true }
    let before = line[line.index(before: range.lowerBound)]
    return !(before.isLetter || before.isNumber || before == "_")
  }

  /// Tests wait for events, never for time.
  @Test func testsDoNotSleep() throws {
    let words = ["sleep(", "asyncAfter", "setitimer("]
    for file in try Self.tests() {
      for (index, line) in file.code.enumerated() where words.contains(where: line.has) {
        Issue.record("\(file):\(index + 1) waits for time: \(line)")
      }
      // The moment of a kill is random, and nothing can only be watched for a while.
      let mayLetTimePass = [
        "KillTests.swift", "ResourceTests.swift", "RoundKillTests.swift", "ServiceStopTests.swift",
        "ServiceTests.swift", "SmallestProgramTests.swift", "SoakTests.swift", "Wait.swift",
      ].contains(file.name)
      #expect(mayLetTimePass || !file.code.contains { $0.has("Wait.moment") }, "\(file)")
    }
    for file in try SourceFile.all("Tests", ".pl", ".py", ".sh") + SourceFile.all("systemd", ".pl", ".py", ".sh") {
      #expect(
        !file.lines.contains {
          $0.has("time.sleep") || $0.has("sleep") && $0.split(separator: " ").first == "sleep"
        },
        "\(file)"
      )
    }
  }

  /// A trap of Swift 6.3, which debug builds do not have: see `Sources/ARCHITECTURE.md`.
  @Test func functionsOfTheBrokerThatRunWhereTheirCallerRunsReturnTheirErrors() throws {
    for file in try Self.sources() where file.path.contains("/RestorationBroker/") {
      for (index, line) in file.code.enumerated() where line.has("nonisolated(nonsending)") {
        let end = file.code[index...].firstIndex { $0.contains("{") || $0.contains("}") || $0.isEmpty } ?? index
        guard file.code[end].contains("{") else { continue }
        #expect(!file.code[index...end].contains { $0.contains(" throws") }, "\(file):\(index + 1)")
      }
    }
  }

  @Test func nothingIsLeftForLater() throws {
    let marks = ["TO" + "DO", "FIX" + "ME", "XX" + "X:"]
    for file in try Self.sources() + Self.tests() + SourceFile.all("Protocol", ".md", ".py") {
      for (index, line) in file.lines.enumerated() where marks.contains(where: line.has) {
        Issue.record("\(file):\(index + 1): \(line)")
      }
    }
  }

  @Test func nothingSpeaksOfAPlaceOutsideOfTheProject() throws {
    let places = ["/wo" + "rk/", "DESI" + "GN", "/ho" + "me/"]
    let files =
      try Self.sources() + Self.tests() + SourceFile.all("Protocol", ".md", ".py", ".json")
      + SourceFile.all("systemd", ".pl", ".py", ".sh") + [SourceFile("README.md"), SourceFile("Package.swift")]
    for file in files {
      for (index, line) in file.lines.enumerated() where places.contains(where: line.has) {
        Issue.record("\(file):\(index + 1): \(line)")
      }
    }
  }
}
