// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient
internal import RestorationWire

struct MonitorCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "monitor",
    abstract: "Show events of the broker as they happen.",
    usage: "restorationctl monitor [<option> ...] [<application> [<path>]]",
    discussion: """
      Examples:
        restorationctl monitor
        restorationctl monitor org.example.Notes
        restorationctl monitor org.example.Notes --values
        restorationctl monitor org.example.Notes Main/Editor
        restorationctl monitor --event stateEncoded --event encodeFailed
        restorationctl monitor -j | jq -c 'select(.name == "sessionEnded")'

      Each line is one event, with the time of this tool. The application need not
      exist yet. In JSON each line has the parameters of the notification event
      (Protocol/notifications.md). --values adds states unless a newer one has
      replaced them, but never those of confidential objects. With a path only
      events of that object are shown, with its values.

      An interrupt ends it with status 0, and the end of the broker with status
      69. It also ends when the reader of its output ends.

      Events:
        \(EventName.allCases.map(\.rawValue).inLines(of: 70).joined(separator: "\n  "))
      """
  )

  @OptionGroup var options: CommonOptions

  @Flag(help: "Show the states that are stored.")
  var values = false

  @Argument(help: "The application, with its instance if it has one (default: all).", completion: .applications)
  var application: String?

  @Argument(help: "Only this object, with --values: Main/Editor.", completion: .paths, transform: IdentifierPath.read)
  var path: IdentifierPath?

  @Option(
    name: .customLong("event"),
    help: ArgumentHelp("Show only events of this name; may be given several times.", valueName: "name"),
    completion: .list(EventName.allCases.map(\.rawValue))
  )
  var events: [String] = []

  func run() async throws {
    Interruption.endsTheTool()
    try await withBroker { broker in
      let names = events.isEmpty ? nil : Set(events).sorted()
      let subscription = try await broker.subscribe(toNamed: names, application: application)
      TimeLimit.isForWatching()
      var line = EventLine(names: names, showsApplication: application == nil)
      if output.layout == nil, !legend.hidesLegend { try Output.print(line.header + "\n") }
      for try await event in subscription where path.map({ event.facts?.concern($0) == true }) ?? true {
        let stored = values || path != nil ? try await StoredValue(event, at: path, broker) : nil
        if let layout = output.layout {
          try layout.print(stored?.member(in: event.jsonText) ?? event.jsonText)
        } else {
          try Output.print(line.text(of: event, and: stored?.words) + "\n")
        }
      }
    }
  }
}

extension BrokerEvent.Facts {
  /// Whether they are about the object, or about all states of its application.
  fileprivate func concern(_ path: IdentifierPath) -> Bool {
    switch self {
    case .objectRegistered(let facts): facts.path == path
    case .objectUnregistered(let facts): facts.path == path
    case .pathChanged(let facts): facts.path?.hasBelow(path) == true || facts.from?.hasBelow(path) == true
    case .stateEncoded(let facts): facts.path == path
    case .encodeFailed(let facts): facts.path == path
    case .restorationCrashed(let facts): facts.guilty == path
    case .stateQuarantined(let facts): facts.path == path
    case .quarantineEnded(let facts): facts.path == nil || facts.path == path
    case .generationSealed: isReplacement
    case .archiveDamaged, .archiveUnreadable, .archiveLost, .archiveConflict, .archiveImported, .archiveQuarantined,
      .applicationDiscarded, .eventsLost:
      true
    case .sessionBegan, .sessionEnded, .generationDropped, .archiveOpened, .archiveClosed, .replicaBehind,
      .replicaCaughtUp:
      false
    }
  }

  /// Whether they are about other states in the place of all that there were.
  fileprivate var isReplacement: Bool {
    if case .generationSealed(let facts) = self { return facts.kind == "rolledBack" }
    if case .archiveImported = self { return true }
    return false
  }
}

extension IdentifierPath {
  /// Whether the other path is this one or below it.
  fileprivate func hasBelow(_ path: IdentifierPath) -> Bool { path.components.starts(with: components) }
}

/// The state that an event is about, if it may be shown.
private struct StoredValue {
  /// `nil` if the object is confidential.
  private let state: RestorableState?

  /// `nil` if nothing was stored, or another state has replaced it.
  ///
  /// - Parameter chosen: the object that is watched, if it is one.
  init?(_ event: BrokerEvent, at chosen: IdentifierPath?, _ broker: BrokerConnection) async throws {
    var (path, sequence) = (event.facts?.isReplacement == true ? chosen : nil, nil as Int64?)
    if case .stateEncoded(let facts) = event.facts { (path, sequence) = (facts.path, facts.sequence) }
    guard let path else { return nil }
    do {
      let decoded = try await broker.decode(.path(path), application: event.application?.description)
      guard decoded.status == .available, sequence == nil || decoded.sequence == sequence else { return nil }
      state = decoded.isConfidential ? nil : decoded.state
    } catch is RestorationError {
      return nil
    }
  }

  var words: String { state?.jsonText ?? "(confidential)" }

  /// The event with one more member.
  func member(in event: String) -> String {
    event.dropLast() + (state.map { ",\"state\":\($0.jsonText)}" } ?? ",\"redacted\":true}")
  }
}

extension [String] {
  /// Joins the words by commas, in lines of at most `width` columns.
  fileprivate func inLines(of width: Int) -> [String] {
    var lines: [String] = []
    for (index, word) in enumerated() {
      let word = index == count - 1 ? word : word + ","
      if let last = lines.last, last.count + 1 + word.count <= width {
        lines[lines.count - 1] += " " + word
      } else {
        lines.append(word)
      }
    }
    return lines
  }
}
