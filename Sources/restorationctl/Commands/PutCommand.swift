// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

struct PutCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "put",
    abstract: "Store the state of an object, or change one value of it.",
    usage: "restorationctl put [<option> ...] <application> <path> [<pointer>] <json>",
    discussion: """
      Examples:
        restorationctl put org.example.Notes Main/Editor /scroll 0.5
        restorationctl put org.example.Notes Main/Editor /title -r 'A day out'
        restorationctl put org.example.Notes Main/Editor /tabs/- '{"file":"a.txt"}'
        restorationctl put org.example.Notes Main/Editor - < state.json

      The value is JSON, with -r a string as it is; - reads it from standard
      input. With a pointer (RFC 6901), only that value changes: nothing is lost
      that somebody else writes meanwhile. The last key may be new; /- is the end
      of an array. Without a pointer, the value is the whole state.

      An object that is unknown is made. One that a live process has is not
      changed: that process would replace the state by its own.
      """
  )

  @OptionGroup var options: ApplicationOptions

  @Flag(name: [.customShort("r"), .customLong("raw")], help: "The value is a string, not JSON.")
  var isRaw = false

  @Option(
    help: ArgumentHelp(
      "Only if the newest state is that of this change; 0: only if there is none.",
      valueName: "number"
    )
  )
  var expecting: Int64?

  @Argument(help: "The object's path: Main/Editor.", completion: .paths, transform: IdentifierPath.read)
  var path: IdentifierPath

  /// What begins with a hyphen may be a number.
  @Argument(
    parsing: .allUnrecognized,
    help: ArgumentHelp("The place of the value, if it is not the whole state, and the value.", valueName: "json")
  )
  var words: [String]

  func validate() throws {
    if let option = words.first(where: { $0.hasPrefix("-") && $0 != "-" && Double($0) == nil }) {
      throw ValidationError("Unknown option '\(option)'")
    }
    if words.count > 2 { throw ValidationError("Unexpected argument '\(words[2])': quote the value") }
    _ = try pointer
  }

  private var pointer: StatePointer {
    get throws { words.count == 2 ? try StatePointer.read(words[0]) : .whole }
  }

  func run() async throws {
    let pointer = try pointer
    let value = try value()
    guard !pointer.description.isEmpty || value.kind == .object else {
      throw Self.wrong("a state is a JSON object, and this is none", "Give a pointer to change one value: /title.")
    }
    try await withBroker { broker in
      let edit = StateEdit(application: application, path: path)
      let edited = try await edit.perform(broker) { former in
        if let expecting, expecting != former?.sequence ?? 0 {
          throw edit.changed(since: expecting, former)
        }
        if pointer.description.isEmpty { return value.compactText }
        let state = try edit.content(of: former) ?? JSONSlice.read("{}", subject: "the state", hint: "")
        guard let text = pointer.edit(state, value.compactText) else {
          throw pointer.notFound(in: state, of: path, namesKeys: former?.isConfidential != true)
        }
        return text
      }
      try output.print(edited, or: edited.text.printable + "\n")
      if edited.isNew { try await noteNew(broker) }
    }
  }

  private func value() throws -> JSONSlice {
    let word = words.last ?? ""
    var text = word == "-" ? try Output.readInput() : word
    if isRaw {
      // A shell takes the last line feed away as well.
      if word == "-", text.hasSuffix("\n") { text.removeLast() }
      text = JSONText(.string(text)).string
    }
    return try JSONSlice.read(
      text,
      subject: word == "-" ? "standard input" : "the value",
      hint: #"Give JSON, such as 0.5, true or '"text"', or a string as it is with -r."#
    )
  }

  private static func wrong(_ message: String, _ hint: String) -> Failure {
    Failure(ExitStatus.usage, kind: "usage", message, hint: hint)
  }

  /// A path with a slip of the pen makes an object.
  private func noteNew(_ broker: BrokerConnection) async throws {
    let others = try await broker.describeApplication(application).objects.compactMap(\.path).filter { $0 != path }
    guard let near = Suggestion.nearest(to: path.description, in: others.map(\.description)) else { return }
    Output.complain("\(path) is new in \(application); did you mean \(near)?".printable)
  }
}

extension StateEdit {
  /// The failure if another state is expected than there is.
  fileprivate func changed(since expected: Int64, _ state: DecodedState?) -> Failure {
    var failure = failure("stateChanged", "\(path) has another state than that of change \(expected)")
    (failure.status, failure.code) = (ExitStatus.tryAgain, ErrorCode.stateChanged.rawValue)
    failure.hint = "Its newest is that of change \(state?.sequence ?? 0)."
    return failure
  }
}
