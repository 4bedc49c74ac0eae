// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser

/// Commands by what people want to do, in the order of the tool's help and of its manual page.
struct CommandGroup {
  struct Row {
    let commands: [any ParsableCommand.Type]
    let meaning: String

    init(_ commands: any ParsableCommand.Type..., meaning: String) {
      (self.commands, self.meaning) = (commands, meaning)
    }

    var names: String { commands.compactMap { $0.configuration.commandName }.joined(separator: ", ") }
  }

  let title: String
  let rows: [Row]

  static var commands: [any ParsableCommand.Type] { all.flatMap(\.rows).flatMap(\.commands) }

  private static var all: [CommandGroup] { [look, change, goBack, service] }

  private static var look: CommandGroup {
    CommandGroup(
      title: "Look",
      rows: [
        Row(StatusCommand.self, DoctorCommand.self, meaning: "the state of the broker; problems around it"),
        Row(ListCommand.self, TreeCommand.self, meaning: "applications; the objects of one, in all processes"),
        Row(ShowCommand.self, GetCommand.self, meaning: "an object with its state; one value of the state"),
        Row(ExplainCommand.self, meaning: "why an object was restored, or was not"),
        Row(HistoryCommand.self, DiffCommand.self, meaning: "generations; differences between two of them"),
        Row(
          MonitorCommand.self,
          TopCommand.self,
          MetricsCommand.self,
          meaning: "events; activity; figures for Prometheus"
        ),
        Row(InspectCommand.self, meaning: "an application, as a page for a browser"),
      ]
    )
  }

  private static var change: CommandGroup {
    CommandGroup(
      title: "Change",
      rows: [
        Row(
          PutCommand.self,
          EditCommand.self,
          RemoveCommand.self,
          meaning: "store, edit or remove a state, or one value"
        ),
        Row(SaveCommand.self, RestoreCommand.self, meaning: "save or restore an application, in all processes"),
        Row(DiscardCommand.self, ForgetCommand.self, meaning: "drop saved states; drop objects and applications"),
      ]
    )
  }

  private static var goBack: CommandGroup {
    CommandGroup(
      title: "Go back",
      rows: [
        Row(RollbackCommand.self, ReopenCommand.self, meaning: "return to a generation; reopen closed objects"),
        Row(QuarantineCommand.self, meaning: "states that are withheld after crashes"),
        Row(BackupCommand.self, VerifyCommand.self, meaning: "copy an archive; check all that it holds"),
        Row(ExportCommand.self, ImportCommand.self, meaning: "saved state, as a document"),
      ]
    )
  }

  private static var service: CommandGroup {
    CommandGroup(
      title: "Service",
      rows: [
        Row(
          RunCommand.self,
          LoginCommand.self,
          TerminalCommand.self,
          meaning: "programs that come back, at login too; shells, editors"
        ),
        Row(StoreCommand.self, TakeOverCommand.self, meaning: "archives shared by hosts; take one from another"),
        Row(SandboxCommand.self, meaning: "a socket for a sandbox"),
        Row(MethodsCommand.self, CallCommand.self, meaning: "the methods of the protocol; call any of them"),
      ]
    )
  }

  private var text: String {
    rows.reduce("\(title):\n") { text, row in
      text + "  \(row.names)" + String(repeating: " ", count: 24 - row.names.count) + row.meaning + "\n"
    }
  }

  /// The help of the tool: one screen.
  static let help = """
    OVERVIEW: \(Control.configuration.abstract)

    USAGE: \(Control.configuration.usage ?? "")

    \(all.map(\.text).joined(separator: "\n"))
    Options, before or after the command:
      --socket <path>         the broker's socket (or $RESTORATIOND_SOCKET)
      --timeout <seconds>     give up then, with status 75
      -j or --json <form>     JSON in the usual form; short, pretty or off
      -q, --quiet             no message if everything was done
      --full, --no-pager, --no-legend, --version, -h: see restorationctl(1)

    Exit status: 0 done, 1 refused or not all done, 3 no broker, 4 nothing there,
    64 command line, 69 connection, 74 output, 75 try again.
    restorationctl help <command> shows its options, with examples.

    """
}
