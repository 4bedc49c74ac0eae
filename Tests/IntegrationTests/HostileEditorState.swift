// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport

/// A saved state of an editor that has a proof written if anything of it is run.
struct HostileEditorState {
  let editor: JSONValue
  let buffers: JSONValue
  /// The states of tab pages, by their objects' identifiers.
  let pages: [String: JSONValue]
  /// The editor's report after it has restored this.
  let windows: [String]
  let files: [JSONValue]
  let session: JSONValue

  /// - Parameter home: the directory of the files, where a file `proof` is the proof.
  init(_ editor: Editor, in home: String) throws {
    self = editor == .emacs ? try Self.ofEmacs(home) : try Self.ofVim(editor, home)
  }

  private init(
    editor: JSONValue,
    buffers: JSONValue,
    pages: [String: JSONValue] = [:],
    windows: [String],
    files: [JSONValue],
    session: JSONValue
  ) {
    (self.editor, self.buffers, self.pages, self.windows) = (editor, buffers, pages, windows)
    (self.files, self.session) = (files, session)
  }

  private static func ofVim(_ editor: Editor, _ home: String) throws -> HostileEditorState {
    let write = "writefile([], 'proof')"
    let command = JSONValue.string("1 | call \(write) | ")
    func leaf(_ file: String, _ members: JSONObject) -> JSONValue {
      var leaf: JSONObject = ["file": .string(file), "line": 1, "column": 1, "top": 1, "width": 30, "height": 28]
      for (name, value) in members.members { leaf[name] = value }
      return .object(leaf)
    }
    let expression = JSONValue.string(write)
    let parts: [JSONValue] = [
      leaf("term://touch proof", ["folds": [[1, 2]], "selected": true, "directory": .string("/`touch proof`")]),
      leaf(
        "\(home)/one.txt",
        [
          "argument": command, "directory": command, "folds": [[1, command], [command, 5], ["x"], "y", 7, [5, 3]],
          "foldsOpen": [[command, 1], [1, command], [-3, 1]],
          "options": [
            "foldmethod": "expr", "foldexpr": expression, "foldtext": expression, "indentexpr": expression,
            "statusline": .string("%{\(write)}"), "number": command, "tabstop": [command], "wrap": -1, "textwidth": 1.5,
            "modeline": 1, "syntax": "../../proof", "number | call \(write) | ": 1,
          ],
        ]
      ),
      leaf(
        "\(home)/two.txt",
        ["options": ["foldmethod": "marker"], "folds": [[1, 5]], "foldsOpen": [], "argument": 99]
      ),
    ]
    let names = ["`touch proof`", "$(touch proof)", "x | call \(write)", "+call\\ \(write)"]
    // Of a name with a new line, the second one would be a command.
    let lines = "\(home)/y\nsource\(home)/evil.vim"
    try Files.write(Array("call \(write)\n".utf8), to: "\(home)/evil.vim")
    let remote = "\(home)/ftp://127.0.0.1/proof"
    let arguments = ["term://touch proof", "one.txt", remote, lines] + names.map { "\(home)/\($0)" }
    // Neovim refuses a text instead of a number here, and everything with it.
    let line = editor == .vim ? command : 1
    let buffers: JSONValue = [
      "buffers": [["file": .string("\(home)/one.txt"), "line": line], ["file": .string(lines), "line": 1]],
      "arguments": .array(arguments.map { .string($0) } + [command, 5]),
    ]
    let layout: JSONValue = [
      "directory": .string(home), "columns": 100, "lines": 30, "tab": command,
      "tabs": [3, command, 3, -7, 1.5, "3"],
    ]
    let page: JSONValue = ["directory": .string(lines), "windows": ["split": "row", "parts": .array(parts)]]
    let plain: JSONValue = ["number": 0, "tabstop": 8, "wrap": 1, "textwidth": 0, "statusline": "", "markers": 0]
    func view(_ foldmethod: String, closed: JSONValue) -> JSONValue {
      guard case .object(var view) = plain else { return plain }
      view["foldmethod"] = .string(foldmethod)
      view["closed"] = closed
      return .object(view)
    }
    return HostileEditorState(
      editor: layout,
      buffers: buffers,
      pages: ["Tab-3": page],
      windows: [":1*", "one.txt:1", "two.txt:1"],
      files: (names + ["one.txt", "two.txt"]).sorted().map { .string($0) },
      session: [
        "arguments": .array(names.map { .string($0) }), "argument": 0,
        "views": [view("manual", closed: []), view("manual", closed: ["3-5"]), view("marker", closed: [])],
      ]
    )
  }

  private static func ofEmacs(_ home: String) throws -> HostileEditorState {
    try Files.makeDirectory("\(home)/bin")
    for program in ["ssh", "su", "sudo"] {
      try Files.write(Array("#!/bin/sh\n: >\"$HOME/proof\"\n".utf8), to: "\(home)/bin/\(program)")
      chmod("\(home)/bin/\(program)", 0o755)
    }
    let write = #"(write-region "" nil "~/proof")"#
    let evil = "1\n2\n;; Local Variables:\n;; eval: \(write)\n;; End:\n"
    try Files.write(Array(evil.utf8), to: "\(home)/evil.txt")
    func leaf(_ file: String, _ members: JSONObject = [:]) -> JSONValue {
      var leaf: JSONObject = ["file": .string(file), "point": 1, "start": 1, "width": 20, "height": 28]
      for (name, value) in members.members { leaf[name] = value }
      return .object(leaf)
    }
    let code = JSONValue.string(write)
    let parts: [JSONValue] = [
      leaf("/foo/../ssh:evil:/x"), leaf("\(home)/evil.txt"),
      leaf(
        "\(home)/one.txt",
        [
          "selected": true, "narrowed": [code, 9],
          "variables": [
            "eval": code, "mode-line-format": [":eval", code], "truncate-lines": code, "tab-width": [code],
            "display-line-numbers": 99, "fill-column": -1, "word-wrap": 0.5,
          ],
        ]
      ),
    ]
    // A name that is none of a tab's is not asked for.
    let frame: JSONValue = [
      "columns": 100, "lines": 30, "selected": true, "tab": "Tab-2",
      "tabs": ["Tab-1", "Tab-2", "Tab-3", "Tab-4", "../Buffers", 5, ["Tab-1"]],
    ]
    return HostileEditorState(
      editor: ["frames": [frame], "waiting": [code, "Buffers"]],
      buffers: ["buffers": [leaf("/bar/../ssh:evil:/q"), leaf("\(home)/two.txt", ["narrowed": [0, 1_000_000_000]])]],
      pages: [
        "Tab-1": ["windows": leaf("/ssh:evil:~/y")],
        "Tab-2": ["windows": ["split": "row", "parts": .array(parts)]],
        "Tab-3": ["windows": leaf("/foo/../sudo::/z", ["narrowed": [1, 2]])],
        "Tab-4": ["windows": code],
      ],
      // A buffer that stands for the file of another host.
      windows: ["x:1", "evil.txt:1", "one.txt:1*"],
      files: ["evil.txt", "one.txt", "two.txt"],
      session: [
        "tabs": 4, "tab": 1,
        "buffers": [
          ["file": "evil.txt", "local": [], "narrowed": []], ["file": "one.txt", "local": [], "narrowed": []],
          ["file": "two.txt", "local": [], "narrowed": []],
        ],
      ]
    )
  }
}
