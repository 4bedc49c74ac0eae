// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

struct ForgetCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "forget",
    abstract: "Forget an object that no process has, or whole applications.",
    usage: """
      restorationctl forget [<option> ...] <application> [<path>]
      restorationctl forget [<option> ...] --unused <days>
      """,
    discussion: """
      Examples:
        restorationctl forget org.example.Notes Main/Editor
        restorationctl forget org.example.Notes Main/Editor --yes --generations
        restorationctl forget org.example.Notes
        restorationctl forget org.example.Notes --force --damaged
        restorationctl forget --unused 180 --dry-run

      Asks first; without a terminal to ask on, --yes or --force is required.
      With a path, the object and all below it that no process has are removed;
      generations keep them unless --generations is given, which leaves one
      generation without them. Without a path, the application is removed with
      its files, and its name is free. --unused removes each application without a
      session or a write for this many days.
      """
  )

  struct Options: ControlOptions {
    @OptionGroup var shared: SharedOptions

    @Argument(help: "The application, with its instance if it has one.", completion: .applications)
    var application: String?

    var subject: String? { application }
  }

  @OptionGroup var options: Options

  @OptionGroup var trial: DryRunOptions

  @Flag(help: "With a path: also remove the generations, except for the present state.")
  var generations = false

  @Flag(help: "Do not ask.")
  var yes = false

  @Flag(help: "Do not ask, and remove the application even while sessions are live.")
  var force = false

  @Flag(help: "Without a path: also remove files that were set aside because of damage.")
  var damaged = false

  @Option(help: ArgumentHelp("All applications unused for this many days.", valueName: "days"))
  var unused: Int?

  @Argument(help: "The object's path: Main/Editor.", completion: .paths, transform: IdentifierPath.read)
  var path: IdentifierPath?

  func validate() throws {
    if (unused == nil) == (options.application == nil) {
      throw ValidationError(
        unused == nil ? "Give an application, or --unused." : "Give an application or --unused, not both."
      )
    }
    if let unused, !Self.daysRange.contains(unused) {
      throw ValidationError("--unused is a number of days from 1 to \(Self.daysRange.upperBound)")
    }
    if unused != nil, generations || force || damaged {
      throw ValidationError("--generations, --force and --damaged are for an application that is named")
    }
    if path == nil, generations { throw ValidationError("an application is forgotten with its generations") }
    if path != nil, damaged { throw ValidationError("--damaged is for a whole application") }
    if !trial.isDry, !yes, !force, !Terminal.canAsk {
      throw ValidationError("forgetting cannot be undone, and this is not a terminal to ask on: use --yes")
    }
  }

  private static let daysRange = 1...36_500

  func run() async throws {
    try await withBroker { broker in
      if let application = options.application {
        try await forget(application, broker)
      } else {
        try await forgetUnused(broker)
      }
    }
  }

  private var declined: Failure { Failure(ExitStatus.refused, kind: "declined", "nothing was forgotten") }

  // MARK: One application

  private func forget(_ application: String, _ broker: BrokerConnection) async throws {
    let loss = try await loss(of: application, broker)
    if trial.isDry { return try output.confirm(loss.document(isDry: true), or: loss.foretold) }
    if !yes, !force, !Question.confirms(loss.question) { throw declined }
    if let path {
      try await broker.call(UnregisterObject(object: .path(path), generations: generations), of: application)
    } else {
      try await remove(application, broker)
    }
    try output.confirm(loss.document(), or: loss.sentence)
  }

  private func loss(of application: String, _ broker: BrokerConnection) async throws -> Forgotten {
    do {
      let description = try await broker.describeApplication(application)
      if let path, !description.objects.contains(where: { $0.path == path }) {
        throw path.notFound(among: description.objects.compactMap(\.path), in: application)
      }
      return Forgotten(description, path)
    } catch let error as RestorationError where error.code == .archiveUnreadable && path == nil {
      return Forgotten(unreadable: application)
    }
  }

  private func remove(_ application: String, _ broker: BrokerConnection) async throws {
    do {
      try await broker.call(ForgetApplication(force: force, damaged: damaged), of: application)
    } catch let error as RestorationError where error.code == .needsForce {
      throw Failure(error, hint: "Use --force, or end the processes first.")
    }
  }

  // MARK: What nobody uses

  private func forgetUnused(_ broker: BrokerConnection) async throws {
    var applications = try await listUnused(broker)
    if !trial.isDry, !yes, !applications.isEmpty {
      guard Question.confirms(question(about: applications)) else { throw declined }
      // Asked again, because applications may be used during the question.
      let unused = Set(try await listUnused(broker).map(\.application))
      applications.removeAll { !unused.contains($0.application) }
    }
    let days = Dictionary(uniqueKeysWithValues: applications.map { ("\($0.application)", $0.unusedDays ?? 0) })
    let outcomes = try await broker.forAll(output, of: days.keys.sorted()) { application in
      if !trial.isDry { try await broker.call(ForgetApplication(), of: application) }
      return Disuse(days: days[application] ?? 0)
    } report: { application, disuse in
      let done = trial.isDry ? "Would forget" : "Forgot"
      let sentence = "\(done) \(application): not used for \(Quantity.count(disuse.days, "day"))."
      if output.says(isDone: true) { try Output.print(sentence.printable + "\n") }
    }
    if outcomes.isEmpty, output.layout == nil, output.says(isDone: true) {
      try Output.print("No application was unused for \(Quantity.count(unused ?? 0, "day")).\n")
    }
    if outcomes.contains(where: { $0.failure != nil }) { throw ExitStatus.refused }
  }

  private func listUnused(_ broker: BrokerConnection) async throws -> [ApplicationOverview] {
    guard let unused else { return [] }
    let applications = try await broker.call(ListApplications()).applications
    return applications.filter { ($0.unusedDays ?? 0) >= unused && $0.damaged == nil }
  }

  private func question(about applications: [ApplicationOverview]) -> String {
    let names = applications.map(\.application.description).joined(separator: ", ")
    let bytes = applications.reduce(0) { $0 + ($1.fileBytes ?? 0) }
    return "Forget \(Quantity.count(applications.count, "application")) (\(Quantity.bytes(bytes))): \(names)?"
  }
}

