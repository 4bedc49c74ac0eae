// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient
internal import RestorationWire

struct ExplainCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain",
    abstract: "Say why an object was saved and restored, or was not.",
    usage: "restorationctl explain [<option> ...] <application> <path>",
    discussion: """
      Examples:
        restorationctl explain org.example.Notes Main/Editor
        restorationctl explain org.example.Notes Main/Editor -j | jq -r .verdict

      Shows what happened to the object when the application was last saved and
      restored, in order of decision. The broker forgets it when it ends. In JSON
      it is the result of the method explainRestoration.
      """
  )

  @OptionGroup var options: ApplicationOptions

  @Flag(help: "Also show details that may quote the state of a confidential object.")
  var reveal = false

  @Argument(help: "The object's path: Main/Editor.", transform: IdentifierPath.read)
  var path: IdentifierPath

  func run() async throws {
    try await connection.run { broker in
      do {
        let object = ObjectReference.path(path)
        let explanation = try await broker.explainRestoration(of: object, reveal: reveal, application: application)
        try output.show(explanation, or: text(of: explanation))
      } catch let error as RestorationError where error.code == .unknownObject {
        let paths = try await broker.describeApplication(application).objects.compactMap(\.path)
        throw path.notFound(among: paths, "in \(application)")
      }
    }
  }

  private func text(of explanation: RestorationExplanation) -> String {
    let title = "\(path.description) \(Self.sentence(explanation.verdict))".printable
    guard !legend.hidesLegend else { return title + "\n" }
    return """
      \(title)

      When it was last saved:
      \(Self.list(explanation.saved, else: "nothing has been saved since the broker started"))
      When it was last restored:
      \(Self.list(explanation.restored, else: "nothing has been restored since the broker started"))
      """
  }

  private static func list(_ steps: [some CustomStringConvertible], else nothing: String) -> String {
    steps.isEmpty ? "  \(nothing)\n" : steps.map { "  - \($0.description)".printable + "\n" }.joined()
  }

  private static func sentence(_ verdict: String) -> String {
    switch ExplainRestoration.Verdict(rawValue: verdict) {
    case .saved: "is saved."
    case .restored: "is saved, and has been restored."
    case .neverSaved: "has no saved state: it was never given one."
    case .excluded: "is left out when the application is saved: no walk reaches it, and nothing saved refers to it."
    case .stale: "is saved as it was before: its owner gave no new state."
    case .skipped: "was left out when the application was restored."
    case .absent: "was not restored: it was not registered in time."
    case .waiting: "is being restored."
    case .quarantined: "has a withheld state, because restoring it crashed a process."
    case .unreadable: "has a state that is damaged."
    case nil: "is \(verdict)."
    }
  }
}
