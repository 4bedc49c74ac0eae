// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// What a client may subscribe to (`Protocol/notifications.md`).
package enum EventName: String, CaseIterable, Sendable, JSONWritable {
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

  /// Reads the member `name`, an array of these names; nil where it is absent or null.
  package static func read(from reader: ParameterReader, _ name: String) throws(ErrorObject) -> [EventName]? {
    guard let texts = try reader.strings(name) else { return nil }
    let known = "The events are \(allCases.map(\.rawValue).joined(separator: ", "))."
    guard !texts.isEmpty else {
      throw .invalidParameter(
        reader.pointer(name),
        "\(name) names no event",
        hint: "Leave \(name) out for all of them. \(known)"
      )
    }
    var names: [EventName] = []
    for text in texts {
      guard let event = EventName(rawValue: text) else {
        let beginning = String(text.unicodeScalars.prefix(nameLengthMax))
        throw .invalidParameter(
          reader.pointer("\(name)/\(names.count)"),
          "there is no event of the name \(JSONText(.string(beginning)).string)",
          hint: known
        )
      }
      names.append(event)
    }
    return names
  }

  /// So much of a wrong name is repeated in the error.
  private static let nameLengthMax = 64
}
