// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient

struct RollbackCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "rollback",
    abstract: "Go back to a generation of an application.",
    usage: "restorationctl rollback [<option> ...] <application> <number> [<path>...]",
    discussion: """
      Examples:
        restorationctl history org.example.Notes
        restorationctl rollback org.example.Notes 3 --dry-run
        restorationctl rollback org.example.Notes 3
        restorationctl rollback org.example.Notes 3 Main/Editor

      The content of the generation becomes the saved state, and a new generation.
      With paths, only these objects and all below them are brought back. The
      former state stays as a generation: roll back to it to undo this. While
      the application runs, --force is needed; its processes are notified and can
      restore again.
      """
  )

  @OptionGroup var options: ApplicationOptions

  @OptionGroup var trial: DryRunOptions

  @Flag(help: "Also while sessions are live.")
  var force = false

  @Argument(
    help: ArgumentHelp("The number of the generation.", valueName: "number"),
    completion: .generations,
    transform: GenerationNumber.read
  )
  var generation: Int64

  @Argument(
    help: ArgumentHelp("Objects to bring back, with all below them: Main/Editor.", valueName: "path"),
    completion: .paths,
    transform: IdentifierPath.read
  )
  var paths: [IdentifierPath] = []

  func run() async throws {
    try Failure.checkChangeable(application)
    try await withBroker { broker in
      guard !trial.isDry else { return try await preview(broker) }
      let result = try await rollBack(broker)
      try output.confirm(result, or: sentence(of: result))
      for path in result.unreadable {
        Output.complain("the state of \(path) is damaged and was not restored".printable)
      }
    }
  }

  private func rollBack(_ broker: BrokerConnection) async throws -> RolledBackArchive {
    do {
      return try await GenerationNumber.orNotThere(in: application) {
        try await ProgressLine.during("reading") { progress in
          let call = RollBack(generation: generation, force: force, objects: paths.isEmpty ? nil : paths)
          return try await broker.call(call, of: application, progress: progress)
        }
      }
    } catch let error as RestorationError where error.code == .needsForce {
      let hint = "End it first, or use --force; its processes are then notified and should restore again."
      throw Failure(error, hint: hint)
    } catch let error as RestorationError where error.code == .unknownObject {
      throw Failure(error, hint: "restorationctl export \(application) --generation \(generation) prints it.")
    }
  }

  /// What would be brought back, removed and changed: the difference from now to the generation.
  private func preview(_ broker: BrokerConnection) async throws {
    let since = try await GenerationNumber.orNotThere(in: application) {
      try await broker.diffGenerations(of: application, from: generation)
    }
    func isMeant(_ path: IdentifierPath) -> Bool {
      paths.isEmpty || paths.contains { path.components.starts(with: $0.components) }
    }
    let described = try await broker.describeApplication(application)
    let names = since.added + since.removed + since.changed.map(\.path)
    for path in paths where !names.contains(where: { $0.components.starts(with: path.components) }) {
      // It may be as it was, or nowhere: then the call itself would fail.
      guard described.objects.contains(where: { $0.path?.components.starts(with: path.components) == true }) else {
        let message = "generation \(generation) has no object \(path)"
        let hint = "restorationctl export \(application.shellWord) --generation \(generation) prints it."
        throw Failure(ExitStatus.notThere, kind: "unknownObject", message, hint: hint)
      }
    }
    let difference = since.with {
      ($0.removed, $0.added) = (since.added.filter(isMeant), since.removed.filter(isMeant))
      $0.changed = since.changed.filter { isMeant($0.path) }
    }
    let document = PrintedObject { writer in
      writer.member("generation", generation)
      difference.writeMembers(to: &writer)
      writer.member("dryRun", true)
    }
    let table = difference.isEmpty ? "" : DiffCommand.table(of: difference).text(header: !legend.hidesLegend) + "\n"
    let live = force ? "" : Quantity.remark(described.sessions.count, "session", "live, which takes --force")
    let outcome = "Would go back to generation \(generation): \(difference.counts).\(live)"
    try output.print(document, or: table + outcome.printable + "\n")
  }

  private func sentence(of result: RolledBackArchive) -> String {
    var text = "\(application) is back at generation \(generation)"
    if result.generation != generation { text += ", now generation \(result.generation)" }
    if let former = result.former, former != result.generation { text += "; the former state is generation \(former)" }
    return text + "."
  }
}

enum GenerationNumber {
  static func read(_ text: String) throws -> Int64 {
    guard let number = Int64(text), number > 0 else {
      throw ValidationError("invalid generation '\(text)': generations are numbered 1, 2, 3 …")
    }
    return number
  }

  /// An unknown generation gets the exit status of an unknown object.
  static func orNotThere<Result>(in application: String, _ ask: () async throws -> Result) async throws -> Result {
    do {
      return try await ask()
    } catch let error as RestorationError
      where error.code == .invalidParams && ["/generation", "/from", "/to"].contains(error.pointer)
    {
      var failure = Failure(error, hint: "restorationctl history \(application) lists the kept generations.")
      failure.status = ExitStatus.notThere
      throw failure
    }
  }
}
