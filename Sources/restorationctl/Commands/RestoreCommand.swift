// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient

struct RestoreCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Restore an application now, across all its processes.",
    usage: "restorationctl restore [<option> ...] <application> [<path> ...]",
    discussion: """
      Examples:
        restorationctl restore org.example.Notes
        restorationctl restore org.example.Notes --deadline 30
        restorationctl restore org.example.Notes Main/Editor
        restorationctl restore org.example.Notes -j | jq .absent

      With paths, only these objects and all below them are restored. Objects
      that were restored in this run are skipped. Objects that are not registered
      by the deadline are listed as absent. Exit status 1 means that nothing was
      restored, or that a unit could not be started. The JSON is the result of
      restoreApplicationState.
      """
  )

  @OptionGroup var options: ApplicationOptions

  @Option(
    help: ArgumentHelp("Deadline in seconds (default: 10).", valueName: "seconds"),
    transform: Seconds.read
  )
  var deadline: Seconds?

  @Argument(
    help: ArgumentHelp("Objects to restore, with all below them: Main/Editor.", valueName: "path"),
    completion: .paths,
    transform: IdentifierPath.read
  )
  var paths: [IdentifierPath] = []

  func run() async throws {
    try await withBroker { broker in
      let result = try await ProgressLine.during("restoring") { progress in
        let call = RestoreApplicationState(
          deadlineMilliseconds: deadline?.milliseconds,
          objects: paths.isEmpty ? nil : paths.map { .path($0) }
        )
        return try await broker.call(call, of: application, progress: progress)
      }
      let isFruitless = result.restored.isEmpty && !result.skipped.contains(where: Self.isLeftToOwner)
      let isDone = !isFruitless && result.failedUnits.isEmpty
      if output.says(isDone: isDone) { try output.show(result, or: text(of: result)) }
      Self.complain(of: result, application)
      if !isDone { throw ExitStatus.refused }
    }
  }

  static func complain(of result: RestoreResult, _ application: String) {
    for failed in result.failedUnits {
      let message = "\(application): unit \(failed.unit) was not started: \(failed.message)"
      Output.complain(message.printable)
    }
  }

  /// The owner lives and fetches its states itself.
  private static func isLeftToOwner(_ skipped: SkippedObject) -> Bool {
    RestoreApplicationState.Reason(rawValue: skipped.reason) == .notServed
  }

  static func summary(of result: RestoreResult, _ application: String) -> String {
    if result.declined { return "\(application) declined to be restored.\n" }
    if result.restored.isEmpty, result.skipped.isEmpty, result.absent.isEmpty {
      return "Nothing of \(application) was left to be restored.\n"
    }
    let left = result.skipped.count(where: isLeftToOwner)
    let counts =
      "\(Quantity.count(result.restored.count, "object")) restored, "
      + (left > 0 ? "\(left) left to \(left == 1 ? "its owner" : "their owners"), " : "")
      + "\(result.skipped.count - left) left out, \(result.absent.count) absent"
    return "\(application): \(counts), in \(result.milliseconds) ms.\n"
  }

  private func text(of result: RestoreResult) -> String {
    var text = Self.summary(of: result, application)
    if result.declined { return text }
    if let omitted = result.omitted { text += "\(omitted) more are not listed.\n" }
    guard !result.skipped.isEmpty || !result.absent.isEmpty else { return text }
    var table = TextTable([TextTable.Column("NOT RESTORED"), TextTable.Column("WHY", minimum: nil)])
    for skipped in result.skipped { table.add([skipped.path.description, skipped.sentence]) }
    for path in result.absent { table.add([path.description, RestoringStep.absent.description]) }
    text += "\n" + table.text(header: !legend.hidesLegend)
    if !legend.hidesLegend { text += "\nrestorationctl explain \(application) <path> says more.\n" }
    return text
  }
}
