// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// What earlier versions of the package for Emacs have saved.
@Suite(.broker, .enabled(if: Editor.areInstalled, Comment(rawValue: Editor.requirement))) struct EmacsEarlierStateTests
{
  @Test func framesThatHaveTheirTabsInOneStateComeBackAndAreKeptTabByTab() throws {
    let home = try EmacsHome()
    func leaf(_ file: String, line: Int, _ more: JSONObject = [:]) -> JSONValue {
      let point = EditedFile.text.split(separator: "\n").prefix(line - 1).reduce(1) { $0 + $1.utf8.count + 1 }
      var leaf: JSONObject = [
        "file": .string("\(home.path)/\(file)"), "point": .integer(Int64(point)), "start": 1, "width": 100,
        "height": 14,
      ]
      for (name, value) in more.members { leaf[name] = value }
      return .object(leaf)
    }
    let split: JSONValue = [
      "split": "column",
      "parts": [
        leaf("one.txt", line: 3), leaf("two.txt", line: 44, ["selected": true, "variables": ["tab-width": 3]]),
      ],
    ]
    let states: [(String?, JSONValue)] = [
      (
        nil,
        [
          "frames": [
            [
              "windows": split, "columns": 100, "lines": 28, "selected": true,
              "before": [leaf("three.txt", line: 1)], "after": [leaf("four.txt", line: 5)],
            ], ["windows": leaf("four.txt", line: 9), "columns": 100, "lines": 28],
          ]
        ]
      ), ("Buffers", ["buffers": [["file": .string("\(home.path)/two.txt"), "point": 1, "modified": true]]]),
    ]
    let author = try broker.connect()
    for (name, state) in states {
      try author.call(
        "encodeRestorableState",
        [
          "application": .string(EmacsHome.instance), "state": state,
          "object": .array([.string("Editor")] + (name.map { [JSONValue.string($0)] } ?? [])),
        ]
      )
    }
    let process = try EditorProcess(.emacs, home: home.path)
    #expect(try process.restored().windows == ["one.txt:3", "two.txt:44*", "four.txt:9"])
    try process.ready()
    let tabs = ["three.txt", "one.txt two.txt", "four.txt", "four.txt"]
    #expect(try home.texts("(report-tabs)", in: process) == tabs)
    try home.stored(["one.txt:3", "two.txt:44*", "four.txt:9"], by: process)
    #expect(try home.storedText("Tab-1").contains("three.txt"))
    try process.process.kill()
    let next = try home.start()
    #expect(try home.texts("(report-tabs)", in: next) == tabs)
  }
}
