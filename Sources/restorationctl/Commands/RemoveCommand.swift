// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

struct RemoveCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "rm",
    abstract: "Remove one value of a state, or an object with its state.",
    usage: "restorationctl rm [<option> ...] <application> <path> [<pointer>]",
    discussion: """
      Examples:
        restorationctl rm org.example.Notes Main/Editor /scroll
        restorationctl rm org.example.Notes Main/Editor /tabs/0
        restorationctl rm org.example.Notes Main/Editor

      With a pointer (RFC 6901), only that value is removed, and other writes are
      kept. Without one, the object is removed, if no process has it and nothing is
      below it; generations keep it. forget removes whole subtrees. Exit status 4
      means that the object, state or value is missing. --dry-run only looks.
      """
  )

  @OptionGroup var options: ValueOptions

  @OptionGroup var trial: DryRunOptions

  func validate() throws {
    if pointer?.isWhole == true { throw StatePointer.superfluous }
  }

  func run() async throws {
    try Failure.checkChangeable(application)
    try await withBroker { broker in
      guard let pointer else { return try await remove(broker) }
      let edit = StateEdit(application: application, path: path)
      guard !trial.isDry else { return try await preview(edit, pointer, broker) }
      let edited = try await edit.perform(broker, at: pointer, nil)
      try output.confirm(edited, or: edited.text)
    }
  }

  private func preview(_ edit: StateEdit, _ pointer: StatePointer, _ broker: BrokerConnection) async throws {
    let (value, isSecret) = try await edit.removed(broker, at: pointer)
    let document = PrintedObject { writer in
      writer.member("application", application)
      writer.member("path", path)
      writer.member("dryRun", true)
    }
    let what = "\(pointer) of \(path) of \(application)"
    try output.confirm(document, or: "Would remove \(what): \(isSecret ? "(confidential)" : value.brief).")
  }

  private func remove(_ broker: BrokerConnection) async throws {
    let objects = try await broker.describeApplication(application).objects
    guard let object = objects.first(where: { $0.path == path }) else {
      throw path.notFound(among: objects.compactMap(\.path), in: application)
    }
    let edit = StateEdit(application: application, path: path)
    let inside = objects.filter { $0.path?.components.starts(with: path.components) == true }
    guard inside.count == 1 else {
      var failure = edit.failure("notEmpty", "\(path) has \(Quantity.count(inside.count - 1, "object")) below it")
      // Live objects can be removed by their own session only.
      let live = inside.first { $0.pid != nil }.map { "End process \($0.pid ?? 0), which has \($0.path ?? path). " }
      let words = [application, path.description].map(\.shellWord).joined(separator: " ")
      failure.hint = "\(live ?? "")restorationctl forget \(words) removes all of them."
      throw failure
    }
    do {
      if trial.isDry {
        try edit.requireNoOwner(object)
      } else {
        try await broker.call(UnregisterObject(object: .path(path)), of: application)
      }
    } catch let error as RestorationError where error.code == .notOwner {
      throw edit.live(error)
    }
    let removed = PrintedObject { writer in
      writer.member("application", application)
      writer.member("path", path)
      writer.member("bytes", object.bytes)
      writer.member("dryRun", ifTrue: trial.isDry)
    }
    let text = "\(trial.isDry ? "Would remove" : "Removed") \(path) of \(application): \(Quantity.bytes(object.bytes))."
    try output.confirm(removed, or: text)
  }
}
