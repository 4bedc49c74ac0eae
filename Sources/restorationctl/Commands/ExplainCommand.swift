// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient
internal import RestorationWire

struct ExplainCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain",
    abstract: "Explain why an object was saved and restored, or was not.",
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

  @Argument(help: "The object's path: Main/Editor.", completion: .paths, transform: IdentifierPath.read)
  var path: IdentifierPath

  func run() async throws {
    try await withBroker { broker in
      do {
        let object = ObjectReference.path(path)
        let explanation = try await broker.call(ExplainRestoration(object: object, reveal: reveal), of: application)
        if let layout = output.layout { return try layout.show(explanation) }
        // The call fails if archives stay on their host.
        let replicated = try? await broker.call(ReportReplica(application: ApplicationName(sending: application)))
          .applications.first
        try Output.show(text(of: explanation) + (replicated.map(Self.text) ?? ""))
      } catch let error as RestorationError where error.code == .unknownObject {
        let paths = try await broker.describeApplication(application).objects.compactMap(\.path)
        throw path.notFound(among: paths, in: application)
      }
    }
  }

  private func text(of explanation: RestorationExplanation) -> String {
    let reason = explanation.excluder.map { " " + sentence($0) } ?? ""
    let title = "\(path.description) \(Self.sentence(explanation.verdict))\(reason)".printable
    guard !legend.hidesLegend else { return title + "\n" }
    let saved = Self.list(explanation.saved) { $0.description }
    let restored = Self.list(explanation.restored) { $0.sentence(\.local) }
    return """
      \(title)

      When it was last saved:
      \(saved)
      When it was last restored:
      \(restored)
      """
  }

  /// Why other hosts lack what is saved here, and what another host has replaced (R36).
  private static func text(of replicated: ReplicatedApplication) -> String {
    var lines = replicated.conflicts.map { "another host has replaced the state; \($0.application) has the former one" }
    if let changes = replicated.changes, changes > 0 {
      let reason = replicated.failure.map { ": \($0.message)" } ?? ""
      lines.append("the fleet's store lacks \(Quantity.count(Int(clamping: changes), "change"))\(reason)")
    }
    guard !lines.isEmpty else { return "" }
    return "\nOn other hosts:\n" + lines.map { "  \($0)".printable + "\n" }.joined()
  }

  private static func list<Step>(_ steps: [NotedStep<Step>], _ sentence: (Step) -> String) -> String {
    // A rollback or an import replaces the objects, with their steps.
    if steps.isEmpty { return "  not since the broker started, or since a rollback or an import\n" }
    return steps.map { "  \(line($0, sentence))".printable + "\n" }.joined()
  }

  private static func line<Step>(_ noted: NotedStep<Step>, _ sentence: (Step) -> String) -> String {
    let isOfToday = noted.at.map { Clock.now - $0.milliseconds < 86_400_000 } ?? true
    let time = noted.at.map { isOfToday ? Clock.text(of: $0.milliseconds, "%H:%M:%S") : $0.local } ?? "-"
    return "\(time)  \(sentence(noted.step))" + (noted.times > 1 ? " (\(noted.times) times)" : "")
  }

  private func sentence(_ excluder: Excluder) -> String {
    if excluder.path == path { return "It is a view with nothing above it." }
    let owner = excluder.owner.map { " of \($0)" } ?? ""
    if let path = excluder.path { return "The cause is \(path)\(owner), which no view may be below." }
    let below = excluder.below.map { ", below \($0)" } ?? ""
    return "The cause is an object without identifier\(owner)\(below)."
  }

  /// What an object is, as the end of a sentence about it.
  static func sentence(_ verdict: String) -> String {
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
    case .closed: "was closed; restorationctl reopen opens it again."
    case .retired:
      "was closed, because no process claimed it for 90 days and 20 restorations; restorationctl reopen opens it again."
    case nil: "is \(verdict)."
    }
  }
}
