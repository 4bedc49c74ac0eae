// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// `restorationctl terminal install` and `uninstall`, with real shells and editors.
@Suite(
  .enabled(if: TerminalExample.isInstalled, Comment(rawValue: TerminalExample.requirement)),
  .timeLimit(.minutes(5))
)
struct TerminalInstallLives {
  private static let restorers = "\(Products.repository)/Protocol/examples"
  private let home = TerminalHome()

  @discardableResult
  private func terminal(_ words: String..., status: Int32 = 0) throws -> ControlTool.Result {
    try ControlTool.run(["terminal"] + words, environment: home.environment, status: status)
  }

  /// All files of the home directory, with what is in them, and links with where they lead.
  private func files() throws -> [String: String] {
    let list = try ChildProcess.run(["find", "\(home)", "(", "-type", "f", "-o", "-type", "l", ")", "-printf", "%p\n"])
    return try Dictionary(
      uniqueKeysWithValues: list.output.split(separator: "\n").map(String.init).map { path in
        let target = Files.target(path)
        return (path, target.isEmpty ? try Files.text(path) : "-> \(target)")
      }
    )
  }

  @Test(.broker, arguments: Shell.allCases)
  func anInstalledShellComesBackAndAnUninstalledOneDoesNot(_ kind: Shell) throws {
    let home = TerminalHome(kind)
    try home.make(".config", ".config/fish")
    try home.write(kind.habits, to: kind.settings)
    let installed = try terminal("install", kind.rawValue, "--from", Self.restorers, "--yes").output
    #expect(installed.contains(": \(home)/\(kind.settings) gets these lines at its end:\n  # >>> "), "\(installed)")
    #expect(installed.hasSuffix("when they begin: exec \(kind) begins this shell anew.\n"), "\(installed)")
    var shell = try home.shell()
    try shell.run("cd /usr")
    try home.waitUntilSaved(["/usr"])
    let status = try shell.run("restorationctl terminal status --no-legend")
    #expect(status.contains("  yes  ") && status.contains(kind.application), "\(status)")
    try shell.kill()
    shell = try home.shell()
    #expect(try shell.run("pwd") == "/usr\n")
    try shell.kill()
    let undone = try terminal("uninstall", "--yes").output
    #expect(undone.hasSuffix("\nPrograms that run already are saved until they end.\n"), "\(undone)")
    #expect(try Files.text("\(home)/\(kind.settings)") == kind.habits)
    shell = try home.shell()
    #expect(try shell.run("pwd") == "\(home)\n")
    try shell.kill()
  }

  @Test(.broker) func anInstalledTmuxComesBack() throws {
    try home.make()
    try home.write("set -g default-command 'sh'\n", to: ".tmux.conf")
    let installed = try terminal("install", "tmux", "--from", Self.restorers, "--yes").output
    let next = "when they begin: tmux source-file \(home)/.tmux.conf tells a running tmux.\n"
    #expect(installed.hasSuffix(next), "\(installed)")
    defer { _ = try? home.tmux("kill-server") }
    try home.tmux("new-session", "-d", "-s", "mine")
    try Wait.until("it is saved") { try home.savedSessions() == ["mine"] }
    try home.endTmux(byKill: true)
    try home.tmux("start-server")
    #expect(try home.tmux("list-sessions", "-F", "#{session_name}") == "mine\n")
  }

  @Test(.broker, .enabled(if: Editor.areInstalled, Comment(rawValue: Editor.requirement)))
  func installedEditorsLoadTheirPlugins() throws {
    try home.make()
    try terminal("install", "vim", "neovim", "emacs", "--from", Self.restorers, "--yes")
    let look = #"if exists(":RestorationStatus") == 2 | qa! | else | cq | endif"#
    let commands = [
      ["vim", "--not-a-term", "-c", look], ["nvim", "--headless", "-c", look],
      ["emacs", "--batch", "-l", "\(home)/.emacs", "--eval", "(kill-emacs (if (featurep 'restoration) 0 1))"],
    ]
    func ends() throws -> [ChildProcess.End] {
      try commands.map { try ChildProcess.run($0, environment: home.environment).end }
    }
    #expect(try ends() == [.exit(0), .exit(0), .exit(0)])
    try terminal("uninstall", "--yes")
    #expect(try ends().prefix(2) == [.exit(1), .exit(1)])
    #expect(!Files.exists("\(home)/.emacs") && !Files.exists("\(home)/.vim/pack"))
  }

