// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// An Emacs with more windows than a state has room for.
@Suite(
  .enabled(if: Editor.areInstalled, Comment(rawValue: Editor.requirement)),
  .timeLimit(.minutes(Environment.isLong ? 10 : 5))
)
struct EmacsManyWindowsTests {
  private static let tabs = Environment.isLong ? 300 : 15

  /// Bytes of a state: in the default form less than all windows need together.
  private static let limits: JSONObject = Environment.isLong ? [:] : ["stateBytesMax": 4_096]

  /// Lisp that visits the file with the number `index`, of 10 with long names: visiting takes most of the time.
  private static let visit = #"(find-file (format "~/%0100d-%04d.cpp" 0 (% index 10)))"#

  private static let openings = ["(tab-new)", "(select-frame-set-input-focus (make-frame))"]

  @Test(.broker(limits: limits), arguments: openings)
  func hundredsOfWindowsInTabsOrFramesComeBackWhole(opening: String) throws {
    let home = try EmacsHome()
    let first = try home.start()
    try first.run([
      """
      (let ((index 0) (inhibit-message t))
        (dotimes (tab \(Self.tabs))
          (when (> tab 0) \(opening))
          \(Self.visit)
          (when (< (% tab 3) 2)
            (select-window (split-window-right))
            (setq index (1+ index))
            \(Self.visit))
          (setq index (1+ index))))
      """.split(separator: "\n").joined(separator: " ")
    ])
    let before = try home.texts("(report-tabs)", in: first)
    #expect(before.count == Self.tabs)
    let windows = (Self.tabs * 5 + 2) / 3
    #expect(before.reduce(0) { $0 + $1.split(separator: " ").count } == windows)
    let reader = try broker.connect()
    // That each tab has a state is not enough: the first one had one before.
    try first.waits(until: "has all windows stored") {
      try (1...Self.tabs).reduce(0) { sum, tab in
        try sum + max(0, home.storedText("Tab-\(tab)").split(separator: ".cpp").count - 1)
      } == windows
    }
    #expect(try home.texts("(list (restoration-status))", in: first) == ["Kept as \(EmacsHome.instance)."])
    try first.process.kill()

    let second = try home.start()
    #expect(try home.texts("(report-tabs)", in: second) == before)
    // A tab that is closed takes only its own object along.
    try second.run(["(if (cdr (funcall tab-bar-tabs-function)) (tab-bar-close-tab 2) (delete-frame))"])
    try second.waits(until: "has one object less") {
      let objects = try reader.call("describeApplication", ["application": .string(EmacsHome.instance)])["objects"]
      return objects?.array?.count == Self.tabs + 1
    }
  }

  @Test(.broker) func filesOfOneNameComeBackEachInItsTab() throws {
    let home = try EmacsHome()
    for directory in ["alpha", "beta"] {
      try Files.makeDirectory("\(home.path)/\(directory)")
      try home.write("\(directory)/notes", EditedFile.text)
    }
    let first = try home.start()
    // The second one renames the buffer of the first, whose tab is hidden.
    try first.run(["(find-file \"~/alpha/notes\")", "(tab-new)", "(find-file \"~/beta/notes\")"])
    try first.waits(until: "has both stored") {
      try home.storedText("Tab-1").contains("alpha/notes") && home.storedText("Tab-2").contains("beta/notes")
    }
    try first.run(["(find-file-noselect \"~/one.txt\")"])
    try first.waits(until: "has looked at all") { try home.storedText("Buffers").contains("one.txt") }
    try first.process.kill()
    let second = try home.start()
    for (tab, directory) in [(1, "alpha"), (2, "beta")] {
      try second.run(["(tab-bar-select-tab \(tab))"])
      #expect(try home.texts("(list buffer-file-name)", in: second) == ["\(home.path)/\(directory)/notes"])
    }
  }

  @Test(.broker) func windowsForWhichThereIsNoRoomStaySavedUntilOneOfTheOthersIsClosed() throws {
    let home = try EmacsHome()
    // 30 lines have room for 14 windows.
    let parts = (0..<20).map { index -> JSONValue in
      ["file": .string("\(home.path)/\(index)"), "point": 1, "start": 1, "width": 100, "height": 2]
    }
    let author = try broker.connect()
    try author.encode(
      "Editor",
      state: ["frames": [["tabs": ["Tab-1"], "tab": "Tab-1", "columns": 100, "lines": 40, "selected": true]]],
      of: EmacsHome.instance
    )
    let windows: JSONValue = ["windows": ["split": "column", "parts": .array(parts)]]
    try author.encode("Editor", "Tab-1", state: windows, of: EmacsHome.instance)
    func count() -> Int? { author.storedWindows(EmacsHome.instance)?.count }
    for visited in ["one.txt", "two.txt"] {
      let process = try home.start()
      let shown = try process.report().windows.count
      #expect((2..<20).contains(shown))
      try process.run(["(find-file-noselect \"~/\(visited)\")"])
      try process.waits(until: "has looked at all") { try home.storedText("Buffers").contains(visited) }
      #expect(count() == 20)
      if visited == "two.txt" {
        try process.run(["(delete-window)"])
        try process.waits(until: "has only those that are shown") { count() == shown - 1 }
      }
      try process.process.kill()
    }
  }

  @Test(.broker(limits: ["stateBytesMax": 16_384])) func aTabThatIsTooLargeIsSaidAndCostsNoOtherOne() throws {
    let home = try EmacsHome()
    let first = try home.start()
    try first.type(Editor.emacs.open("one.txt", line: 5))
    try home.stored(["one.txt:5*"], by: first)
    let many = """
      (let ((window-min-width 4) (window-min-height 1) (inhibit-message t))
        (tab-new) (find-file (make-string 240 ?x)) (dotimes (_ 6) (split-window-right) (balance-windows))
        (dolist (window (window-list))
          (with-selected-window window (dotimes (_ 7) (split-window-below) (balance-windows)))))
      """
    try first.run([many.split(separator: "\n").joined(separator: " ")])
    try first.waits(until: "says so") { try home.messages(in: first).contains("is not kept as it is") }
    let status = try home.texts("(list (restoration-status))", in: first)
    #expect(status.first?.contains("Tab-2 is not: ") == true, "\(status)")
    try first.run(["(progn (tab-bar-select-tab 1) (goto-line 9))"])
    try home.stored(["one.txt:9*"], by: first)
    // Once there are fewer windows, the tab is kept like any other.
    try first.run(["(progn (tab-bar-select-tab 2) (delete-other-windows))"])
    try home.stored(["\(String(repeating: "x", count: 240)):1*"], by: first)
    try first.waits(until: "says that all is kept") {
      try home.texts("(list (restoration-status))", in: first) == ["Kept as \(EmacsHome.instance)."]
    }
  }

  @Test(.broker(limits: ["stateBytesMax": 16_384])) func filesForWhichThereIsNoRoomAreSaid() throws {
    let home = try EmacsHome()
    let first = try home.start()
    let visit = #"(dotimes (index 80) (find-file-noselect (format "~/%0240d" index)))"#
    try first.run(["(let ((inhibit-message t)) \(visit))"])
    try first.waits(until: "says so") { try home.messages(in: first).contains("there is no room for") }
    let status = try home.texts("(list (restoration-status))", in: first).first ?? ""
    let kept =
      try broker.connect().decode("Editor", "Buffers", of: EmacsHome.instance)["state"]?["buffers"]?.array ?? []
    #expect(kept.count > 20 && kept.count < 80)
    #expect(status.contains(" \(80 - kept.count) visited files are not: there is no room."), "\(status)")
  }
}
