// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// Files that cannot be visited when Emacs starts.
@Suite(.broker, .enabled(if: Editor.areInstalled, Comment(rawValue: Editor.requirement)))
struct EmacsWaitingFileTests {
  /// Files with this ending ask for a passphrase, as those of GnuPG do.
  private static let asking = #"""
    (defun ask-first (operation &rest arguments)
      (when (eq operation 'insert-file-contents)
        (unless (equal (read-passwd "Passphrase: ") "right") (error "Wrong passphrase")))
      (let ((inhibit-file-name-handlers '(ask-first))
            (inhibit-file-name-operation operation))
        (apply operation arguments)))
    (add-to-list 'file-name-handler-alist '("\\.secret\\'" . ask-first))
    """#

  private static let windows = ["two.txt:9*", "keys.secret:50", "far.txt:40"]

  /// A home whose Emacs was killed with three windows: the second one's file asks, the third one's directory is gone.
  private static func begin() throws -> EmacsHome {
    let home = try EmacsHome(settings: asking)
    try home.write("keys.secret", EditedFile.text)
    try Files.makeDirectory("\(home.path)/disk")
    try home.write("disk/far.txt", EditedFile.text)
    let first = try home.start()
    try first.type(
      Editor.emacs.keys(
        """
        (progn (split-window-below) (split-window-below) (find-file "two.txt") (goto-line 9) (other-window 1) \
        (find-file "keys.secret") (goto-line 50) (other-window 1) (find-file "disk/far.txt") (goto-line 40) \
        (other-window 1))
        """
      )
    )
    _ = try first.terminal.shown(until: "Passphrase: ")
    try first.type("right\r")
    try home.stored(windows, by: first)
    try first.process.kill()
    try Files.rename("\(home.path)/disk", to: "\(home.path)/elsewhere")
    return home
  }

  /// And the next Emacs, in which the file that asks was selected and its passphrase was wrong.
  private static func beginWithWrongPassphrase() throws -> (EmacsHome, EditorProcess) {
    let home = try begin()
    let next = try home.start()
    try next.type("\u{18}o")
    _ = try next.terminal.shown(until: "Passphrase: ")
    try next.type("wrong\r")
    _ = try next.terminal.shown(until: "Wrong passphrase")
    return (home, next)
  }

  /// The next auto-save would replace them.
  @Test func wordsThatOnlyAnAutoSaveFileHasAreToldOfWhenTheirFileComesBack() throws {
    let home = try EmacsHome()
    let first = try home.start()
    try first.type(Editor.emacs.open("one.txt", line: 5))
    try first.run([#"(save-excursion (goto-char (point-max)) (insert "precious"))"#, "(do-auto-save)"])
    try home.stored(["one.txt:5*"], by: first)
    try first.process.kill()
    let next = try home.start()
    #expect(try next.report().windows == ["one.txt:5*"])
    let told = "one.txt: auto-save data has what was not saved; consider M-x recover-this-file."
    #expect(try home.messages(in: next).contains("restoration: \(told)\n"))
    #expect(try home.texts("(list (restoration-status))", in: next) == ["Kept as \(EmacsHome.instance). \(told)"])
    try next.run(["(save-buffer)", "(set-buffer-modified-p t)", "(save-buffer)"])
    #expect(try home.texts("(list (restoration-status))", in: next) == ["Kept as \(EmacsHome.instance)."])
  }

  /// What the buffer of the selected window is.
  private static func selected(_ home: EmacsHome, _ process: EditorProcess) throws -> [String] {
    try home.texts("(list (buffer-name) (format \"%s %d\" major-mode (line-number-at-pos)))", in: process)
  }

  @Test func filesThatWaitAskNothingAndStayInWhatIsSavedHoweverOftenEmacsIsKilled() throws {
    let home = try Self.begin()
    for _ in 0..<2 {
      let next = try home.start()
      // The prompt would have taken the keys.
      #expect(try next.report().windows == ["two.txt:9*", "keys.secret:1", "far.txt:1"])
      try next.run(["(goto-line 9)", "(find-file-noselect \"four.txt\")"])
      try next.waits(until: "has it stored") { try home.storedText("Buffers").contains("four.txt") }
      #expect(try broker.connect().storedWindows(EmacsHome.instance) == Self.windows)
      try next.process.kill()
    }
  }

  @Test func aFileThatAsksIsVisitedWhenItsWindowIsSelected() throws {
    let (home, next) = try Self.beginWithWrongPassphrase()
    #expect(try Self.selected(home, next) == ["keys.secret", "restoration-waiting-mode 1"])
    try home.stored(["two.txt:9", "keys.secret:50*", "far.txt:40"], by: next)
    // Not again unasked.
    try next.type("\r")
    _ = try next.terminal.shown(until: "Passphrase: ")
    try next.type("right\r")
    try next.waits(until: "has visited it") { try Self.selected(home, next) == ["keys.secret", "fundamental-mode 50"] }
    try home.stored(["two.txt:9", "keys.secret:50*", "far.txt:40"], by: next)
  }

  @Test func aFileWhoseDirectoryIsBackIsVisitedAndOneThatIsClosedIsGivenUp() throws {
    let (home, next) = try Self.beginWithWrongPassphrase()
    try next.run(["(kill-buffer \"keys.secret\")"])
    try next.waits(until: "has given it up") { try !home.storedText("Buffers").contains("keys.secret") }
    try Files.rename("\(home.path)/elsewhere", to: "\(home.path)/disk")
    try next.type("\u{18}o")
    try next.waits(until: "has visited it") { try Self.selected(home, next) == ["far.txt", "text-mode 40"] }
  }

  @Test func aFileOfAnotherHostIsVisitedOnlyByACommand() throws {
    let home = try EmacsHome()
    try Files.makeDirectory("\(home.path)/bin")
    try home.write("bin/ssh", "#!/bin/sh\n: >\"$HOME/proof\"\n")
    chmod("\(home.path)/bin/ssh", 0o755)
    let parts: JSONValue = [
      ["file": .string("\(home.path)/two.txt"), "point": 1, "start": 1, "width": 50, "height": 28, "selected": true],
      ["file": "/ssh:far:/notes", "reason": "none", "point": 9, "start": 1, "width": 50, "height": 28],
    ]
    let author = try broker.connect()
    try author.encode(
      "Editor",
      state: ["frames": [["tabs": ["Tab-1"], "tab": "Tab-1", "columns": 100, "lines": 28, "selected": true]]],
      of: EmacsHome.instance
    )
    let windows: JSONValue = ["windows": ["split": "row", "parts": parts]]
    try author.encode("Editor", "Tab-1", state: windows, of: EmacsHome.instance)
    let process = try home.start()
    try process.type("\u{18}o")
    #expect(try Self.selected(home, process) == ["notes", "restoration-waiting-mode 1"])
    try home.stored(["two.txt:1", "notes:5*"], by: process)
    #expect(!Files.exists("\(home.path)/proof"))
    try process.type("\r")
    try process.waits(until: "connects") { Files.exists("\(home.path)/proof") }
  }

  /// Emacs has no value for it in what it saves.
  @Test func aFalseInWhatIsSavedKeepsNothingFromBeingSavedAgain() throws {
    let home = try EmacsHome()
    let author = try broker.connect()
    let file: JSONValue = .string("\(home.path)/gone/notes")
    let leaf: JSONValue = [
      "file": file, "point": false, "start": 1, "width": 100, "height": 28, "variables": ["tab-width": false],
      "selected": true,
    ]
    try author.encode(
      "Editor",
      state: ["frames": [["tabs": ["Tab-1"], "tab": "Tab-1", "columns": 100, "lines": 28, "wide": false]]],
      of: EmacsHome.instance
    )
    try author.encode("Editor", "Tab-1", state: ["windows": leaf, "new": false], of: EmacsHome.instance)
    try author.encode("Editor", "Buffers", state: ["buffers": [leaf]], of: EmacsHome.instance)
    let process = try home.start()
    try home.stored(["notes:1*"], by: process)
    try process.run(["(find-file \"~/two.txt\")", "(goto-line 9)"])
    try home.stored(["two.txt:9*"], by: process)
  }
}