  @Test(.broker) func whatIsShownIsWhatIsWrittenAndAllOfItIsTakenBack() throws {
    try home.make("dotfiles")
    try home.write("echo hello\n", to: "dotfiles/bashrc")
    chmod("\(home)/dotfiles/bashrc", 0o640)
    symlink("dotfiles/bashrc", "\(home)/.bashrc")
    try home.write("set -g status off\n", to: ".tmux.conf")
    let before = try files()
    let words = ["bash", "zsh", "fish", "tmux", "vim", "neovim", "emacs", "--from", Self.restorers]
    func install(_ more: String...) throws -> ControlTool.Result {
      try ControlTool.run(["terminal", "install"] + words + more, environment: home.environment, status: 0)
    }
    let shown = try install("--dry-run").output
    #expect(try files() == before)
    let done = try install("--yes").output
    #expect(done == shown)
    let after = try files()
    #expect(after["\(home)/.bashrc"] == "-> dotfiles/bashrc")
    #expect(Files.mode("\(home)/dotfiles/bashrc") == 0o640)
    let added = try #require(after["\(home)/dotfiles/bashrc"]?.dropFirst("echo hello\n".count))
    #expect(shown.contains(added.split(separator: "\n").joined(separator: "\n  ")), "\(shown)")
    for (link, folder) in [(".vim", "vim"), (".local/share/nvim/site", "neovim")] {
      let path = "\(home)/\(link)/pack/restoration/start/restoration"
      #expect(after[path] == "-> \(Self.restorers)/\(folder)")
    }
    // Once is enough.
    let again = try install("--yes", "-j").json
    #expect(again["changes"]?.array?.map { $0["change"] } == Array(repeating: "none", count: 7))
    #expect(try files() == after)
    try ControlTool.run(["terminal", "uninstall", "--dry-run"], environment: home.environment, status: 0)
    #expect(try files() == after)
    try ControlTool.run(["terminal", "uninstall", "--yes"], environment: home.environment, status: 0)
    #expect(try files() == before)
    #expect(Files.mode("\(home)/dotfiles/bashrc") == 0o640)
  }

  @Test(.broker) func restorersThatHaveMovedReplaceTheirLines() throws {
    let moved = try broker.directory.makeDirectory("moved")
    #expect(try ChildProcess.run(["cp", "-r", "\(Self.restorers)/terminal", moved]).end == .exit(0))
    try home.make()
    try home.write("one\n", to: ".bashrc")
    try terminal("install", "bash", "--from", Self.restorers, "--yes")
    try home.write(Files.text("\(home)/.bashrc") + "two", to: ".bashrc")
    try terminal("install", "bash", "--from", moved, "--yes")
    let text = try Files.text("\(home)/.bashrc")
    #expect(text.contains("\(moved)/terminal/shell.bash") && !text.contains(Self.restorers), "\(text)")
    try terminal("uninstall", "bash", "--yes")
    #expect(try Files.text("\(home)/.bashrc") == "one\ntwo")
  }

  @Test(.broker) func whatAUserDidByHandStaysAndWhatIsOddIsRefused() throws {
    try home.prepare()
    let before = try files()
    let changes = try terminal("install", "bash", "tmux", "--from", Self.restorers, "--yes", "-j").json["changes"]
    #expect(changes?.array?.map { $0["change"] } == ["byHand", "byHand"])
    let said = try terminal("install", "bash", "--from", Self.restorers, "--yes").output
    #expect(said == "Bash: \(home)/.bashrc has shell.bash in a line of yours, and does not change.\n")
    try terminal("uninstall", "--yes")
    #expect(try files() == before)

    try home.write("# >>> restorationctl terminal >>>\n", to: ".bashrc")
    let unended = try terminal("install", "bash", "--from", Self.restorers, "--yes", status: 1)
    #expect(unended.errors.contains("by hand"), "\(unended.errors)")
    let mark = "# >>> restorationctl terminal >>>\n"
    let twice = "\(mark)mine\n\(mark)x\n# <<< restorationctl terminal <<<\n"
    try home.write(twice, to: ".bashrc")
    for command in ["install", "uninstall"] {
      let source = command == "install" ? ["--from", Self.restorers] : []
      try ControlTool.run(["terminal", command, "bash", "--yes"] + source, environment: home.environment, status: 1)
      #expect(try Files.text("\(home)/.bashrc") == twice)
    }
    Files.remove("\(home)/.tmux.conf")
    symlink("nowhere", "\(home)/.tmux.conf")
    let dangling = try terminal("install", "tmux", "--from", Self.restorers, "--yes", status: 1)
    #expect(dangling.errors.contains("is a link to a file that is not there"), "\(dangling.errors)")
    let absent = try terminal("install", "bash", "--from", "\(home)", "--yes", status: 4)
    #expect(absent.errors.contains("--from"), "\(absent.errors)")
    let odd = try broker.directory.makeDirectory("it's")
    let quoted = try terminal("install", "bash", "--from", odd, "--yes", status: 64)
    #expect(quoted.errors.contains("settings cannot name"), "\(quoted.errors)")
  }

