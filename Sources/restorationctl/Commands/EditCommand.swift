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

  @OptionGroup var options: ValueOptions

  @Flag(help: "Edit the state of a confidential object.")
  var reveal = false

  func run() async throws {
    try Failure.checkChangeable(application)
    let edit = StateEdit(application: application, path: path)
    var former = (text: "", sequence: Int64(0), archive: nil as String?)
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
        // Numbers of changes begin again with a new archive.
        if former.sequence > 0, try await edit.requireNoOwner(broker) != former.archive {
          throw edit.changed("\(application) was forgotten meanwhile")
        }
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

  private func read(
    _ edit: StateEdit,
    _ broker: BrokerConnection
  ) async throws -> (text: String, sequence: Int64, archive: String?) {
    let archive = try await edit.requireNoOwner(broker)
    let (state, sequence) = try await edit.show(broker, reveal: reveal)
    var text = state?.compactText.string ?? "{}"
    if let pointer {
      guard let state else { throw try await edit.absent(broker) }
      guard let value = pointer.value(in: state) else {
        throw pointer.notFound(in: state, of: path, namesKeys: true)
      }
      text = value.compactText.string
    }
    return (PrettyJSON.lay(out: text) + "\n", sequence, archive)
  }

  /// How to store the text after all.
  private func hint(for failure: Failure, _ draft: Draft, _ sequence: Int64) -> String {
    let words = [application, path.description] + (pointer.map { ["\($0)"] } ?? [])
    let place = words.map(\.shellWord).joined(separator: " ")
    let isReplaced = failure.code == ErrorCode.stateChanged.rawValue
    let step =
      isReplaced
      ? "restorationctl get \(place) shows the other one."
      : failure.status == ExitStatus.usage ? "Correct it there." : failure.hint ?? ""
    let expected = isReplaced ? "" : " --expecting \(sequence)"
    let put = "restorationctl put \(place)\(expected) - <\(draft.path.shellWord)"
    return "Your text is in \(draft.path). \(step) To store it: \(put)"
  }
}
