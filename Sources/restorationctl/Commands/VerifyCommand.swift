// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient

struct VerifyCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Check all stored states of an application.",
    usage: "restorationctl verify [<option> ...] (<application> | --all)",
    discussion: """
      Examples:
        restorationctl verify org.example.Notes
        restorationctl verify org.example.Notes -j
        restorationctl verify --all

      It changes nothing, and applications can run meanwhile. Exit status 1 means
      that there are problems, which are listed. The JSON is the result of the
      method verifyArchive; with --all it is
      {"applications":[{"application":...,"result":...}]}, or "error" instead.
      """
  )

  @OptionGroup var options: SomeApplicationsOptions

  func run() async throws {
    try await withBroker { broker in
      guard let application = options.application else { return try await verifyAll(broker) }
      let found = try await ProgressLine.during("verifying") { progress in
        try await broker.call(VerifyArchive(), of: application, progress: progress)
      }
      if output.says(isDone: found.sound) { try output.show(found, or: text(of: found, application)) }
      if !found.sound { throw ExitStatus.refused }
    }
  }

  private func verifyAll(_ broker: BrokerConnection) async throws {
    let outcomes = try await broker.forAll(output) { application in
      try await broker.call(VerifyArchive(), of: application)
    } report: { application, found in
      if output.says(isDone: found.sound) { try Output.print(text(of: found, application)) }
    }
    if !outcomes.allSatisfy({ (try? $0.result?.get().sound) == true }) { throw ExitStatus.refused }
  }

  private func text(of found: ArchiveVerification, _ application: String) -> String {
    let objects = Quantity.count(found.objects, "object")
    let states = Quantity.count(found.states, "state")
    let checked = "\(objects), \(states), \(Quantity.bytes(found.bytes))"
    if found.sound { return "\(application) is sound: \(checked).\n" }
    var table = TextTable([
      TextTable.Column("KIND", minimum: nil), TextTable.Column("GENERATION", .right), TextTable.Column("PATH"),
      TextTable.Column("PROBLEM", minimum: nil),
    ])
    for problem in found.problems {
      table.add([
        problem.kind,
        problem.generation.map { String($0) } ?? "-",
        problem.path?.description ?? "-",
        problem.message,
      ])
    }
    let problems = Quantity.count(found.problems.count + Int(clamping: found.omitted ?? 0), "problem")
    let summary = "\n\(application) is not sound: \(problems); \(checked).\n"
    return table.text(header: !legend.hidesLegend) + (legend.hidesLegend ? "" : summary)
  }
}
