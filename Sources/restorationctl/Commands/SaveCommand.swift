// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient
internal import RestorationWire

struct SaveCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "save",
    abstract: "Save an application now, across all its processes.",
    usage: "restorationctl save [<option> ...] (<application> | --all)",
    discussion: """
      Examples:
        restorationctl save org.example.Notes
        restorationctl save org.example.Notes --deadline 2 --reason "before the upgrade"
        restorationctl save org.example.Notes -j | jq '.stale[].path'
        restorationctl save --all --reason logout

      All processes are asked for the states of their objects, and the answers become
      one generation. If a process does not answer in time, its objects keep the last
      saved state and are listed. Exit status 1 means that no generation was made
      although something has changed. The JSON is the result of
      saveApplicationState; with --all, for all applications with live sessions, it
      is {"applications":[{"application":...,"result":...}]}, or "error" instead.
      """
  )

  @OptionGroup var options: SomeApplicationsOptions

  @Option(
    help: ArgumentHelp("Deadline in seconds (default: 5).", valueName: "seconds"),
    transform: Seconds.read
  )
  var deadline: Seconds?

  @Option(help: ArgumentHelp("Why, for logs.", valueName: "text"))
  var reason: String?

  func run() async throws {
    guard let application = options.application else { return try await saveAll() }
    try await withBroker { broker in
      let result = try await ProgressLine.during("saving") { progress in
        try await broker.call(call, of: application, progress: progress)
      }
      if output.says(isDone: result.isSaved) { try output.show(result, or: text(of: result, application)) }
      if !result.isSaved { throw ExitStatus.refused }
    }
  }

  // MARK: All

  /// One application's failure does not prevent the others from being saved.
  private func saveAll() async throws {
    try await withBroker { broker in
      let applications = try await broker.call(ListApplications()).applications.filter { $0.sessions > 0 }
        .map(\.application.description)
      let results = try await save(applications, broker)
      let document = PrintedObject { $0.member("applications", results) }
      let failed = results.filter { (try? $0.result?.get().isSaved) != true }
      let said = output.says(isDone: true) ? results : failed
      try output.show(document, or: said.map { text(of: $0) }.joined())
      if !failed.isEmpty { throw ExitStatus.refused }
    }
  }

  private var call: SaveApplicationState {
    SaveApplicationState(reason: reason, deadlineMilliseconds: deadline?.milliseconds)
  }

  private typealias Outcome = ApplicationOutcome<SaveResult>

  private func save(_ applications: [String], _ broker: BrokerConnection) async throws -> [Outcome] {
    let call = call
    return try await withThrowingTaskGroup(of: Outcome.self) { group in
      for application in applications {
        group.addTask {
          try await Outcome(of: application) {
            try await broker.call(call, of: application)
          }
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }.sorted { $0.application < $1.application }
    }
  }

  private func text(of outcome: Outcome) -> String {
    switch outcome.result {
    case .success(let result): text(of: result, outcome.application)
    case .failure(let error): "\(outcome.application) was not saved: \(error.message)".printable + "\n"
    case nil: ""
    }
  }

  // MARK: For people

  private func text(of result: SaveResult, _ application: String) -> String {
    var text = summary(of: result, application) + "\n"
    if !result.stale.isEmpty {
      var table = TextTable([
        TextTable.Column("KEPT FROM THE LAST SAVE"), TextTable.Column("PROCESS"), TextTable.Column("PID", .right),
        TextTable.Column("WHY", minimum: nil),
      ])
      for stale in result.stale {
        table.add([
          Self.name(stale.path), stale.process ?? "-", stale.pid.map { String($0) } ?? "-",
          stale.why + (stale.message.map { ": \($0)" } ?? ""),
        ])
      }
      text += "\n" + table.text(header: !legend.hidesLegend)
    }
    if !result.excluded.isEmpty {
      var table = TextTable([
        TextTable.Column("LEFT OUT"), TextTable.Column("PROCESS"), TextTable.Column("PID", .right),
        TextTable.Column("BECAUSE OF"),
      ])
      for excluded in result.excluded {
        let pid = excluded.pid.map { String($0) } ?? "-"
        table.add([Self.name(excluded), excluded.process ?? "-", pid, Self.name(excluded.by, excluded.object)])
      }
      text += "\n" + table.text(header: !legend.hidesLegend)
    }
    return text
  }

  private func summary(of result: SaveResult, _ application: String) -> String {
    let generation = result.generation.map { "generation \($0)" }
    guard result.saved else {
      let newest = generation.map { "; the newest is \($0)" } ?? ""
      return switch result.reason.flatMap(SaveApplicationState.Obstacle.init) {
      case .unchanged: "Nothing has changed in \(application)\(newest)."
      case .declined: "\(application) declined to be saved\(newest)."
      case .restoring: "\(application) is being restored, which did not end in time\(newest)."
      case .interrupted: "The saved state of \(application) was replaced meanwhile\(newest)."
      case nil: "\(application) was not saved (\(result.reason ?? "no reason"))\(newest)."
      }
    }
    let size = "\(Quantity.count(result.objects, "state")), \(Quantity.bytes(result.bytes))"
    return "Saved \(application) as \(generation ?? "a generation"): \(size), in \(result.milliseconds) ms."
  }

  private static func name(_ path: [String]?) -> String {
    guard let path else { return "(no path)" }
    return path.isEmpty ? "(the application itself)" : path.joined(separator: "/")
  }

  private static func name(_ excluded: ExcludedObject) -> String {
    excluded.path?.description ?? "object \(excluded.object)"
  }

  private static func name(_ reference: ObjectReference, _ object: Int64) -> String {
    switch reference {
    case .handle(object): "itself"
    case .handle(let handle): "object \(handle)"
    case .path(let path): path.description
    }
  }
}

extension SaveResult {
  fileprivate var isSaved: Bool { saved || reason == "unchanged" }
}
