// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
// Parameters and results are defined once, for the broker and its clients: importing the library gives access to them.
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
  /// The keys that this version knows as JSON text, under the names that UIKit has for them.
  public var jsonText: String { text.string }

  /// `nil` unless the text is a coder.
  init?(coder text: JSONText) {
    guard let slice = text.scanned else { return nil }
    try? self.init(wire: slice)
  }
}

extension ArchivedObject {
  /// `nil` unless available or quarantined, and if it is redacted.
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
  /// Who wrote last and when; `nil` if there is no write.
  public var origin: ReservedKeys? { coder.flatMap(ReservedKeys.init(coder:)) }
}

extension RestorableElement {
  /// The elements of an array; `nil` unless the text is one.
  static func read(_ text: JSONText?) -> [RestorableElement]? {
    guard let text else { return [] }
    return text.scanned.flatMap { [RestorableElement]($0) }
  }
}

// MARK: Others

extension RegisteredObject {
  /// The handle, to be used in further calls.
  public var reference: ObjectReference { .handle(object) }
}

extension ArchiveProgress {
  /// Told on a thread of the library, never two at a time, and before the call returns: return soon.
  public typealias Handler = @Sendable (ArchiveProgress) -> Void
}
