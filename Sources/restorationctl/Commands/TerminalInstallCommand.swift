// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser

struct TerminalInstallCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "install",
    abstract: "Make shells, tmux and editors come back.",
    usage: "restorationctl terminal install [<option> ...] [<program> ...]",
    discussion: """
      Examples:
        restorationctl terminal install --dry-run
        restorationctl terminal install
        restorationctl terminal install bash tmux --yes

      Shows what it changes in your settings, and asks. Bash, tmux and Emacs get
      lines between two comments, Vim and Neovim a link to a plugin. What you set
      up by hand stays as it is. Do it again after the restorers have moved.
      Without a name it is each program that PATH leads to.

      restorationctl terminal uninstall takes all of it back.
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

  @Argument(help: ArgumentHelp("What is to come back.", valueName: "program"))
  var programs: [Restorer] = []

  func validate() throws { try trial.requireAnswer(yes) }

  func run() async throws {
    let chosen = Restorer.allCases.filter { programs.isEmpty ? $0.isUsed : programs.contains($0) }
    if chosen.isEmpty {
      let hint = "Name what is to come back: restorationctl terminal install bash"
      throw Failure(ExitStatus.notThere, kind: "usage", "PATH leads to none of these programs", hint: hint)
    }
    let plan = try SettingsPlan.installing(chosen, from: Restorer.sources(from))
    try plan.carryOut(output, isDry: trial.isDry, isAnswered: yes)
  }
}

struct TerminalUninstallCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "uninstall",
    abstract: "Take back what install has changed.",
    usage: "restorationctl terminal uninstall [<option> ...] [<program> ...]",
    discussion: """
      Examples:
        restorationctl terminal uninstall --dry-run
        restorationctl terminal uninstall
        restorationctl terminal uninstall vim --yes

      Shows what it changes in your settings, and asks. What is saved stays:
      restorationctl forget org.gnu.bash removes that.
      """
  )

  @OptionGroup var options: CommonOptions

  @OptionGroup var trial: DryRunOptions

  @Flag(help: "Do not ask.")
  var yes = false

  @Argument(help: ArgumentHelp("What is no longer to come back (default: all).", valueName: "program"))
  var programs: [Restorer] = []

  func validate() throws { try trial.requireAnswer(yes) }

  func run() async throws {
    let plan = try SettingsPlan.uninstalling(Restorer.allCases.filter { programs.isEmpty || programs.contains($0) })
    try plan.carryOut(output, isDry: trial.isDry, isAnswered: yes)
  }
}

extension DryRunOptions {
  /// Without a terminal nobody can be asked.
  fileprivate func requireAnswer(_ yes: Bool) throws {
    if !isDry, !yes, !Terminal.canAsk {
      throw ValidationError("settings would be changed, and this is not a terminal to ask on: use --yes")
    }
  }
}
