// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// What a client may subscribe to (`Protocol/notifications.md`).
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
  case archiveOpened
  case archiveClosed
  case archiveDamaged
  case archiveUnreadable
  case archiveImported
  case applicationDiscarded

  // Crashes
  case restorationCrashed
  case stateQuarantined
  case archiveQuarantined
  case quarantineEnded

  /// Comes to every subscription that has lost something, whatever it asked for.
  case eventsLost

  package static let plural = "names of events"

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard let name = slice.string() else { throw Misfit("the name of an event") }
    guard let event = EventName(rawValue: name) else {
      let beginning = JSONText(.string(String(name.unicodeScalars.prefix(Self.nameLengthMax)))).string
      let known = Self.allCases.map(\.rawValue).joined(separator: ", ")
      throw Misfit(.unsuited("there is no event of the name \(beginning)", hint: "The events are \(known)."), at: "")
    }
    self = event
  }

  /// So much of a wrong name is repeated in the error.
  private static let nameLengthMax = 64
}
