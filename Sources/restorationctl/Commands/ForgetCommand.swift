// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

struct ForgetCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "forget",
    abstract: "Forget an object that no process has, or a whole application.",
    usage: "restorationctl forget [<option> ...] <application> [<path>]",
    discussion: """
      Examples:
        restorationctl forget org.example.Notes Main/Editor
        restorationctl forget org.example.Notes Main/Editor --yes --generations
        restorationctl forget org.example.Notes
        restorationctl forget org.example.Notes --force --damaged

      Asks first; without a terminal to ask on, --yes or --force is required.
      With a path, the object and all below it that no process has are removed;
      generations keep them unless --generations is given, which leaves one
      generation without them. Without a path, the application is removed with
      its files, and its name is free.
      """
  )

  @OptionGroup var options: ApplicationOptions

  @Flag(help: "With a path: remove the generations as well, but for the present state.")
  var generations = false

  @Flag(help: "Do not ask.")
  var yes = false

  @Flag(help: "Do not ask, and remove the application even while sessions are live.")
  var force = false

  @Flag(help: "Without a path: remove files as well that were set aside because of damage.")
  var damaged = false

  @Argument(help: "The object's path: Main/Editor.", completion: .paths, transform: IdentifierPath.read)
  var path: IdentifierPath?

  func validate() throws {
    if path == nil, generations { throw ValidationError("an application is forgotten with its generations") }
    if path != nil, damaged { throw ValidationError("--damaged is for a whole application") }
    if !yes, !force, !Terminal.canAsk {
      throw ValidationError("forgetting cannot be undone, and this is not a terminal to ask on: use --yes")
    }
  }

  func run() async throws {
    try await withBroker { broker in
      let loss = try await loss(broker)
      if !yes, !force, !Question.confirms(loss.question) {
        throw Failure(ExitStatus.refused, kind: "declined", "nothing was forgotten")
      }
      if let path {
        try await broker.unregister(.path(path), generations: generations, application: application)
      } else {
        try await forgetApplication(broker)
      }
      try output.confirm(loss, or: loss.sentence)
    }
  }

  private func loss(_ broker: BrokerConnection) async throws -> Forgotten {
    do {
      let description = try await broker.describeApplication(application)
      if let path, !description.objects.contains(where: { $0.path == path }) {
        throw path.notFound(among: description.objects.compactMap(\.path), "in \(application)")
      }
      return Forgotten(description, path)
    } catch let error as RestorationError where error.code == .archiveUnreadable && path == nil {
      return Forgotten(unreadable: application)
    }
  }

  private func forgetApplication(_ broker: BrokerConnection) async throws {
    do {
      try await broker.forgetApplication(application, force: force, damaged: damaged)
    } catch let error as RestorationError where error.code == .needsForce {
      throw Failure(error, hint: "Use --force, or end the processes first.")
    }
  }
}

/// What forgetting removes: vacant objects at and below a path, or the application.
private struct Forgotten: JSONWritable {
  let application: String
  let path: IdentifierPath?
  let objects: Int
  let bytes: Int
  let sessions: Int
  /// Its archive cannot be read: what goes with it is unknown.
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

  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("application", application)
      if let path { writer.member("path", path) }
      guard !isUnreadable else { return }
      writer.member("objects", objects)
      writer.member("bytes", bytes)
    }
  }
}
