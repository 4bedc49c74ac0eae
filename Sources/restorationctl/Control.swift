// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import RestorationClient

/// The control tool: asks a running broker and shows its answers.
@main
struct Control: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "restorationctl",
    abstract: "Inspect and control the broker that keeps the state of applications.",
    usage: "restorationctl [<option> ...] <command>",
    discussion: """
      Examples:
        restorationctl list
        restorationctl tree org.example.Notes
        restorationctl show org.example.Notes Main/Editor
        restorationctl get org.example.Notes Main/Editor /scroll
        restorationctl explain org.example.Notes Main/Editor
        restorationctl monitor org.example.Notes
        restorationctl -j history org.example.Notes | jq .
        restorationctl --socket /tmp/r/broker.sock status

      The socket is --socket, or $RESTORATIOND_SOCKET, or
      $XDG_RUNTIME_DIR/restorationd/broker.sock. All options may stand before
      or after the command.

      Data goes to standard output, messages to standard error. With -j or
      --json an error is also printed as {"error":{...}} on standard output.
      Colours are for terminals only; NO_COLOR and TERM=dumb turn them off.
      Long output goes to $RESTORATIOND_PAGER, $PAGER or less.

      Exit status:
         0  done
         1  the broker answered with an error, you declined, or not all was done
         3  no broker is running
         4  unknown application, object or generation
        64  the command line is invalid
        69  a broker is running and the connection to it failed
        74  the output could not be written
        75  not done, try again: --timeout is over, or the broker is busy
      """,
    version: BrokerConnection.version,
    subcommands: [
      StatusCommand.self, ListCommand.self, TreeCommand.self, ShowCommand.self, GetCommand.self,
      PutCommand.self, RemoveCommand.self, ExplainCommand.self, InspectCommand.self, HistoryCommand.self,
      DiffCommand.self, MonitorCommand.self, TopCommand.self, MetricsCommand.self, SaveCommand.self,
      RestoreCommand.self, LoginCommand.self, RollbackCommand.self, VerifyCommand.self, BackupCommand.self,
      ExportCommand.self, ImportCommand.self, DiscardCommand.self, ForgetCommand.self, ReopenCommand.self,
      QuarantineCommand.self, StoreCommand.self, SandboxCommand.self, RunCommand.self, TerminalCommand.self,
      MethodsCommand.self, CallCommand.self,
    ]
  )

  @OptionGroup var options: CommonOptions

  /// On the main actor, so that it runs before the runtime opens descriptors of its own.
  @MainActor
  static func main() async {
    StandardStreams.reserve()
    // A pipe without a reader becomes a write error, like a full disk.
    signal(SIGPIPE, SIG_IGN)
    do {
      try checkWords()
      var command = try await asyncParseAsRoot()
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
    } catch let failure as Failure {
      failure.report()
      exit(withError: failure.status)
    } catch {
      if let script = CompletionScript.completed(message(for: error)) {
        Output.write(script, to: .data)
        exit(withError: ExitCode.success)
      }
      end(UnknownCommand.error(error, CommandLine.arguments) ?? error)
    }
  }

  /// Invalid UTF-8 was replaced at the start, so it would name another object or store another text.
  private static func checkWords() throws {
    guard let word = CommandLine.arguments.dropFirst().first(where: { $0.unicodeScalars.contains("\u{fffd}") }) else {
      return
    }
    throw Failure(
      ExitStatus.usage,
      kind: "usage",
      "'\(word)' is not UTF-8",
      hint: "Give a file or a program a link without such bytes; a state may come from standard input, in UTF-8."
    )
  }

  /// Reports an error as the parser does, without words that would control the terminal.
  private static func end(_ error: any Error) -> Never {
    let status = exitCode(for: error)
    guard !status.isSuccess else { exit(withError: error) }
    let lines = fullMessage(for: error).split(separator: "\n", omittingEmptySubsequences: false)
    let text = lines.map { String($0).printable }.joined(separator: "\n")
    if !text.isEmpty { Output.write(text + "\n", to: .messages) }
    exit(withError: status)
  }
}
