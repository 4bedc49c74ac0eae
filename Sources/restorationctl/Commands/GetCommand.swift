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

      The pointer is keys and indices, each after a slash (RFC 6901). The value is
      JSON: pretty on a terminal, on one line in a pipe. -r prints a string as it
      is. Exit status 4 means that the object, state or value is missing. If the
      state is withheld from the program, a message says so.
      """
  )

  @OptionGroup var options: ApplicationOptions

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

  @Argument(help: "The object's path: Main/Editor.", completion: .paths, transform: IdentifierPath.read)
  var path: IdentifierPath

  @Argument(help: "The JSON pointer to one value: /scroll.", transform: StatePointer.read)
  var pointer: StatePointer?

  func validate() throws {
    if isRaw, output.layout != nil { throw ValidationError("-r prints text, not JSON: leave out -j and --json") }
  }

  func run() async throws {
    try await withBroker { broker in
      let pointer = pointer ?? .whole
      let state = try await state(broker)
      guard let value = pointer.value(in: state) else {
        throw pointer.notFound(in: state, of: path, namesKeys: true)
      }
      if isRaw, let string = value.string() {
        try Output.show((Terminal.isOutput ? string.printable : string) + "\n")
      } else {
        try (output.layout ?? OutputOptions.usualLayout).show(value.compactText.string)
      }
    }
  }

  private func state(_ broker: BrokerConnection) async throws -> JSONSlice {
    let edit = StateEdit(application: application, path: path)
    let isSecret: Bool
    let state: JSONSlice?
    if let generation {
      let saved = try await broker.object(at: path, in: generation, of: application, reveal: reveal)
      isSecret = saved.redacted
      state = try saved.state.map { try JSONSlice.read(sent: $0.jsonText, subject: "the state") }
    } else {
      let decoded = try await edit.read(broker)
      isSecret = decoded?.isConfidential == true && !reveal
      state = try isSecret ? nil : edit.content(of: decoded)
      if decoded?.isWithheld == true {
        let command = path.releaseCommand(of: application)
        let text = "\(path) is withheld from its program, which failed of it; to give it back: \(command)"
        Output.complain(text.printable)
      }
    }
    if isSecret {
      var failure = edit.failure("confidential", "\(path) is confidential")
      failure.hint = "--reveal prints it."
      throw failure
    }
    guard let state else { throw try await edit.absent(broker) }
    return state
  }
}
