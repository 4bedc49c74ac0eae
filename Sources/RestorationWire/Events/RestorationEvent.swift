// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// An event for subscribers. It contains facts, never a state.
package protocol RestorationEvent: WireObject, Hashable {
  static var name: EventName { get }

  static var summary: String { get }
}

/// The notification `event`. Its text is made once for all subscriptions.
package struct EventNotification: Sendable {
  package static let method = "event"
  package static let summary = "Something happened that this connection has subscribed to."
  package static let parameters: [Schema.Member] = [
    .required("subscription", .integer(1...), "Number of the subscription."),
    .required("name", .openWords(EventName.self), "What happened. The other members depend on it."),
    .optional("application", .applicationName, "Whose event it is; absent in `eventsLost`."),
  ]

  /// The JSON object without `subscription`.
  private let members: [UInt8]

  /// - Parameter application: `nil` if the event is about the subscription itself.
  package init(application: ApplicationName?, event: some RestorationEvent) {
    var writer = JSONWriter(reserving: 256)
    writer.object { writer in
      writer.member("name", type(of: event).name)
      writer.member("application", ifPresent: application?.description)
      event.writeMembers(to: &writer)
    }
    members = writer.bytes
  }

  /// - Parameter subscription: its number on its connection.
  package func parameters(for subscription: Int64) -> JSONText {
    JSONText(validated: Array("{\"subscription\":\(subscription),".utf8) + members.dropFirst())
  }

  package static func facts(of name: EventName) -> any RestorationEvent.Type {
    switch name {
    case .sessionBegan: SessionBegan.self
    case .sessionEnded: SessionEnded.self
    case .objectRegistered: ObjectRegistered.self
    case .objectUnregistered: ObjectUnregistered.self
    case .pathChanged: ObjectMoved.self
    case .stateEncoded: StateEncoded.self
    case .encodeFailed: EncodeFailed.self
    case .generationSealed: GenerationSealed.self
    case .generationDropped: GenerationDropped.self
    case .archiveOpened: ArchiveOpened.self
    case .archiveClosed: ArchiveClosed.self
    case .archiveDamaged: ArchiveDamaged.self
    case .archiveUnreadable: ArchiveUnreadable.self
    case .archiveLost: ArchiveLost.self
    case .archiveConflict: ArchiveSetAside.self
    case .replicaBehind: ReplicaBehind.self
    case .replicaCaughtUp: ReplicaCaughtUp.self
    case .archiveImported: ArchiveImported.self
    case .applicationDiscarded: ApplicationDiscarded.self
    case .restorationCrashed: RestorationCrashed.self
    case .stateQuarantined: StateQuarantined.self
    case .archiveQuarantined: ArchiveQuarantined.self
    case .quarantineEnded: QuarantineEnded.self
    case .eventsLost: EventsLost.self
    }
  }
}

/// Stands for events that were dropped because the client did not read.
public struct EventsLost: RestorationEvent {
  package static let name = EventName.eventsLost
  package static let summary = "Events did not fit."

  public package(set) var lost: Int64 = 0
  package init() {}

  package init(lost: Int64) { self.lost = lost }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("lost", &lost, .from(1), "How many events.")
  }
}

/// The names a client may subscribe to (`Protocol/notifications.md`).
public enum EventName: String, WireWord {
  package static let schema = Schema.shared("EventName", .words(Self.self))

  // Sessions
  case sessionBegan
  case sessionEnded

  // Objects and their states
  case objectRegistered
  case objectUnregistered
  case pathChanged
  case stateEncoded
  case encodeFailed

  // Archives
  case generationSealed
  case generationDropped
  case archiveOpened
  case archiveClosed
  case archiveDamaged
  case archiveUnreadable
  case archiveLost
  case archiveConflict
  case replicaBehind
  case replicaCaughtUp
  case archiveImported
  case applicationDiscarded

  // Crashes
  case restorationCrashed
  case stateQuarantined
  case archiveQuarantined
  case quarantineEnded

  /// Sent to every subscription that has lost events, even if not subscribed to.
  case eventsLost

  package static let plural = "names of events"

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard let name = slice.string() else { throw Misfit("the name of an event") }
    guard let event = EventName(rawValue: name) else {
      let beginning = JSONText(.string(String(name.unicodeScalars.prefix(Self.nameLengthMax)))).string
      let known = Self.allCases.map(\.rawValue).joined(separator: ", ")
      throw Misfit(.unsuited("unknown event \(beginning)", hint: "The events are \(known)."), at: "")
    }
    self = event
  }

  /// How much of a wrong name the error repeats.
  private static let nameLengthMax = 64
}
