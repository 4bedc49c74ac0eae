// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

struct EditCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "edit",
    abstract: "Edit the state of an object, or one value of it, in $EDITOR.",
    usage: "restorationctl edit [<option> ...] <application> <path> [<pointer>]",
    discussion: """
      Examples:
        restorationctl edit org.example.Notes Main/Editor
        restorationctl edit org.example.Notes Main/Editor /tabs
        EDITOR='code --wait' restorationctl edit org.example.Notes Main/Editor

      The text is JSON. When the editor ends with status 0, a changed text is
      stored. $VISUAL goes before $EDITOR; without both, editor is run.

      If another process has written the state meanwhile, nothing is stored. If
      the text cannot be stored, its file stays, and a message names it.
      """
  )

  @OptionGroup var options: ApplicationOptions

  @Flag(help: "Edit the state of a confidential object.")
  var reveal = false

  @Argument(help: "The object's path: Main/Editor.", completion: .paths, transform: IdentifierPath.read)
  var path: IdentifierPath

  @Argument(
    help: "The JSON pointer to one value: /scroll.",
    completion: .pointers,
    transform: StatePointer.read
  )
  var pointer: StatePointer?

  func run() async throws {
    let edit = StateEdit(application: application, path: path)
    var former = (text: "", sequence: Int64(0))
    try await withBroker { former = try await read(edit, $0) }
    let draft = try Draft(former.text)
    let text = try draft.edited()
    guard text != former.text else {
      draft.remove()
      return try output.confirm(PrintedObject { $0.member("changed", false) }, or: "Nothing was changed.")
    }
    do {
      let value = try JSONSlice.read(text, subject: "the edited text", hint: "")
      if pointer == nil { try StateEdit.checkWhole(value) }
      // The broker may have been started again meanwhile.
      try await withBroker { broker in
        let at = pointer ?? .whole
        let edited = try await edit.perform(broker, at: at, value.compactText, expecting: former.sequence)
        draft.remove()
        try output.confirm(edited, or: edited.text)
      }
    } catch var failure as Failure where draft.isThere {
      failure.hint = hint(for: failure, draft, former.sequence)
      throw failure
    }
  }

  private func read(_ edit: StateEdit, _ broker: BrokerConnection) async throws -> (text: String, sequence: Int64) {
    try await edit.requireNoOwner(broker)
    let (state, sequence) = try await edit.show(broker, reveal: reveal)
    guard let pointer else { return (PrettyJSON.lay(out: state?.compactText.string ?? "{}") + "\n", sequence) }
    guard let state else { throw try await edit.absent(broker) }
    guard let value = pointer.value(in: state) else {
      throw pointer.notFound(in: state, of: path, namesKeys: true)
    }
    return (PrettyJSON.lay(out: value.compactText.string) + "\n", sequence)
  }

  /// How to store the text after all.
  private func hint(for failure: Failure, _ draft: Draft, _ sequence: Int64) -> String {
    let words = [application, path.description] + (pointer.map { ["\($0)"] } ?? [])
    let place = words.map(\.commandWord).joined(separator: " ")
    let isReplaced = failure.code == ErrorCode.stateChanged.rawValue
    let step =
      isReplaced
      ? "restorationctl get \(place) shows the other one."
      : failure.status == ExitStatus.usage ? "Correct it there." : failure.hint ?? ""
    let expected = isReplaced ? "" : " --expecting \(sequence)"
    let put = "restorationctl put \(place)\(expected) - <\(draft.path.commandWord)"
    return "Your text is in \(draft.path). \(step) To store it: \(put)"
  }
}
