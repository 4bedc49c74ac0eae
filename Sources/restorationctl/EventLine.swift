// SPDX-License-Identifier: Apache-2.0

internal import RestorationClient

/// Events as lines for people: time, name, application, and what else there is to say, in columns.
struct EventLine {
  private let nameWidth: Int
  private let showsApplication: Bool
  /// Grows with what was seen: what comes later is not known.
  private var applicationWidth = 16

  /// - Parameters:
  ///   - names: those that will come; nil for all.
  ///   - showsApplication: whether there may be several.
  init(names: Set<BrokerEvent.Name>?, showsApplication: Bool) {
    let names = names.map { Array($0) + [.eventsLost] } ?? BrokerEvent.Name.known
    nameWidth = names.map(\.rawValue.count).max() ?? 0
    self.showsApplication = showsApplication
  }

  /// The line without a line feed; the time is now.
  mutating func text(of event: BrokerEvent) -> String {
    var columns = [LocalTime.now, event.name.rawValue.padded(to: nameWidth)]
    if showsApplication {
      let application = event.application ?? ""
      applicationWidth = max(applicationWidth, application.count)
      columns.append(application.padded(to: applicationWidth))
    }
    columns.append(Self.details(of: event))
    return columns.joined(separator: "  ").withoutControlCharacters.trimmingSpacesAtEnd
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
      parts = [session, event.ending?.rawValue ?? "", count(event.objects, "object")]
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
        event.generation.map { "#\($0)" } ?? "", event.generationKind ?? "", count(event.objects, "object"),
        bytes(event.bytes),
      ]
    case .archiveOpened, .archiveImported:
      parts = [count(event.objects, "object"), bytes(event.bytes), event.generation.map { "generation \($0)" } ?? ""]
    case .archiveDamaged, .archiveUnreadable:
      parts = [event.message ?? ""]
    case .applicationDiscarded:
      parts = [
        event.cause?.rawValue ?? "", event.discardedGenerations == true ? "with its generations" : "",
        event.reason ?? "",
      ]
    case .eventsLost:
      parts = [count(event.lost.map { Int($0) }, "event") + " lost: more came than were read"]
    case .archiveClosed:
      parts = []
    default:
      // Later brokers know more.
      parts = [path, session, event.message ?? ""]
    }
    return parts.filter { !$0.isEmpty }.joined(separator: ", ")
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

  private static func count(_ count: Int?, _ name: String) -> String {
    count.map { "\($0) \(name)\($0 == 1 ? "" : "s")" } ?? ""
  }
}

extension String {
  fileprivate func padded(to width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - count))
  }

  /// Names come from applications, and none is to steer the terminal of who looks at them.
  fileprivate var withoutControlCharacters: String {
    let steering: Set<Unicode.GeneralCategory> = [.control, .format, .lineSeparator, .paragraphSeparator]
    guard unicodeScalars.contains(where: { steering.contains($0.properties.generalCategory) }) else { return self }
    var text = ""
    for scalar in unicodeScalars {
      if steering.contains(scalar.properties.generalCategory) {
        text += "\\u{\(String(scalar.value, radix: 16))}"
      } else {
        text.unicodeScalars.append(scalar)
      }
    }
    return text
  }

  fileprivate var trimmingSpacesAtEnd: String {
    String(self[..<(lastIndex { $0 != " " }.map { index(after: $0) } ?? startIndex)])
  }
}
