// SPDX-License-Identifier: Apache-2.0

internal import RestorationClient
internal import RestorationWire

/// Formats events as lines for people: time, name, application and details, in columns.
struct EventLine {
  private let nameWidth: Int
  private let showsApplication: Bool
  /// Grows with the names seen, because later ones are unknown.
  private var applicationWidth = 16
  private static let detailsMin = 24

  /// - Parameters:
  ///   - names: the names of the events to come; `nil` for all.
  ///   - showsApplication: whether there may be several applications.
  init(names: [String]?, showsApplication: Bool) {
    let names = names.map { $0 + [EventName.eventsLost.rawValue] } ?? EventName.allCases.map(\.rawValue)
    nameWidth = names.map(\.columns).max() ?? 0
    self.showsApplication = showsApplication
  }

  var header: String {
    line("TIME    ", "EVENT", "APPLICATION", "DETAILS").map { Colour.bold.paint($0) }.joined(separator: "  ")
  }

  /// The line of a new event, without a line feed.
  ///
  /// - Parameter more: is added to the details.
  mutating func text(of event: BrokerEvent, and more: String? = nil) -> String {
    let application = (event.application?.description ?? "").printable
    if showsApplication { applicationWidth = max(applicationWidth, application.columns) }
    let details = Self.details(of: event) + (more.map { ", \($0)" } ?? "")
    var columns = line(Clock.timeOfDay, event.name.printable, application, details.printable)
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
    switch event.facts {
    case .encodeFailed, .archiveDamaged, .archiveUnreadable, .archiveLost, .archiveConflict, .stateQuarantined,
      .archiveQuarantined:
      .red
    case .eventsLost, .replicaBehind, .restorationCrashed, .generationDropped: .yellow
    case .sessionEnded(let facts) where facts.ending == .crashed: .yellow
    case .sessionBegan, .sessionEnded, .objectRegistered, .objectUnregistered, .pathChanged, .stateEncoded,
      .generationSealed, .archiveOpened, .archiveClosed, .archiveImported, .applicationDiscarded, .quarantineEnded,
      .replicaCaughtUp, nil:
      nil
    }
  }

  private static func details(of event: BrokerEvent) -> String {
    // A later broker may have other events.
    event.facts.map { details(of: $0).filter { !$0.isEmpty }.joined(separator: ", ") } ?? event.jsonText
  }

  private static func details(of facts: BrokerEvent.Facts) -> [String] {
    switch facts {
    case .sessionBegan(let facts):
      [
        session(facts.session), facts.restoration?.reason.rawValue ?? "", facts.delegate ? "delegate" : "",
        facts.detached ? "detached" : "",
      ]
    case .sessionEnded(let facts):
      [session(facts.session), ending(of: facts), Quantity.count(facts.objects, "object")]
    case .objectRegistered(let facts):
      [name(facts.path, facts.object), facts.kind == .object ? "" : facts.kind.rawValue, writer(facts.session)]
    case .objectUnregistered(let facts):
      [
        name(facts.path, facts.object), facts.cause.rawValue, facts.stateKept ? "state kept" : "",
        writer(facts.session),
      ]
    case .pathChanged(let facts): ["\(facts.from?.description ?? "(no path)") -> \(name(facts.path, facts.object))"]
    case .stateEncoded(let facts):
      [
        name(facts.path, facts.object), Quantity.bytes(facts.bytes), "#\(facts.sequence)", writer(facts.session),
      ]
    case .encodeFailed(let facts): [name(facts.path, facts.object), facts.error.description, writer(facts.session)]
    case .generationSealed(let facts):
      ["#\(facts.generation)", facts.kind, Quantity.count(facts.objects, "object"), Quantity.bytes(facts.bytes)]
    case .generationDropped(let facts): ["#\(facts.generation)", facts.cause.rawValue]
    case .archiveOpened(let facts):
      [
        Quantity.count(facts.objects, "object"), Quantity.bytes(facts.bytes),
        facts.generation.map { "generation \($0)" } ?? "",
      ]
    case .archiveImported(let facts): [Quantity.count(facts.objects, "object"), Quantity.bytes(facts.bytes)]
    case .archiveDamaged(let facts): [facts.message]
    case .archiveUnreadable(let facts): [facts.message]
    case .archiveLost(let facts):
      [
        facts.host ?? "",
        facts.unshipped == 0 ? "" : "without \(Quantity.count(Int(clamping: facts.unshipped), "change"))",
      ]
    case .archiveConflict(let facts):
      [facts.host ?? "", facts.changes.map { Quantity.count(Int(clamping: $0), "change") } ?? "", facts.file]
    case .replicaBehind(let facts):
      [facts.cause.rawValue, Quantity.count(Int(clamping: facts.changes), "change"), facts.message]
    case .applicationDiscarded(let facts):
      [facts.cause.rawValue, facts.generations ? "with its generations" : "", facts.reason ?? ""]
    case .restorationCrashed(let facts):
      [
        session(facts.session), facts.guilty?.description ?? Quantity.count(facts.suspects, "suspect"),
        Quantity.count(facts.strikes, "strike"),
      ]
    case .stateQuarantined(let facts): [name(facts.path, facts.object)]
    case .archiveQuarantined(let facts): [Quantity.count(facts.objects, "object")]
    case .quarantineEnded(let facts):
      [facts.path?.description ?? Quantity.count(facts.objects, "object"), facts.cause.rawValue]
    case .eventsLost(let facts):
      ["\(Quantity.count(Int(clamping: facts.lost), "event")) lost: more came than were read"]
    case .archiveClosed, .replicaCaughtUp: []
    }
  }

  private static func name(_ path: IdentifierPath?, _ object: ObjectHandle?) -> String {
    path?.description ?? object.map { "object \($0)" } ?? ""
  }

  private static func ending(of facts: SessionEnded) -> String {
    let (word, outcome) = (facts.ending.rawValue, facts.outcome)
    let how = outcome.signal ?? outcome.code.map { "code \($0)" } ?? outcome.how?.rawValue ?? ""
    return how.isEmpty || how == word || how == "unknown" ? word : "\(word) (\(how))"
  }

  private static func session(_ session: SessionIdentity) -> String {
    guard let pid = session.pid else { return session.process ?? "" }
    return ObjectOwner(process: session.process, pid: pid).description
  }

  /// The number was printed when the session began; here it would make the line too long.
  private static func writer(_ session: SessionIdentity) -> String { session.process ?? Self.session(session) }
}

extension String {
  fileprivate func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - columns)) }

  fileprivate var withoutSpacesAtEnd: String {
    String(self[..<(lastIndex { $0 != " " }.map { index(after: $0) } ?? startIndex)])
  }
}
