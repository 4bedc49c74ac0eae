// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// Emacs asks before it quits, and what its user answers counts.
@Suite(.broker, .enabled(if: Editor.areInstalled, Comment(rawValue: Editor.requirement))) struct EmacsQuestionTests {
  private static let quit = Editor.emacs.quit

  private static let questions = [
    "yes-or-no": "(setq confirm-kill-emacs 'yes-or-no-p)",
    "y-or-n": "(setq confirm-kill-emacs 'y-or-n-p)",
    "a key": "(setq confirm-kill-emacs (lambda (prompt) (eq (read-key prompt) ?y)))",
    // While it waits for a key no longer than a time, Emacs is not idle.
    "a key in time": "(setq confirm-kill-emacs (lambda (prompt) (eq (read-event prompt nil 100) ?y)))",
    "of a hook": """
    (add-hook 'kill-emacs-query-functions (lambda () (yes-or-no-p "Really exit Emacs? ")) t)
    """,
  ]

  /// Opens a file, quits and waits for the question; how the session ends after it.
  private static func ending(_ kind: String, _ answer: (EditorProcess) throws -> Void) throws -> String? {
    let home = try EmacsHome(settings: questions[kind] ?? "")
    let process = try home.start()
    try process.type(Editor.emacs.open("one.txt", line: 5))
    try home.stored(["one.txt:5*"], by: process)
    let monitor = try broker.connect()
    try monitor.call("subscribe", ["events": ["sessionEnded"]])
    try process.terminal.type(quit)
    _ = try process.terminal.shown(until: "Really exit Emacs?")
    try answer(process)
    try process.waits(until: "has ended") { monitor.hasInput(within: .zero) }
    return try monitor.notification("event")["ending"]?.string
  }

  @Test(arguments: ["yes-or-no": "yes\r", "y-or-n": "y", "a key": "y", "a key in time": "y", "of a hook": "yes\r"])
  func aQuitThatIsConfirmedIsTheUsersWish(kind: String, answer: String) throws {
    #expect(try Self.ending(kind) { try $0.terminal.type(answer) } == "userQuit")
  }

  @Test(arguments: ["yes-or-no", "y-or-n", "a key", "a key in time", "of a hook"])
  func anEmacsThatIsEndedWhileItAsksIsNotQuit(kind: String) throws {
    #expect(try Self.ending(kind) { $0.process.send(signal: SIGTERM) } == "logout")
  }

  @Test(arguments: ["no\r", "\u{7}", "ye"]) func aQuitThatIsDeclinedIsNone(answer: String) throws {
    let ending = try Self.ending("yes-or-no") { process in
      try process.terminal.type(answer)
      // With it Emacs drops the keys that follow.
      if answer == "\u{7}" { _ = try process.terminal.shown(until: "Quit") }
      // A part of the answer leaves the question open.
      if answer != "ye" { _ = try process.report() }
      process.process.send(signal: SIGHUP)
    }
    #expect(ending == "logout")
  }

  /// Where Emacs finds that its terminal is gone, SIGHUP ends it at once from then on, in the middle of its hooks. It has
  /// said goodbye before other hooks run; if it has not even come to that, what was stored comes back as well.
  @Test(arguments: ["add-hook 'kill-emacs-hook": "logout", "advice-add 'restoration--end :before": "crashed"])
  func anEmacsThatASecondSignalEndsComesBackAsItWas(lingering: String, ending: String) throws {
    let home = try EmacsHome(
      settings: """
        (setq confirm-kill-emacs 'yes-or-no-p)
        (defun linger (&rest _) (write-region "" nil "~/ends" nil 'quiet) (sleep-for 100))
        (add-hook 'restoration-ready-hook (lambda () (\(lingering) #'linger)))
        """
    )
    let process = try EditorProcess(.emacs, home: home.path, in: .deafShell)
    try process.ready()
    try process.type(Editor.emacs.open("one.txt", line: 5))
    try home.stored(["one.txt:5*"], by: process)
    let monitor = try broker.connect()
    try monitor.call("subscribe", ["events": ["sessionEnded"]])
    try process.terminal.type(Self.quit)
    _ = try process.terminal.shown(until: "Really exit Emacs?")
    process.closeTerminal()
    try process.waits(until: "ends") { Files.exists("\(home.path)/ends") }
    Glibc.kill(try process.pid, SIGHUP)
    #expect(try monitor.notification("event")["ending"]?.string == ending)
    #expect(try home.start().report().windows == ["one.txt:5*"])
  }
}
