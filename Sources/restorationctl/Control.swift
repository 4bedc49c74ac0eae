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
    version: BrokerConnection.version,
    subcommands: CommandGroup.commands
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
      let unknown = UnknownCommand.error(error, CommandLine.arguments)
      if unknown == nil, message(for: error) == helpMessage() {
        Output.write(CommandGroup.help, to: .data)
        exit(withError: ExitCode.success)
      }
      end(unknown ?? error)
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