  @Test(.broker) func aLinkThatAUserHasMadeToSomethingElseStays() throws {
    try home.make("mine", ".vim", ".vim/pack", ".vim/pack/restoration", ".vim/pack/restoration/start")
    symlink("\(home)/mine", "\(home)/.vim/pack/restoration/start/restoration")
    let before = try files()
    try terminal("install", "vim", "--from", Self.restorers, "--yes")
    try terminal("uninstall", "vim", "--yes")
    #expect(try files() == before)
  }

  @Test(.broker) func linesAreTakenFromTheFileThatHasThemThoughAnotherOneComesFirst() throws {
    try home.make(".config", ".config/tmux")
    try home.write("set -g status off\n", to: ".config/tmux/tmux.conf")
    try terminal("install", "tmux", "--from", Self.restorers, "--yes")
    try home.write("set -g mouse on\n", to: ".tmux.conf")
    try terminal("uninstall", "tmux", "--yes")
    #expect(try Files.text("\(home)/.config/tmux/tmux.conf") == "set -g status off\n")
  }

  /// As an editor leaves them that writes a file for Windows. A comment does nothing.
  @Test(.broker) func linesThatEndByCRLFAreFoundAndTakenBack() throws {
    _ = try broker.directory.makeDirectory("home")
    let own = "(setq a 1)\r\n  ;; not yet: (require 'restoration)\r\n"
    try home.write(own, to: ".emacs")
    func install() throws -> String? {
      let words = ["terminal", "install", "emacs", "--from", Self.restorers, "--yes", "-j"]
      let done = try ControlTool.run(words, environment: home.environment, status: 0).json
      return done["changes"]?.array?.first?["change"]?.string
    }
    #expect(try install() == "lines")
    let added = try Files.text("\(home)/.emacs")
    #expect(added.hasPrefix(own + ";; >>> "), "\(added)")
    try home.write(own + added.dropFirst(own.count).replacing("\n", with: "\r\n"), to: ".emacs")
    #expect(try install() == "lines")
    #expect(try Files.text("\(home)/.emacs") == added)
    try home.write(own + added.dropFirst(own.count).replacing("\n", with: "\r\n"), to: ".emacs")
    try terminal("uninstall", "--yes")
    #expect(try Files.text("\(home)/.emacs") == own)
  }

  @Test(.broker) func aFailureNamesWhatWasChangedBeforeItAndAStepThatHelps() throws {
    _ = try broker.directory.makeDirectory("home")
    try home.write("", to: ".vim")
    let halfway = try terminal("install", "bash", "vim", "--from", Self.restorers, "--yes", status: 1)
    #expect(halfway.errors.contains("see --dry-run. Changed before it: Bash."), "\(halfway.errors)")
    try Files.write([0xff], to: "\(home)/.tmux.conf")
    let unread = try terminal("install", "tmux", "--from", Self.restorers, "--dry-run", status: 1)
    #expect(unread.errors.contains("is not UTF-8") && !unread.errors.contains("--dry-run"), "\(unread.errors)")
  }

  @Test(.broker) func whatTheUserWritesWhileTheQuestionWaitsStays() throws {
    try home.make()
    let terminal = try PseudoTerminal(columns: 80)
    let process = try ChildProcess(
      [Products.control, "terminal", "install", "bash", "--from", Self.restorers],
      environment: ControlTool.environment(home.environment),
      output: .terminal(terminal)
    )
    _ = try terminal.shown(until: "Change this? [y/N] ")
    try home.write("precious\n", to: ".bashrc")
    try terminal.type("y\n")
    #expect(try terminal.rest().contains("has changed meanwhile"))
    #expect(try process.waitForEnd() == .exit(1))
    #expect(try Files.text("\(home)/.bashrc") == "precious\n")
  }

  @Test(.broker) func nothingIsWrittenWithoutAYes() throws {
    try home.make()
    let words = ["terminal", "install", "bash", "--from", Self.restorers]
    let unasked = try ControlTool.run(words, environment: home.environment, status: 64)
    #expect(unasked.errors.contains("use --yes"), "\(unasked.errors)")
    let no = try ControlTool.runOnTerminal(
      words,
      answers: [("Change this? [y/N] ", "n")],
      environment: home.environment,
      status: 1
    )
    #expect(no.output.contains("nothing was changed"), "\(no.output)")
    #expect(Files.list("\(home)").isEmpty)
    let yes = [("Change this? [y/N] ", "y")]
    let done = try ControlTool.runOnTerminal(words, answers: yes, environment: home.environment, status: 0)
    #expect(done.output.contains("Done. restorationctl terminal uninstall undoes it."), "\(done.output)")
    #expect(try Files.text("\(home)/.bashrc").hasPrefix("# >>> restorationctl terminal >>>\n"))
  }
}
