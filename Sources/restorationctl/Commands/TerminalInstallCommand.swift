// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser

struct TerminalInstallCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "install",
    abstract: "Set up shells, tmux and editors to be restored.",
    usage: "restorationctl terminal install [<option> ...] [<program> ...]",
    discussion: """
      Examples:
        restorationctl terminal install --dry-run
        restorationctl terminal install
        restorationctl terminal install bash tmux --yes

      Shows its changes to your settings, and asks. Shells, tmux and Emacs get
      lines between two comments, Vim and Neovim a link to a plugin. A setup by
      hand is not changed. If the restorers have moved, repeat the command.

      restorationctl terminal uninstall undoes all of it.
      """
  )

  @OptionGroup var options: CommonOptions

  @OptionGroup var trial: DryRunOptions

  @Flag(help: "Do not ask.")
  var yes = false

  @Option(
    help: ArgumentHelp("The directory of the restorers (default: the installed one).", valueName: "directory"),
    completion: .directory
  )
  var from: String?

  @Argument(help: ArgumentHelp("The program to set up (default: those in PATH).", valueName: "program"))
  var programs: [Restorer] = []

  func validate() throws { try trial.requireAnswer(yes) }

  func run() async throws {
    let chosen = Restorer.allCases.filter { programs.isEmpty ? $0.isUsed : programs.contains($0) }
    if chosen.isEmpty {
      let hint = "Name the program: restorationctl terminal install bash"
      throw Failure(ExitStatus.notThere, kind: "usage", "PATH leads to none of these programs", hint: hint)
    }
    let plan = try SettingsPlan.installing(chosen, from: Restorer.sources(from))
    try plan.carryOut(output, isDry: trial.isDry, isAnswered: yes)
  }
}

struct TerminalUninstallCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "uninstall",
    abstract: "Undo the changes of install.",
    usage: "restorationctl terminal uninstall [<option> ...] [<program> ...]",
    discussion: """
      Examples:
        restorationctl terminal uninstall --dry-run
        restorationctl terminal uninstall
        restorationctl terminal uninstall vim --yes

      Shows its changes to your settings, and asks. Saved states stay:
      restorationctl forget org.gnu.bash removes those of Bash.
      """
  )

  @OptionGroup var options: CommonOptions

  @OptionGroup var trial: DryRunOptions

  @Flag(help: "Do not ask.")
  var yes = false

  @Argument(help: ArgumentHelp("The program to undo (default: all).", valueName: "program"))
  var programs: [Restorer] = []

  func validate() throws { try trial.requireAnswer(yes) }

  func run() async throws {
    let plan = try SettingsPlan.uninstalling(Restorer.allCases.filter { programs.isEmpty || programs.contains($0) })
    try plan.carryOut(output, isDry: trial.isDry, isAnswered: yes)
  }
}

extension DryRunOptions {
  /// Without a terminal there is no one to ask.
  fileprivate func requireAnswer(_ yes: Bool) throws {
    if !isDry, !yes, !Terminal.canAsk {
      throw ValidationError("settings would be changed, and this is not a terminal to ask on: use --yes")
    }
  }
}