private struct Disuse: JSONWritable, Sendable {
  let days: Int

  func writeJSON(to writer: inout JSONWriter) { writer.object { $0.member("unusedDays", days) } }
}

private struct Forgotten {
  let application: String
  let path: IdentifierPath?
  let objects: Int
  let bytes: Int
  let sessions: Int
  /// The archive cannot be read, so its contents are unknown.
  let isUnreadable: Bool

  init(unreadable application: String) {
    (self.application, path, objects, bytes, sessions, isUnreadable) = (application, nil, 0, 0, 0, true)
  }

  init(_ description: ApplicationDescription, _ path: IdentifierPath?) {
    (application, self.path) = (description.application.description, path)
    let gone = description.objects.filter { object in
      guard let path else { return true }
      return object.object == nil && object.path?.components.starts(with: path.components) == true
    }
    objects = gone.count
    bytes = gone.reduce(0) { $0 + $1.bytes }
    sessions = path == nil ? description.sessions.count : 0
    isUnreadable = false
  }

  private var what: String {
    isUnreadable
      ? "an archive that cannot be read" : "\(Quantity.count(objects, "object")) (\(Quantity.bytes(bytes)))"
  }

  private var place: String { path.map { "\($0) of \(application)" } ?? application }

  var question: String { "Forget \(place): \(what)?\(Quantity.remark(sessions, "session", "live"))" }

  var sentence: String { "Forgot \(place): \(what)." }

  var foretold: String { "Would forget \(place): \(what).\(Quantity.remark(sessions, "session", "live"))" }

  func document(isDry: Bool = false) -> PrintedObject {
    PrintedObject { writer in
      writer.member("application", application)
      if let path { writer.member("path", path) }
      if !isUnreadable {
        writer.member("objects", objects)
        writer.member("bytes", bytes)
      }
      writer.member("dryRun", ifTrue: isDry)
    }
  }
}
