// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient
internal import RestorationWire

struct ShowCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Show one object of an application with its state.",
    usage: "restorationctl show [<option> ...] <application> <path>",
    discussion: """
      Examples:
        restorationctl show org.example.Notes Main/Editor
        restorationctl show org.example.Notes Main/Tabs/Page#2 --generation 3
        restorationctl show org.example.Notes Main/Login --reveal
        restorationctl show org.example.Notes Main/Editor -j | jq .state

      The path is the identifiers from the outermost ancestor on, joined by
      slashes; #2 is a position. The state of a confidential object is shown only
      with --reveal. Exit status 4 means that the object is unknown.
      """
  )

  @OptionGroup var options: ApplicationOptions

  @Option(
    help: ArgumentHelp("Show a generation instead of the head.", valueName: "number"),
    completion: .generations,
    transform: GenerationNumber.read
  )
  var generation: Int64?

  @Flag(help: "Show the state of a confidential object.")
  var reveal = false

  @Argument(help: "The object's path: Main/Editor.", completion: .paths, transform: IdentifierPath.read)
  var path: IdentifierPath

  func run() async throws {
    try await withBroker { broker in
      let facts: ObjectFacts
      if let generation {
        let saved = try await broker.object(at: path, in: generation, of: application, reveal: reveal)
        facts = ObjectFacts(saved, generation: generation, of: application)
      } else {
        facts = try await current(broker)
      }
      try output.show(facts, or: facts.text(now: Clock.now))
    }
  }

  private func current(_ broker: BrokerConnection) async throws -> ObjectFacts {
    let description = try await broker.describeApplication(application)
    guard let object = description.objects.first(where: { $0.path == path }) else {
      throw path.notFound(among: description.objects.compactMap(\.path), in: application)
    }
    // Only a decode by the owner has an effect.
    let decoded = try await broker.decode(.path(path), application: application)
    return ObjectFacts(object, at: path, decoded, reveal: reveal, of: description)
  }
}

extension BrokerConnection {
  /// Throws a failure if the object is not in the generation.
  func object(
    at path: IdentifierPath,
    in generation: Int64,
    of application: String,
    reveal: Bool
  ) async throws -> ArchivedObject {
    var paths: [IdentifierPath] = []
    let found = try await GenerationNumber.orNotThere(in: application) { () -> ArchivedObject? in
      for try await object in readArchive(of: application, generation: generation, reveal: reveal) {
        if object.path == path { return object }
        paths.append(object.path)
      }
      return nil
    }
    if let found { return found }
    throw path.notFound(among: paths, in: application, generation)
  }
}

extension IdentifierPath {
  /// A path as `Main/Editor`: no identifier contains a slash. A slash at the end, which a shell may add, is ignored.
  static func read(_ text: String) throws -> IdentifierPath {
    var components = text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    if components.count > 1, components.last == "" { components.removeLast() }
    guard !components.contains("") else {
      throw ValidationError("invalid path '\(text)': a path is identifiers joined by slashes, such as Main/Editor")
    }
    return IdentifierPath(components)
  }

  private func prefix(_ count: Int) -> IdentifierPath { IdentifierPath(Array(components.prefix(count))) }

  /// The failure for an unknown object: names the nearest existing ancestor and its children.
  func notFound(among paths: [IdentifierPath], in application: String, _ generation: Int64? = nil) -> Failure {
    let message = "unknown object \(description) in \(generation.map { "generation \($0) of " } ?? "")\(application)"
    if paths.isEmpty {
      let step =
        generation == nil
        ? "restorationctl put \(application) \(description) '{}' makes it."
        : "restorationctl history \(application) lists the kept generations."
      return .unknownObject(self, message, hint: "There are no objects. \(step)")
    }
    var known = components.count - 1
    while known > 0, !paths.contains(prefix(known)) { known -= 1 }
    let ancestor = prefix(known)
    let children = paths.filter { $0.components.count == known + 1 && $0.prefix(known) == ancestor }
      .compactMap(\.components.last)
    var hint = known == 0 ? "At the top " : "\(ancestor.description) exists; below it "
    hint += (children.count < 2 ? "is " : "are ") + Suggestion.list(children)
    if let near = Suggestion.nearest(to: components[known], in: children) { hint += "; did you mean \(near)?" }
    return .unknownObject(self, message, hint: hint)
  }
}
