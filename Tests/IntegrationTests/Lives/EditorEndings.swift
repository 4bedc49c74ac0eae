// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import TestSupport

/// An end of an editor that is not its user's wish.
struct EditorEnding: Sendable {
  enum Cause: String, Sendable {
    /// The terminal is closed, its machine crashes, or the connection to it is lost.
    case terminalCloses
    /// A terminal that tells its process first.
    case terminalHangsUp
    case hangUp, terminate, kill
    /// The terminal is closed while the editor is a stopped job of its shell.
    case terminalClosesOverStoppedJob
    /// Every process of the session is told to end and, at once, that its terminal is gone.
    case logout
    case tmuxServerIsKilled, tmuxSessionIsKilled
  }

  let host: EditorHost
  let cause: Cause

  static let all: [EditorEnding] = [
    (.terminal, [.terminalCloses, .hangUp, .terminate, .kill, .logout]),
    (.shell, [.terminalCloses, .terminalHangsUp, .terminalClosesOverStoppedJob, .logout]),
    (.deafShell, [.terminalCloses]),
    (.pane, [.tmuxServerIsKilled, .tmuxSessionIsKilled]),
    (.paneShell, [.tmuxServerIsKilled, .tmuxSessionIsKilled]),
  ].flatMap { (host: EditorHost, causes: [Cause]) in causes.map { EditorEnding(host: host, cause: $0) } }
}

extension EditorProcess {
  /// Ends it, and does not wait for that.
  func end(by cause: EditorEnding.Cause) throws {
    switch cause {
    case .terminalCloses: closeTerminal()
    case .terminalHangsUp:
      process.send(signal: SIGHUP)
      closeTerminal()
    case .terminalClosesOverStoppedJob:
      try type("\u{1a}")
      _ = try terminal.shown(until: "topped")
      closeTerminal()
    case .hangUp: Glibc.kill(try pid, SIGHUP)
    case .terminate: Glibc.kill(try pid, SIGTERM)
    case .kill: Glibc.kill(try pid, SIGKILL)
    case .logout:
      for pid in [try pid, process.pid] {
        Glibc.kill(pid, SIGTERM)
        Glibc.kill(pid, SIGHUP)
      }
      closeTerminal()
    case .tmuxServerIsKilled: try tmux("kill-server")
    case .tmuxSessionIsKilled: try tmux("kill-session")
    }
  }
}

extension Editor {
  /// Ways in which a user quits, with one file in one window. Of several texts each one follows a question.
  var farewells: [[String]] {
    switch self {
    case .vim, .neovim:
      ([":q\r", "ZZ", ":wqa\r", ":5cquit\r"] + (Environment.isLong ? Self.moreFarewells : []))
        .map { [$0] } + [[":normal ix\r:confirm qa\r", "n"]]
    case .emacs: [[quit], ["\u{1b}xkill-emacs\r"]]
    }
  }

  /// The editors' plugins are told of these as of the others.
  private static let moreFarewells = [":qa!\r", ":qa\r", "ZQ", ":wq\r", ":x\r", ":xa\r", ":cq\r", "\u{17}q"]

  /// What a user types who then does not quit: keys, and what the terminal shows then.
  var withdrawn: [(keys: String, shown: String)] {
    switch self {
    case .vim, .neovim:
      [(":normal ix\r:qa\r", "E162"), (":normal ix\r:confirm qa\r", "(C)ancel"), (":cq", ":cq")]
    // See EmacsQuestionTests.
    case .emacs: []
    }
  }
}
