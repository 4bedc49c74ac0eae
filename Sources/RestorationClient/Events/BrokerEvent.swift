// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
public import RestorationWire

/// Something that happened at the broker: facts only, never a state (`Protocol/notifications.md`).
public struct BrokerEvent: Hashable, Sendable {
  /// The name of the event; later brokers know more names than `EventName` has.
  public let name: String
  /// The application, with its instance; `nil` if events were lost.
  public let application: ApplicationName?
  /// The members; `nil` if the name, or a word in a member, is unknown to this version.
  public let facts: Facts?
  /// All members as JSON text, on one line.
  public let jsonText: String

  /// The members of an event; the type is the kind of event.
  public enum Facts: Hashable, Sendable {
    case sessionBegan(SessionBegan)
    case sessionEnded(SessionEnded)
    case objectRegistered(ObjectRegistered)
    case objectUnregistered(ObjectUnregistered)
    case pathChanged(ObjectMoved)
    case stateEncoded(StateEncoded)
    case encodeFailed(EncodeFailed)
    case generationSealed(GenerationSealed)
    case generationDropped(GenerationDropped)
    case archiveOpened(ArchiveOpened)
    case archiveClosed(ArchiveClosed)
    case archiveDamaged(ArchiveDamaged)
    case archiveUnreadable(ArchiveUnreadable)
    case archiveLost(ArchiveLost)
    case archiveConflict(ArchiveSetAside)
    case replicaBehind(ReplicaBehind)
    case replicaCaughtUp(ReplicaCaughtUp)
    case archiveImported(ArchiveImported)
    case applicationDiscarded(ApplicationDiscarded)
    case restorationCrashed(RestorationCrashed)
    case stateQuarantined(StateQuarantined)
    case archiveQuarantined(ArchiveQuarantined)
    case quarantineEnded(QuarantineEnded)
    case eventsLost(EventsLost)
  }
}

extension BrokerEvent: CustomStringConvertible {
  public var description: String { jsonText }
}

// Reading
extension BrokerEvent {
  /// `nil` unless the notification has the form that every event has.
  init?(_ parameters: JSONSlice) {
    guard let name = parameters["name"]?.string() else { return nil }
    self.name = name
    application = parameters["application"].flatMap { ApplicationName($0) }
    facts = EventName(rawValue: name).flatMap { try? Facts($0, parameters) }
    jsonText = parameters.compactText.string
  }

  /// Events that this process did not read in time.
  static func lost(_ count: Int64, of subscription: Int64) -> BrokerEvent? {
    let parameters = EventNotification(application: nil, event: EventsLost(lost: count)).parameters(for: subscription)
    return (try? JSONInput.scan(parameters.string, subject: "an event")).flatMap { BrokerEvent($0) }
  }

  /// Of `eventsLost`: how many events it replaces.
  var lost: Int64? { if case .eventsLost(let facts) = facts { facts.lost } else { nil } }
}

extension BrokerEvent.Facts {
  fileprivate init(_ name: EventName, _ slice: JSONSlice) throws(Misfit) {
    self =
      switch name {
      case .sessionBegan: .sessionBegan(try SessionBegan(wire: slice))
      case .sessionEnded: .sessionEnded(try SessionEnded(wire: slice))
      case .objectRegistered: .objectRegistered(try ObjectRegistered(wire: slice))
      case .objectUnregistered: .objectUnregistered(try ObjectUnregistered(wire: slice))
      case .pathChanged: .pathChanged(try ObjectMoved(wire: slice))
      case .stateEncoded: .stateEncoded(try StateEncoded(wire: slice))
      case .encodeFailed: .encodeFailed(try EncodeFailed(wire: slice))
      case .generationSealed: .generationSealed(try GenerationSealed(wire: slice))
      case .generationDropped: .generationDropped(try GenerationDropped(wire: slice))
      case .archiveOpened: .archiveOpened(try ArchiveOpened(wire: slice))
      case .archiveClosed: .archiveClosed(try ArchiveClosed(wire: slice))
      case .archiveDamaged: .archiveDamaged(try ArchiveDamaged(wire: slice))
      case .archiveUnreadable: .archiveUnreadable(try ArchiveUnreadable(wire: slice))
      case .archiveLost: .archiveLost(try ArchiveLost(wire: slice))
      case .archiveConflict: .archiveConflict(try ArchiveSetAside(wire: slice))
      case .replicaBehind: .replicaBehind(try ReplicaBehind(wire: slice))
      case .replicaCaughtUp: .replicaCaughtUp(try ReplicaCaughtUp(wire: slice))
      case .archiveImported: .archiveImported(try ArchiveImported(wire: slice))
      case .applicationDiscarded: .applicationDiscarded(try ApplicationDiscarded(wire: slice))
      case .restorationCrashed: .restorationCrashed(try RestorationCrashed(wire: slice))
      case .stateQuarantined: .stateQuarantined(try StateQuarantined(wire: slice))
      case .archiveQuarantined: .archiveQuarantined(try ArchiveQuarantined(wire: slice))
      case .quarantineEnded: .quarantineEnded(try QuarantineEnded(wire: slice))
      case .eventsLost: .eventsLost(try EventsLost(wire: slice))
      }
  }
}
