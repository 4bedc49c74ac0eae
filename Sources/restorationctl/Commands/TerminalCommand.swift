// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationWire

struct TerminalCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "terminal",
    abstract: "Restore shells, tmux and editors.",
    usage: "restorationctl terminal [<option> ...] <command>",
    discussion: """
      Examples:
        restorationctl terminal install
        restorationctl terminal status
        restorationctl terminal uninstall
      """,
    subcommands: [TerminalStatusCommand.self, TerminalInstallCommand.self, TerminalUninstallCommand.self]
  )

  // All options may stand before or after the command.
  @OptionGroup var options: CommonOptions
}

struct TerminalStatusCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show which parts of this terminal are saved, and why others are not.",
    usage: "restorationctl terminal status [<option> ...]",
    discussion: """
      Examples:
        restorationctl terminal status
        restorationctl terminal status -j | jq '.adapters[] | select(.atWork | not)'

      Run it in the terminal concerned. It needs no broker.
      """
  )

  @OptionGroup var options: CommonOptions

  func run() async throws {
    guard let runtime = Terminal.variable("XDG_RUNTIME_DIR") else {
      throw Failure(
        ExitStatus.usage,
        kind: "usage",
        "XDG_RUNTIME_DIR is not set, so nothing in this terminal is saved",
        hint: "Log in as this user: su and sudo do not set it."
      )
    }
    let adapters = TerminalAdapter.all(
      tmux: Terminal.variable("TMUX"),
      folder: "\(runtime)/restoration-terminal"
    )
    let document = PrintedObject { $0.member("adapters", adapters) }
    try output.show(document, or: Self.text(adapters, hidesLegend: legend.hidesLegend))
  }

  private static func text(_ adapters: [TerminalAdapter], hidesLegend: Bool) -> String {
    var table = TextTable([
      TextTable.Column("ADAPTER"), TextTable.Column("PID", .right), TextTable.Column("AT WORK"),
      TextTable.Column("OBJECT", minimum: 16),
    ])
    for adapter in adapters {
      let object = adapter.object.map { "\(adapter.kind.application) \($0)" }
      table.add([adapter.kind.name, String(adapter.pid), adapter.isAtWork ? "yes" : "no", object ?? "-"])
    }
    let troubles = adapters.flatMap { adapter in
      adapter.troubles.map { "\(adapter.kind.name): \($0).".printable + "\n" }
    }
    guard !hidesLegend else { return table.text(header: false) + troubles.joined() }
    let editors = "Editors tell it themselves: :RestorationStatus, in Emacs M-x restoration-status.\n"
    let shells = adapters.isEmpty ? "There is neither tmux nor Bash, zsh or fish around this command.\n\n" : ""
    let list = adapters.isEmpty ? "" : table.text(header: true) + "\n"
    return list + shells + (troubles.isEmpty ? "" : troubles.joined() + "\n") + editors
  }
}

extension TerminalAdapter: JSONWritable {
  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("adapter", kind.rawValue)
      writer.member("pid", Int(pid))
      writer.member("atWork", isAtWork)
      writer.member("application", kind.application)
      writer.member("object", object)
      writer.member("troubles", troubles)
    }
  }
}
