// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// What happens to tmux in a common life, with the restorer of `Protocol/examples/terminal`.
@Suite(
  .broker,
  .enabled(if: TerminalExample.isInstalled, "needs bash, jq and tmux; Tests/run.sh installs them"),
  .timeLimit(.minutes(5))
)
struct TmuxLives {
  private let home = TerminalHome()

  private func sessions(socket: String? = nil) throws -> [Substring] {
    try home.tmux("list-sessions", "-F", "#{session_name}", socket: socket).split(separator: "\n")
  }

  /// The last differ in what is far from the end of their paths.
  @Test(arguments: [("t-ä", "t-ö"), ("t.1", "t_1"), ("a/\(String(repeating: "t", count: 60))", "b/")])
  func twoServersHaveTheirOwnSessionsHoweverAlikeTheirSocketsAre(_ first: String, _ second: String) throws {
    try home.prepare()
    let sockets = [first, second.hasSuffix("/") ? second + first.dropFirst(2) : second].map(broker.directory.file)
    for folder in ["a", "b"] { _ = try broker.directory.makeDirectory(folder) }
    defer { for socket in sockets { _ = try? home.tmux("kill-server", socket: socket) } }
    for (socket, name) in zip(sockets, ["invoices", "holiday"]) {
      try home.tmux("new-session", "-d", "-s", name, socket: socket)
    }
    try Wait.until("both are saved") { try home.savedSessions() == ["holiday", "invoices"] }
    for socket in sockets { try home.endTmux(socket: socket) }
    for (socket, name) in zip(sockets, ["invoices", "holiday"]) {
      try home.tmux("start-server", socket: socket)
      #expect(try sessions(socket: socket) == [name[...]])
    }
  }

  @Test func whatAFormerBuildSavedComesBackOnce() throws {
    try home.prepare()
    defer { _ = try? home.tmux("kill-server") }
    let pane = """
      {"session_name": "saved", "window_index": "3", "window_name": "n", "automatic-rename": "0", "directory": "/usr",
      "window_active": "1", "window_width": "80", "window_height": "24", "pane_active": "1", "window_layout": "",
      "@restoration_shell": "tmux-1"}
      """
    try ControlTool.run(["put", "org.tmux.tmux", home.formerTmuxObject, "{\"panes\":[\(pane)]}"], status: 0)
    try home.tmux("start-server")
    #expect(
      try home.tmux("list-panes", "-aF", "#{session_name} #{window_index} #{window_name} #{pane_start_path}")
        == "saved 3 n /usr\n"
    )
    try home.tmux("rename-session", "now")
    try Wait.until("it is saved as it is now, and nothing else is") { try home.savedSessions() == ["now"] }
    try home.endTmux()
    try home.tmux("start-server")
    #expect(try sessions() == ["now"])
  }
}
