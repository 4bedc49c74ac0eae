// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient
internal import RestorationWire

struct LoginCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "login",
    abstract: "Restore the applications that were running when the user logged out.",
    usage: "restorationctl login [<option> ...]",
    discussion: """
      Examples:
        restorationctl login
        restorationctl login --deadline 120
        restorationctl login -j | jq '.applications[] | select(.error)'

      Applies to applications that have saved state, no live session and units that
      start their processes. The broker's setting restoreAtLogin decides for each:
      always restores it, ask asks by a desktop notification, never does nothing. If
      no desktop can ask, standard error says how to restore it by hand. Exit status
      1 means that an application could not be restored, or one of its units could
      not be started; the others are restored anyway.
      """
  )

  @OptionGroup var options: CommonOptions

  @Option(
    help: ArgumentHelp("Time limit of each application in seconds (default: 60).", valueName: "seconds"),
    transform: Seconds.read
  )
  var deadline: Seconds?

  func run() async throws {
    try await withBroker { broker in
      let outcomes = try await bringBack(broker)
      for case (let application, .success(let result)?) in outcomes.map({ ($0.application, $0.result) }) {
        RestoreCommand.complain(of: result, application)
      }
      // As text, each outcome was printed at once.
      try output.layout?.print(PrintedObject { $0.member("applications", outcomes) })
      if outcomes.contains(where: \.hasFailed) { throw ExitStatus.refused }
    }
  }

  /// Further questions follow when these are answered.
  private static let questionsMax = 4

  private func bringBack(_ broker: BrokerConnection) async throws -> [Outcome] {
    let applications = try await broker.call(ListApplications()).applications.filter { application in
      application.state == .available && application.sessions == 0 && !application.units.isEmpty
        && application.restoreAtLogin != .never && application.host == nil
    }
    let deadline = deadline?.milliseconds ?? 60_000
    return try await withThrowingTaskGroup(of: Outcome.self) { group in
      func bringBack(_ application: ApplicationOverview) {
        group.addTask { try await Self.bringBack(application, within: deadline, broker) }
      }
      // Applications that are always restored do not wait for answers about others.
      for application in applications where application.restoreAtLogin == .always { bringBack(application) }
      let questions = applications.filter { $0.restoreAtLogin != .always }
      let asked = Set(questions.map(\.application.description))
      var next = questions.prefix(Self.questionsMax).endIndex
      for application in questions[..<next] { bringBack(application) }
      var outcomes: [Outcome] = []
      while let outcome = try await group.next() {
        outcomes.append(outcome)
        if output.layout == nil, output.says(isDone: !outcome.hasFailed) { try Output.print(outcome.text) }
        guard asked.contains(outcome.application), next < questions.endIndex else { continue }
        bringBack(questions[next])
        next += 1
      }
      return outcomes.sorted { $0.application < $1.application }
    }
  }

  private static func bringBack(
    _ summary: ApplicationOverview,
    within deadline: Int64,
    _ broker: BrokerConnection
  ) async throws -> Outcome {
    let application = summary.application.description
    if summary.restoreAtLogin != .always {
      switch await DesktopQuestion.restore(application).answer() {
      case .yes: break
      case .no: return Outcome(application: application, result: nil)
      case .impossible:
        Output.complain("\(application) can be restored: restorationctl restore \(application)")
        return Outcome(application: application, result: nil)
      }
    }
    do {
      return Outcome(
        application: application,
        result: .success(
          try await broker.call(RestoreApplicationState(deadlineMilliseconds: deadline), of: application)
        )
      )
    } catch let error as RestorationError {
      return Outcome(application: application, result: .failure(Failure(error)))
    }
  }

  private typealias Outcome = ApplicationOutcome<RestoreResult>
}

extension ApplicationOutcome<RestoreResult> {
  fileprivate var hasFailed: Bool {
    switch result {
    case .success(let result): !result.failedUnits.isEmpty
    case .failure: true
    case nil: false
    }
  }

  fileprivate var text: String {
    switch result {
    case .success(let result): RestoreCommand.summary(of: result, application)
    case .failure(let failure): "\(application) was not restored: \(failure.message)".printable + "\n"
    case nil: ""
    }
  }
}
