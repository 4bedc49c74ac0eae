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
        restorationctl put org.example.Notes Main/Editor /title -r -- -draft-
        restorationctl put org.example.Notes Main/Editor - < state.json

      The value is JSON, with -r a string as it is; - reads it from standard
      input. With a pointer (RFC 6901), only that value changes, and other writes
      are kept. The last key may be new; /- is the end of an array. Without a
      pointer, the value is the whole state. After -- a value may begin with a
      hyphen.

      An unknown object is created. An object of a live process is not changed,
      because the process would replace the state by its own.
      """
  )

  @OptionGroup var options: ApplicationOptions

  @Flag(name: [.customShort("r"), .customLong("raw")], help: "The value is a string, not JSON.")
  var isRaw = false

  @Option(
    help: ArgumentHelp(
      "Write only if the object's last change has this number (0: if it has no state).",
      valueName: "number"
    )
  )
  var expecting: Int64?

  @Flag(help: "Take the application first from another host that has it.")
  var takeOver = false

  @Argument(help: "The object's path: Main/Editor.", completion: .paths, transform: IdentifierPath.read)
  var path: IdentifierPath

  /// A value that begins with a hyphen may be a number.
  @Argument(
    parsing: .allUnrecognized,
    help: ArgumentHelp("JSON pointer (optional), then the new value.", valueName: "json"),
    completion: .pointers
  )
  var words: [String]

  func validate() throws {
    if let expecting, expecting < 0 { throw ValidationError("'--expecting \(expecting)': changes are numbered from 1") }
    if let option = words.prefix(while: { $0 != "--" }).first(where: Self.isOption) {
      throw ValidationError("Unknown option '\(option)'; put -- before a value that begins with a hyphen")
    }
    if operands.isEmpty { throw ValidationError("Missing expected argument '<json>'") }
    if operands.count > 2 { throw ValidationError("Unexpected argument '\(operands[2])': quote the value") }
    if operands.count == 2, try pointer.isWhole { throw StatePointer.superfluous }
  }

  private static func isOption(_ word: String) -> Bool { word.hasPrefix("-") && word != "-" && Double(word) == nil }

  /// The operands, without the `--` that ends the options.
  private var operands: [String] {
    var operands = words
    if let index = operands.firstIndex(of: "--") { operands.remove(at: index) }
    return operands
  }

  private var pointer: StatePointer {
    get throws { operands.count == 2 ? try StatePointer.read(operands[0]) : .whole }
  }

  func run() async throws {
    let pointer = try pointer
    let value = try value()
    if pointer.isWhole { try StateEdit.checkWhole(value) }
    try await withBroker { broker in
      if takeOver { _ = try await broker.takeOver(application) }
      let edit = StateEdit(application: application, path: path)
      let edited = try await edit.perform(broker, at: pointer, value.compactText, expecting: expecting)
      try output.confirm(edited, or: edited.text)
      // The value is stored, even if this fails.
      if let unknown = edited.unknown, !output.isQuiet { try? await noteNew(unknown, broker) }
    }
  }

  private func value() throws -> JSONSlice {
    let word = operands.last ?? ""
    let isInput = word == "-" && !words.contains("--")
    var text = isInput ? try Output.readInput() : word
    if isRaw {
      // Removes one line feed, as a shell does.
      if isInput, text.hasSuffix("\n") { text.removeLast() }
      text = JSONText(.string(text)).string
    }
    return try JSONSlice.read(
      text,
      subject: isInput ? "standard input" : "the value",
      hint: #"Give JSON, such as 0.5, true or '"text"', or a string as it is with -r."#
    )
  }

  /// A misspelt name creates an application or an object.
  private func noteNew(_ unknown: ErrorCode, _ broker: BrokerConnection) async throws {
    let isObject = unknown == .unknownObject
    let name = isObject ? path.description : application
    let known =
      try await isObject ? broker.listPaths(of: application).map(\.description) : broker.applicationNames()
    Suggestion.noteNew(name, isObject ? " in \(application)" : "", known: known)
  }
}
