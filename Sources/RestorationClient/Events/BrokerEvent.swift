// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
public import RestorationWire

/// Something that happened at the broker: facts only, never a state (`Protocol/notifications.md`).
public struct BrokerEvent: Hashable, Sendable {
  /// The name of the event; later brokers know more names than `EventName` has.
  public let name: String
  /// The application, with its instance if it has one; `nil` if events were lost.
  public let application: ApplicationName?
  /// Its members; `nil` if the name, or a word in a member, is unknown to this version.
  public let facts: Facts?
  /// All members as JSON text, on one line.
  public let jsonText: String

  /// The members of an event.
  public enum Facts: Hashable, Sendable {
    /// A session was opened; resuming a session is not an event.
    case sessionBegan(SessionBegan)
    /// A session ended, and with it the registrations of its objects (R30).
    case sessionEnded(SessionEnded)
    /// An object was registered that its session had not registered before (R1).
    case objectRegistered(ObjectRegistered)
    /// The registration of an object ended while its session continues.
    case objectUnregistered(ObjectUnregistered)
    /// The event `pathChanged`: an object was moved, and everything below it with it (R6).
    case pathChanged(ObjectMoved)
    /// The state of an object was stored.
    case stateEncoded(StateEncoded)
    /// An encode that was sent as a notification stored nothing, and had no answer to say so.
    case encodeFailed(EncodeFailed)
    /// A generation was sealed (R16).
    case generationSealed(GenerationSealed)
    /// An archive was opened, made, or opened again after a write that failed.
    case archiveOpened(ArchiveOpened)
    /// An archive that is not needed now was closed.
    case archiveClosed(ArchiveClosed)
    /// An archive was found damaged when it was opened (R32).
    case archiveDamaged(ArchiveDamaged)
    /// An archive exists but could not be opened; it was left untouched (R20).
    case archiveUnreadable(ArchiveUnreadable)
    /// The head was replaced by an imported document.
    case archiveImported(ArchiveImported)
    /// The head was emptied (R30).
    case applicationDiscarded(ApplicationDiscarded)
    /// A process ended abnormally while it was processing states it had been handed (R31).
    case restorationCrashed(RestorationCrashed)
    /// The state of an object is withheld from now on (R35).
    case stateQuarantined(StateQuarantined)
    /// All states there are are withheld from now on (R31).
    case archiveQuarantined(ArchiveQuarantined)
    /// States are no longer withheld (R35).
    case quarantineEnded(QuarantineEnded)
    /// Events that exceeded the client's unread bytes were dropped; this one takes their place.
    case eventsLost(EventsLost)
  }
}

extension BrokerEvent: CustomStringConvertible {
  /// The JSON text.
  public var description: String { jsonText }
}

// Reading
extension BrokerEvent {
  /// Reads the parameters of the notification; `nil` unless they have the form that every event has.
  init?(_ parameters: JSONSlice) {
    guard let name = parameters["name"]?.string() else { return nil }
    self.name = name
    application = parameters["application"].flatMap { ApplicationName($0) }
    facts = EventName(rawValue: name).flatMap { try? Facts($0, parameters) }
    jsonText = parameters.compactText.string
  }

  /// Events that this process did not read in time.
  static func lost(_ count: Int64, of subscription: Int64) -> BrokerEvent? {
    let notification = EventNotification(subscription: subscription, application: nil, event: EventsLost(lost: count))
    return (try? JSONInput.scan(notification.parameters.string, subject: "an event")).flatMap { BrokerEvent($0) }
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
      case .archiveOpened: .archiveOpened(try ArchiveOpened(wire: slice))
      case .archiveClosed: .archiveClosed(try ArchiveClosed(wire: slice))
      case .archiveDamaged: .archiveDamaged(try ArchiveDamaged(wire: slice))
      case .archiveUnreadable: .archiveUnreadable(try ArchiveUnreadable(wire: slice))
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
