// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// What people are told of the restorers in `Protocol/examples/terminal`.
@Suite(
  .enabled(if: TerminalExample.isInstalled, Comment(rawValue: TerminalExample.requirement)),
  .timeLimit(.minutes(5))
)
struct TerminalStatusLives {
  private let home = TerminalHome()

  private func adapters(of shell: ShellProcess) throws -> [JSONValue] {
    try JSONCodec.parse(Array(shell.run("restorationctl terminal status -j").utf8))["adapters"]?.array ?? []
  }

  @Test(.broker) func aTerminalSaysWhatOfItIsAtWork() throws {
    try home.prepare()
    let shell = try home.shell(["RESTORATION_SHELL": "1"])
    let expected: JSONValue = [
      "adapter": "bash", "pid": .integer(Int64(shell.process.pid)), "atWork": true, "application": "org.gnu.bash",
      "object": "1", "troubles": [],
    ]
    #expect(try adapters(of: shell) == [expected])
    #expect(try shell.run("restorationctl terminal status").contains("Bash"))
    try shell.killKeeper()
    let broken = try adapters(of: shell).first
    #expect(broken?["atWork"] == false)
    #expect(broken?["troubles"]?.array?.first?.string?.contains("begins another one after its next prompt") == true)
    try shell.kill()
  }

  @Test(.broker) func aTerminalSaysWhyNothingOfItIsAtWork() throws {
    try home.prepare()
    try home.write("PS1='> '\n", to: ".bashrc")
    let shell = try home.shell()
    let bash = try adapters(of: shell).first
    #expect(bash?["atWork"] == false && bash?["object"] == .null)
    #expect(bash?["troubles"]?.array?.first?.string?.hasPrefix("shell.bash was not read") == true)
    // What others may have written is not believed.
    let report = "\(home)/report"
    try home.write("1\nodd\n\u{1b}[2J\n", to: "report")
    try shell.run("mkdir -p $XDG_RUNTIME_DIR/restoration-terminal")
    try shell.run("ln -s \(report) $XDG_RUNTIME_DIR/restoration-terminal/bash.$$")
    #expect(try adapters(of: shell).first == bash)
    try home.write("PS1='> '\n. \(TerminalExample.folder)/shell.bash\n", to: ".bashrc")
    let unread = try adapters(of: shell).first?["troubles"]?.array?.first?.string
    #expect(unread?.hasPrefix("this shell has not read shell.bash, or PROMPT_COMMAND was") == true, "\(unread ?? "")")
    let findings = try JSONCodec.parse(Array(shell.run("restorationctl doctor -j").utf8))["findings"]?.array
    #expect(findings?.first { $0["subject"] == "terminal" }?["command"] == "exec bash")
    try shell.kill()
  }

  @Test(.broker(limits: ["objectsPerApplicationMax": 1]), arguments: Shell.allCases)
  func aShellThatIsRefusedIsToldOnceAndInTheStatus(_ kind: Shell) throws {
    let home = TerminalHome(kind)
    try home.prepare()
    try ControlTool.run(["put", kind.application, "other", #"{"directory":"/usr","history":0}"#], status: 0)
    let shell = try home.shell(["RESTORATION_SHELL": "1"])
    func trouble() throws -> String? { try adapters(of: shell).first?["troubles"]?.array?.first?.string }
    try Wait.until("it is told") { try trouble()?.hasPrefix("this shell is not saved: ") == true }
    try shell.run("cd /usr")
    try ControlTool.run(["rm", kind.application, "other"], status: 0)
    try shell.run("cd /var")
    try home.waitUntilSaved(["/var"])
    try Wait.until("all is well") { try trouble() == nil }
    let screen = try shell.terminal.shown()
    #expect(screen.ranges(of: "restoration: this shell is not saved: ").count == 1, "\(screen)")
    try shell.kill()
  }

  @Test(.broker(limits: ["stateBytesMax": 1_024])) func tmuxSaysWhetherItIsAtWorkAndWhatWasRefused() throws {
    try home.prepare()
    defer { _ = try? home.tmux("kill-server") }
    // At first it is there, and has no broker.
    _ = try broker.terminate()
    try home.tmux("new-session", "-d", "-s", "main", wait: "1")
    func tmux() throws -> JSONValue? {
      Files.remove("\(home)/status")
      let status = "restorationctl terminal status -j >~/part; mv ~/part ~/status"
      try home.tmux("run-shell", status)
      return try JSONCodec.parse(Files.read("\(home)/status"))["adapters"]?.array?.last
    }
    let first = try tmux()
    #expect(first?["atWork"] == true, "\(first?.text ?? "")")
    try broker.start()
    try Wait.until("there is nothing to tell") { try tmux()?["troubles"] == [] }
    let object = try home.tmuxObject
    #expect(try tmux()?["object"]?.string == object)
    try home.tmux("rename-window", "-t", "main:0", String(repeating: "n", count: 1_000))
    try Wait.until("it is told") {
      try tmux()?["troubles"]?.array?.first?.string?.hasPrefix("window 0 of main is not saved: stateBytesMax") == true
    }
    try home.killRestorer()
    #expect(try tmux()?["atWork"] == false)
  }
}
