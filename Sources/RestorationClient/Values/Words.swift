// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
// Parameters and results are defined once, for the broker and its clients; this gives access to them.
@_exported public import RestorationWire

// MARK: Durations

extension SaveResult {
  public var duration: Duration { .milliseconds(milliseconds) }
}

extension RestoreResult {
  public var duration: Duration { .milliseconds(milliseconds) }
}

extension ArchiveVerification {
  public var duration: Duration { .milliseconds(milliseconds) }
}

extension ArchiveBackup {
  public var duration: Duration { .milliseconds(milliseconds) }
}

extension BrokerStatistics {
  public var uptime: Duration { .milliseconds(uptimeMilliseconds) }
}

// MARK: States

extension ReservedKeys {
  /// The known keys as JSON text, under UIKit's names.
  public var jsonText: String { text.string }

  init?(coder text: JSONText) {
    guard let slice = text.scanned else { return nil }
    try? self.init(wire: slice)
  }
}

extension ArchivedObject {
  /// `nil` unless available or quarantined, and if redacted.
  public var state: RestorableState? { stateText.map { RestorableState($0) } }

  /// Who wrote the state; `nil` if there is none.
  public var origin: ReservedKeys? { coderText.flatMap(ReservedKeys.init(coder:)) }

  /// Selected and topmost elements written with the state.
  public var elements: [RestorableElement] { RestorableElement.read(elementsText) ?? [] }
}

extension QuarantinedState {
  /// `nil` if it is redacted or unreadable.
  public var state: RestorableState? { stateText.map { RestorableState($0) } }

  /// Who wrote it; `nil` if unknown.
  public var origin: ReservedKeys? { coderText.flatMap(ReservedKeys.init(coder:)) }

  /// Selected and topmost elements written with it.
  public var elements: [RestorableElement] { RestorableElement.read(elementsText) ?? [] }
}

extension RestorationSituation {
  /// The last writer and time; `nil` if there is no write.
  public var origin: ReservedKeys? { coder.flatMap(ReservedKeys.init(coder:)) }
}

extension RestorableElement {
  /// `nil` unless the text is an array.
  static func read(_ text: JSONText?) -> [RestorableElement]? {
    guard let text else { return [] }
    return text.scanned.flatMap { [RestorableElement]($0) }
  }
}

// MARK: Others

extension RegisteredObject {
  public var reference: ObjectReference { .handle(object) }
}

extension ArchiveProgress {
  /// Called on a thread of the library, never two at a time, and before the call returns: return soon.
  public typealias Handler = @Sendable (ArchiveProgress) -> Void
}
