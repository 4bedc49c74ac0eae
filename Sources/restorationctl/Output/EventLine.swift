// SPDX-License-Identifier: Apache-2.0

internal import RestorationClient

/// Events as lines for people: time, name, application, and what else there is to say, in columns.
struct EventLine {
  private let nameWidth: Int
  private let showsApplication: Bool
  /// Grows with what was seen: what comes later is not known.
  private var applicationWidth = 16
  /// What there is to say keeps so many columns, however narrow the terminal is.
  private static let detailsMin = 24

  /// - Parameters:
  ///   - names: those that will come; nil for all.
  ///   - showsApplication: whether there may be several.
  init(names: Set<BrokerEvent.Name>?, showsApplication: Bool) {
    let names = names.map { Array($0) + [.eventsLost] } ?? BrokerEvent.Name.known
    nameWidth = names.map(\.rawValue.columns).max() ?? 0
    self.showsApplication = showsApplication
  }

  /// What stands above the lines.
  var header: String {
    line("TIME    ", "EVENT", "APPLICATION", "DETAILS").map { Colour.bold.paint($0) }.joined(separator: "  ")
  }

  /// The line of an event that has just come, without a line feed.
  mutating func text(of event: BrokerEvent) -> String {
    let application = (event.application ?? "").printable
    if showsApplication { applicationWidth = max(applicationWidth, application.columns) }
    var columns = line(Clock.timeOfDay, event.name.rawValue.printable, application, Self.details(of: event).printable)
    let used = columns.dropLast().reduce(0) { $0 + $1.columns + 2 }
    if let width = Output.width, let details = columns.popLast() {
      columns.append(details.shortened(to: max(Self.detailsMin, width - used)))
    }
    if columns.last?.isEmpty == true {
      columns.removeLast()
      columns.append((columns.popLast() ?? "").withoutSpacesAtEnd)
    }
    if let colour = Self.colour(of: event) { columns[1] = colour.paint(columns[1]) }
    columns[0] = Colour.faint.paint(columns[0])
    return columns.joined(separator: "  ")
  }

  private func line(_ time: String, _ name: String, _ application: String, _ details: String) -> [String] {
    let columns = [time, name.padded(to: nameWidth)]
    return columns + (showsApplication ? [application.padded(to: applicationWidth)] : []) + [details]
  }

  private static func colour(of event: BrokerEvent) -> Colour? {
    switch event.name {
    case .encodeFailed, .archiveDamaged, .archiveUnreadable, .stateQuarantined, .archiveQuarantined: .red
    case .eventsLost, .restorationCrashed: .yellow
    case .sessionEnded where event.ending == .crashed: .yellow
    default: nil
    }
  }

  private static func details(of event: BrokerEvent) -> String {
    let path = event.path?.joined(separator: "/") ?? event.object.map { "object \($0)" } ?? ""
    let session = session(of: event)
    // The number was told when the session began; here it would only make the line long.
    let writer = event.process ?? session
    let parts: [String]
    switch event.name {
    case .sessionBegan:
      parts = [
        session, event.restoration?.reason.rawValue ?? "", event.isDelegate == true ? "delegate" : "",
        event.isDetached == true ? "detached" : "",
      ]
    case .sessionEnded:
      parts = [session, ending(of: event), objects(event.objects)]
    case .objectRegistered:
      parts = [path, event.objectKind == .object ? "" : event.objectKind?.rawValue ?? "", writer]
    case .objectUnregistered:
      parts = [path, event.cause?.rawValue ?? "", event.stateKept == true ? "state kept" : "", writer]
    case .pathChanged:
      parts = ["\(event.formerPath?.joined(separator: "/") ?? "(no path)") -> \(path)"]
    case .stateEncoded:
      parts = [path, bytes(event.bytes), event.sequence.map { "#\($0)" } ?? "", writer]
    case .encodeFailed:
      parts = [path, failure(event.failure), writer]
    case .generationSealed:
      parts = [
        event.generation.map { "#\($0)" } ?? "", event.generationKind ?? "", objects(event.objects),
        bytes(event.bytes),
      ]
    case .archiveOpened, .archiveImported:
      parts = [objects(event.objects), bytes(event.bytes), event.generation.map { "generation \($0)" } ?? ""]
    case .archiveDamaged, .archiveUnreadable:
      parts = [event.message ?? ""]
    case .applicationDiscarded:
      parts = [
        event.cause?.rawValue ?? "", event.discardedGenerations == true ? "with its generations" : "",
        event.reason ?? "",
      ]
    case .restorationCrashed, .stateQuarantined, .archiveQuarantined, .quarantineEnded:
      parts = blame(event, path, session)
    case .eventsLost:
      parts = ["\(Quantity.count(Int(clamping: event.lost ?? 0), "event")) lost: more came than were read"]
    case .archiveClosed:
      parts = []
    default:
      // Later brokers know more.
      parts = [path, session, event.message ?? ""]
    }
    return parts.filter { !$0.isEmpty }.joined(separator: ", ")
  }

  private static func blame(_ event: BrokerEvent, _ path: String, _ session: String) -> [String] {
    guard event.name == .restorationCrashed else {
      return [path, path.isEmpty ? objects(event.objects) : "", event.cause?.rawValue ?? ""]
    }
    let cause = event.guilty.map { $0.joined(separator: "/") } ?? event.suspects.map { Quantity.count($0, "suspect") }
    return [session, cause ?? "", event.strikes.map { Quantity.count($0, "strike") } ?? ""]
  }

  private static func ending(of event: BrokerEvent) -> String {
    let word = event.ending?.rawValue ?? ""
    let how = event.signal ?? event.exitCode.map { "code \($0)" } ?? event.processEnding ?? ""
    return how.isEmpty || how == word || how == "unknown" ? word : "\(word) (\(how))"
  }

  private static func session(of event: BrokerEvent) -> String {
    guard let pid = event.pid else { return event.process ?? "" }
    return event.process.map { "\($0) (\(pid))" } ?? "process \(pid)"
  }

  private static func failure(_ failure: BrokerEvent.Failure?) -> String {
    guard let failure else { return "" }
    return failure.limit.map { "\($0.name) is \($0.max), this was \($0.value)" } ?? failure.code.description
  }

  private static func bytes(_ count: Int?) -> String {
    count.map { Quantity.bytes($0) } ?? ""
  }

  private static func objects(_ count: Int?) -> String {
    count.map { Quantity.count($0, "object") } ?? ""
  }
}

extension String {
  fileprivate func padded(to width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - columns))
  }

  fileprivate var withoutSpacesAtEnd: String {
    String(self[..<(lastIndex { $0 != " " }.map { index(after: $0) } ?? startIndex)])
  }
}
