// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient

/// `restorationctl restore`
struct RestoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Have an application restored now, over all its processes.",
    usage: "restorationctl restore [<option> ...] <application>",
    discussion: """
      Examples:
        restorationctl restore org.example.Notes
        restorationctl restore org.example.Notes --deadline 30
        restorationctl restore org.example.Notes -j | jq .absent

      Objects that have got their state back in this run are left alone. What nobody
      registers by the deadline is listed as absent. Exit status 1 says that the
      application did not want to be restored, or that a unit of it could not be
      started. In JSON it is the result of restoreApplicationState.
      """
  )

  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var legend: LegendOptions

  @Option(help: ArgumentHelp("How long it may take; else 10 seconds.", valueName: "seconds"))
  var deadline: Seconds?

  @Argument(help: "The application, with its instance where it has one.")
  var application: String

  func run() async throws {
    var isDone = true
    try await connection.run { broker in
      let result = try await ProgressLine.during("restoring") { progress in
        try await broker.restoreApplicationState(of: application, deadline: deadline?.duration, progress: progress)
      }
      isDone = !result.declined && result.failedUnits.isEmpty
      if let layout = output.layout {
        try layout.print(Self.json(of: result))
      } else {
        try Output.show(text(of: result))
      }
      Self.complain(of: result, application)
    }
    if !isDone { throw ExitStatus.refused }
  }

  /// Names the units that could not be started.
  static func complain(of result: RestoreResult, _ application: String) {
    for failed in result.failedUnits {
      let message = "\(application): unit \(failed.unit) was not started: \(failed.message)"
      Output.complain(message.printable)
    }
  }

  /// What came of it in one line.
  static func summary(of result: RestoreResult, _ application: String) -> String {
    if result.declined { return "\(application) did not want to be restored.\n" }
    let counts =
      "\(Quantity.count(result.restored.count, "object")) restored, \(result.skipped.count) left out, "
      + "\(result.absent.count) absent"
    return "\(application): \(counts), in \(Int64(result.duration / .milliseconds(1))) ms.\n"
  }

  private func text(of result: RestoreResult) -> String {
    var text = Self.summary(of: result, application)
    if result.declined { return text }
    if let omitted = result.omitted { text += "\(omitted) more are not listed.\n" }
    guard !result.skipped.isEmpty || !result.absent.isEmpty else { return text }
    var table = TextTable([TextTable.Column("NOT RESTORED"), TextTable.Column("WHY", minimum: nil)])
    for skipped in result.skipped {
      let why = skipped.reason + (skipped.message.map { ": \($0)" } ?? "")
      table.add([skipped.path.joined(separator: "/"), why])
    }
    for path in result.absent { table.add([path.joined(separator: "/"), "absent"]) }
    text += "\n" + table.text(header: !legend.hidesLegend)
    if !legend.hidesLegend { text += "\nrestorationctl explain \(application) <path> says more.\n" }
    return text
  }

  static func json(of result: RestoreResult) -> String {
    var members = JSONMembers()
    members.add("restored", text: JSONMembers.array(result.restored.map(JSONMembers.path)))
    members.add("skipped", text: JSONMembers.array(result.skipped.map(json)))
    members.add("absent", text: JSONMembers.array(result.absent.map(JSONMembers.path)))
    if result.declined { members.add("declined", true) }
    if let omitted = result.omitted { members.add("omitted", omitted) }
    if !result.failedUnits.isEmpty {
      members.add("failedUnits", text: JSONMembers.array(result.failedUnits.map(json)))
    }
    members.add("milliseconds", Int64(result.duration / .milliseconds(1)))
    return members.text
  }

  private static func json(of failed: RestoreResult.FailedUnit) -> String {
    var members = JSONMembers()
    members.add("unit", failed.unit)
    members.add("message", failed.message)
    return members.text
  }

  private static func json(of skipped: RestoreResult.Skipped) -> String {
    var members = JSONMembers()
    members.add("path", skipped.path)
    members.add("reason", skipped.reason)
    if let message = skipped.message { members.add("message", message) }
    return members.text
  }
}
