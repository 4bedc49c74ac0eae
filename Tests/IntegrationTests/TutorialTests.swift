// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// The programs of the articles and pages for users, as they stand there, against a real broker.
@Suite(.timeLimit(.minutes(10))) struct TutorialTests {
  private static let python = "Protocol/clients/python/README.md"
  private static let c = "Protocol/clients/c/README.md"

  private static func swift(_ name: String, of article: String) throws -> [String] {
    let page = try TutorialPage("\(TutorialProgram.articles)/\(article).md")
    return [try TutorialProgram.swift(page.file("\(name).swift", "swift"), name, in: broker.directory)]
  }

  private static func python(_ name: String) throws -> [String] {
    let text = try TutorialPage(python).file("\(name).py", "python")
    return ["python3", try broker.directory.write(text, to: "\(name).py")]
  }

  private static func c(_ name: String) throws -> [String] {
    [try TutorialProgram.c(TutorialPage(c).file("\(name).c", "c"), name, in: broker.directory)]
  }

  @Test("A counter in Swift counts its starts", .broker) func countsStarts() throws {
    let counter = try Self.swift("counter", of: "StartInFiveMinutes")
    for start in 1...3 {
      #expect(try ChildProcess.run(counter, environment: broker.variables).output == "start \(start)\n")
    }
  }

  @Test("A window and its editor come back together after SIGKILL, in whatever languages they are written", .broker)
  func severalProcessesComeBack() throws {
    let installed = try TutorialProgram.python(in: broker.directory)
    let windows = [try Self.swift("window", of: "SeveralProcesses"), try Self.python("window")]
    let editors = [try Self.swift("editor", of: "SeveralProcesses"), try Self.python("editor"), try Self.c("editor")]
    var saves = 0
    for window in windows {
      for editor in editors {
        let parent = try ReadersProgram(window, python: installed)
        let child = try ReadersProgram(editor, python: installed)
        try child.awaitLine(saves == 0 ? "ready" : "text: text \(saves)")
        try parent.awaitLine("saves: \(saves)")
        saves += 1
        try child.type("text \(saves)")
        try child.awaitLine("typed")
        try parent.type("")
        try parent.awaitLine("saved 2 objects")
        try parent.kill()
        try child.kill()
      }
    }
  }

  @Test("Tabs are made again by their restoration class", .broker) func tabsAreMadeAgain() throws {
    let tabs = try Self.swift("tabs", of: "SeveralProcesses")
    for count in 0...3 {
      let shown = (0..<count).map { "open: https://example.org/\($0)\n" }.joined()
      #expect(try ChildProcess.run(tabs, environment: broker.variables).output == shown)
    }
  }

  @Test("R28 A selected row is found again in other data, in whatever language", .broker) func rowsAreFound() throws {
    let installed = try TutorialProgram.python(in: broker.directory)
    let inboxes = [try Self.swift("inbox", of: "ListsAndSelections"), try Self.python("inbox"), try Self.c("inbox")]
    var selected = "ann"
    var rows = ["ann", "bob", "eve", "new"]
    for inbox in inboxes + inboxes {
      let list = try ReadersProgram(inbox + rows, python: installed)
      try list.awaitLine("selected: \(selected)")
      selected = selected == "bob" ? "eve" : "bob"
      try list.type(selected)
      try list.awaitLine("saved")
      try list.kill()
      rows.reverse()
    }
  }

  @Test("A state of the first version is read by the second, in whatever languages", .broker) func versionsMigrate()
    throws
  {
    let environment = broker.variables.merging(["PYTHONPATH": try TutorialProgram.python(in: broker.directory)]) { $1 }
    func output(_ program: [String]) throws -> String {
      let result = try ChildProcess.run(program, environment: environment)
      #expect(result.end == .exit(0), "\(result.errors)")
      return result.output
    }
    let first = [try Self.swift("first", of: "Versions"), try Self.python("first")]
    let second = [try Self.swift("second", of: "Versions"), try Self.python("second")]
    for old in first {
      #expect(try output(old) == "")
      for (count, new) in (second + second).enumerated() {
        #expect(try output(new) == "text: Hello\(String(repeating: "!", count: count))\n")
      }
    }
  }

  @Test("The page for shell scripts runs from its beginning to its end", .broker) func shellPageRuns() throws {
    // Each section in a shell of its own, as its reader has one: the deadline is for a section, not for the page.
    let sections = try TutorialPage("Protocol/clients/shell/README.md").sections.map { $0.blocks("sh").joined() }
    var output = ""
    for section in sections where !section.isEmpty {
      let script = "set -e; export PATH=\(Products.searchPath)\n\(section)[ -z \"$(jobs)\" ] || kill %1\nwait\n"
      let result = try ChildProcess.run(
        ["bash", "-mc", script],
        environment: broker.variables,
        directory: broker.directory.path
      )
      #expect(result.end == .exit(0), "\(result.errors)")
      output += result.output
    }
    for line in ["17", "photos", "2:bob", #"{"text":"Hello","version":2}"#] {
      #expect(output.split(separator: "\n").contains(Substring(line)), "\(output)")
    }
    #expect(output.contains(#""state":{"zoom":1}"#))
    let application = "org.example.Mail"
    #expect(try broker.states(of: application)[["Window", "Editor"]] == ["text": "from a script"])
    #expect(try broker.states(of: "org.example.Backup")[["Job"]] == ["folder": "photos", "done": 20])
  }

  @Test("A state is encoded and decoded without a broker", .scratch) func statesNeedNoBroker() throws {
    let text = try TutorialPage("\(TutorialProgram.articles)/Testing.md").file("states.swift", "swift")
    let program = try TutorialProgram.swift(text, "states", in: directory)
    #expect(try ChildProcess.run([program]).end == .exit(0))
  }

  @Test(
    "The proof kit proves the words in Swift",
    .broker,
    .enabled(if: PythonPackages.areUsable("pytest"), Comment(rawValue: PythonPackages.requirement))
  )
  func wordsAreProven() throws {
    let page = try TutorialPage("\(TutorialProgram.articles)/Testing.md")
    let words = try TutorialProgram.swift(page.file("words.swift", "swift"), "words", in: broker.directory)
    let test = try broker.directory.write(page.file("test_words.py", "python"), to: "test_words.py")
    let debug = broker.directory.file(".build/debug")
    for folder in [broker.directory.file(".build"), debug] { try Files.makeDirectory(folder) }
    try Files.rename(words, to: "\(debug)/words")
    let result = try ChildProcess.run(
      [PythonPackages.python, "-m", "pytest", "-p", "no:cacheprovider", "-p", "restorationd.testing", test],
      environment: [
        "PYTHONPATH": LibraryClient.module, "PYTHONDONTWRITEBYTECODE": "1", "RESTORATIOND_BINARY": Products.broker,
      ],
      directory: broker.directory.path,
      Deadline(.seconds(240))
    )
    #expect(result.end == .exit(0) && result.output.contains("1 passed"), "\(result.output)\(result.errors)")
  }

  @Test("DocC converts the articles without a warning", .scratch) func articlesAreConverted() throws {
    let graph = directory.file("graph")
    try Files.makeDirectory(graph)
    let extracted = try ChildProcess.run(
      ["swift", "symbolgraph-extract", "-module-name", "RestorationClient", "-minimum-access-level", "public"]
        + ["-target", "x86_64-unknown-linux-gnu", "-experimental-allowed-reexported-modules=RestorationWire"]
        + (try TutorialProgram.importFlags) + ["-output-dir", graph],
      Deadline(.seconds(120))
    )
    try #require(extracted.end == .exit(0), "\(extracted.errors)")
    let diagnostics = directory.file("diagnostics.json")
    let converted = try ChildProcess.run(
      ["docc", "convert", "\(Products.repository)/\(TutorialProgram.articles)", "--additional-symbol-graph-dir", graph]
        + ["--output-path", directory.file("archive"), "--diagnostics-file", diagnostics]
        + ["--fallback-bundle-identifier", "RestorationClient"],
      Deadline(.seconds(120))
    )
    try #require(converted.end == .exit(0), "\(converted.errors)")
    // Comments of the sources are theirs.
    let found = try JSONCodec.parse(Files.read(diagnostics))["diagnostics"]?.array ?? []
    let ours = found.filter { $0["source"]?.string?.contains(".docc/") == true }
    #expect(ours.isEmpty, "\(ours)")
    for article in Files.list("\(Products.repository)/\(TutorialProgram.articles)") where !article.hasPrefix("Restor") {
      let page = "data/documentation/restorationclient/\(article.dropLast(3).lowercased()).json"
      #expect(Files.exists(directory.file("archive/\(page)")), "\(article)")
    }
  }
}

extension BrokerFixture {
  /// The variable by which programs find this broker.
  fileprivate var variables: [String: String?] { ["RESTORATIOND_SOCKET": socket] }
}
