// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

struct GetCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Print the state of an object, or one value of it.",
    usage: "restorationctl get [<option> ...] <application> <path> [<pointer>]",
    discussion: """
      Examples:
        restorationctl get org.example.Notes Main/Editor
        restorationctl get org.example.Notes Main/Editor /scroll
        restorationctl get org.example.Notes Main/Editor /tabs/0/title -r
        restorationctl get org.example.Notes Main/Editor /scroll --watch

      The pointer is keys and indices, each after a slash (RFC 6901). The value is
      JSON: pretty on a terminal, on one line in a pipe. -r prints a string as it
      is. Exit status 4 means that the object, state or value is missing. If the
      state is withheld from the program, a message says so. With --watch an
      interrupt ends it with status 0, and the end of the broker with status 69.
      """
  )

  @OptionGroup var options: ValueOptions

  @Flag(name: [.customShort("r"), .customLong("raw")], help: "Print a string without quotes and escapes.")
  var isRaw = false

  @Option(
    help: ArgumentHelp("Read a generation instead of the head.", valueName: "number"),
    completion: .generations,
    transform: GenerationNumber.read
  )
  var generation: Int64?

  @Flag(help: "Print the state of a confidential object.")
  var reveal = false

  @Flag(help: "Print it again whenever it changes.")
  var watch = false

  func validate() throws {
    if isRaw, output.layout != nil { throw ValidationError("-r prints text, not JSON: leave out -j and --json") }
    if watch, generation != nil { throw ValidationError("--watch is for the head: generations do not change") }
  }

  func run() async throws {
    if watch { Interruption.endsTheTool() }
    try await withBroker { broker in
      guard watch else { return try Output.show(text(of: try await value(broker))) }
      var changes = try await broker.changes(of: application).makeAsyncIterator()
      var shown: JSONText?
      repeat {
        let value = try await value(broker)
        TimeLimit.isForWatching()
        if value.compactText != shown { try Output.print(text(of: value)) }
        shown = value.compactText
      } while try await changes.next() != nil
    }
  }

  private func text(of value: JSONSlice) -> String {
    let string = isRaw ? value.string().map { Terminal.isOutput ? $0.printable : $0 } : nil
    return (string ?? (output.layout ?? OutputOptions.usualLayout).lay(out: value.compactText.string)) + "\n"
  }

  private func value(_ broker: BrokerConnection) async throws -> JSONSlice {
    let pointer = pointer ?? .whole
    let state = try await state(broker)
    guard let value = pointer.value(in: state) else {
      throw pointer.notFound(in: state, of: path, namesKeys: true)
    }
    return value
  }

  private func state(_ broker: BrokerConnection) async throws -> JSONSlice {
    let edit = StateEdit(application: application, path: path)
    guard let generation else {
      guard let state = try await edit.show(broker, reveal: reveal).state else { throw try await edit.absent(broker) }
      return state
    }
    let saved = try await broker.object(at: path, in: generation, of: application, reveal: reveal)
    if saved.redacted { throw edit.confidential }
    guard let state = saved.state else { throw try await edit.absent(broker) }
    return try JSONSlice.read(sent: state.jsonText, subject: "the state")
  }
}
