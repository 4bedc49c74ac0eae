// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// Something that happened at the broker: facts only, never a state.
///
/// `name` says what it is about; which of the other properties there are depends on it (`Protocol/notifications.md`).
/// Events of names that this version does not know have those it does, and all of their members in `jsonText`.
public struct BrokerEvent: Hashable, Sendable {
  /// What happened.
  public let name: Name
  /// The application, with its instance where it has one; nil where events were lost.
  public let application: String?

  // Objects and their states

  /// Handle of the object; nil where nobody has it registered.
  public let object: Int64?
  /// Path of the object; nil where its own identifier is nil (R4).
  public let path: [String]?
  /// Of `pathChanged`: the path before.
  public let formerPath: [String]?
  /// Of `objectRegistered`: what the object is to its application.
  public let objectKind: ObjectKind?
  /// Of `stateEncoded`: number of the write.
  public let sequence: Int64?
  /// Of `objectUnregistered`: whether its state stays in the archive.
  public let stateKept: Bool?
  /// Of `encodeFailed`: why.
  public let failure: Failure?

  // Sessions

  /// The process role of the session; nil where it gave none, and where there is no session.
  public let process: String?
  /// Number of the session's process.
  public let pid: Int64?
  /// Of `sessionBegan`: whether it is the application's delegate (R9).
  public let isDelegate: Bool?
  /// Of `sessionBegan`: whether a call opened it instead of `initialize`.
  public let isDetached: Bool?
  /// Of `sessionBegan`: whether the session found saved state, and why it finds itself as it is (R20).
  public let restoration: Restoration?
  /// Of `sessionEnded`: how.
  public let ending: Ending?
  /// Of `sessionEnded`: how the process ended, where it ended without a goodbye; later brokers know more words than
  /// `exited`, `signalled`, `outOfMemory`, `stopped` and `unknown`.
  public let processEnding: String?
  /// Of `sessionEnded`: the process's exit code, where it exited.
  public let exitCode: Int64?
  /// Of `sessionEnded`: name of the signal that ended the process, such as `SIGSEGV`.
  public let signal: String?
  /// Of `sessionEnded`: the unit that the process belonged to.
  public let unit: String?

  // Archives

  /// Of `archiveOpened`: the archive's UUID.
  public let archive: String?
  /// Of `generationSealed`, `archiveOpened`: number of the generation.
  public let generation: Int64?
  /// Of `generationSealed`: what it was made for, as `listGenerations` has it.
  public let generationKind: String?
  /// Of `sessionEnded`, `generationSealed`, `archiveOpened`, `archiveImported`, and of what follows crashes: objects it
  /// is about.
  public let objects: Int?
  /// Of `stateEncoded`, `generationSealed`, `archiveOpened`, `archiveImported`: bytes of the states it is about.
  public let bytes: Int?
  /// Of `objectUnregistered`, `applicationDiscarded`, `quarantineEnded`: what caused it.
  public let cause: Cause?
  /// Of `applicationDiscarded`: why, in the words of who asked for it.
  public let reason: String?
  /// Of `applicationDiscarded`: whether the generations went as well.
  public let discardedGenerations: Bool?
  /// Of `archiveDamaged`, `archiveUnreadable`: what is wrong and what was done, for people.
  public let message: String?

  // Crashes

  /// Of `restorationCrashed`: how many states it may have been.
  public let suspects: Int?
  /// Of `restorationCrashed`: path of the object whose state it was, where that is known.
  public let guilty: [String]?
  /// Of `restorationCrashed`: crashes in a row that count against it, or against the application.
  public let strikes: Int?

  /// Of `eventsLost`: how many events stood in its place.
  public let lost: Int64?

  /// All members as JSON text, on one line.
  public let jsonText: String

  /// What a session found at its beginning.
  public struct Restoration: Hashable, Sendable {
    /// Whether there was saved state.
    public let state: StateAvailability
    /// Why.
    public let reason: RestorationSituation.Reason
  }

  /// Why nothing was stored.
  public struct Failure: Hashable, Sendable {
    /// The error that a call would have been answered with.
    public let code: RestorationError.Code
    /// Of `limitExceeded`: which limit and by how much.
    public let limit: RestorationError.ExceededLimit?
  }
}

extension BrokerEvent: CustomStringConvertible {
  /// The JSON text.
  public var description: String { jsonText }
}

// Reading
extension BrokerEvent {
  /// Reads the parameters of the notification; nil where they have not the form that every event has.
  init?(_ parameters: JSONSlice) {
    guard let name = parameters["name"]?.string() else { return nil }
    self.name = Name(rawValue: name)
    application = parameters["application"]?.string()
    object = parameters["object"]?.integer()
    path = parameters["path"].flatMap { IdentifierPath($0)?.components }
    formerPath = parameters["from"].flatMap { IdentifierPath($0)?.components }
    let kind = parameters["kind"]?.string()
    objectKind = self.name == .objectRegistered ? kind.flatMap { ObjectKind(rawValue: $0) } : nil
    generationKind = self.name == .generationSealed ? kind : nil
    sequence = parameters["sequence"]?.integer()
    stateKept = parameters["stateKept"]?.bool()
    failure = parameters["error"].flatMap(Failure.init)
    process = parameters["process"]?.string()
    pid = parameters["pid"]?.integer()
    isDelegate = parameters["delegate"]?.bool()
    isDetached = parameters["detached"]?.bool()
    restoration = parameters["restoration"].flatMap(Restoration.init)
    ending = parameters["ending"]?.string().map { Ending(rawValue: $0) }
    processEnding = parameters["how"]?.string()
    exitCode = parameters["code"]?.integer()
    signal = parameters["signal"]?.string()
    unit = parameters["unit"]?.string()
    archive = parameters["archive"]?.string()
    generation = parameters["generation"]?.integer()
    objects = parameters["objects"]?.integer().flatMap { Int(exactly: $0) }
    bytes = parameters["bytes"]?.integer().flatMap { Int(exactly: $0) }
    cause = parameters["cause"]?.string().map { Cause(rawValue: $0) }
    reason = parameters["reason"]?.string()
    discardedGenerations = parameters["generations"]?.bool()
    message = parameters["message"]?.string()
    suspects = parameters["suspects"]?.integer().flatMap { Int(exactly: $0) }
    guilty = parameters["guilty"].flatMap { IdentifierPath($0)?.components }
    strikes = parameters["strikes"]?.integer().flatMap { Int(exactly: $0) }
    lost = parameters["lost"]?.integer()
    jsonText = parameters.compactText.string
  }

  /// Events that this process did not take in time.
  static func lost(_ count: Int64, of subscription: Int64) -> BrokerEvent? {
    let notification = EventNotification(subscription: subscription, application: nil, event: EventsLost(lost: count))
    return (try? JSONInput.scan(notification.parameters.string, subject: "an event")).flatMap { BrokerEvent($0) }
  }
}

extension BrokerEvent.Restoration {
  fileprivate init?(_ slice: JSONSlice) {
    guard let state = slice["state"]?.string().flatMap({ StateAvailability(rawValue: $0) }),
      let reason = slice["reason"]?.string().flatMap({ RestorationSituation.Reason(rawValue: $0) })
    else { return nil }
    self.init(state: state, reason: reason)
  }
}

extension BrokerEvent.Failure {
  fileprivate init?(_ slice: JSONSlice) {
    guard let code = slice["code"]?.integer().flatMap({ Int(exactly: $0) }) else { return nil }
    var limit: RestorationError.ExceededLimit?
    if let name = slice["limit"]?.string(), let max = slice["max"]?.integer(), let value = slice["value"]?.integer() {
      limit = RestorationError.ExceededLimit(name: name, max: max, value: value)
    }
    self.init(code: RestorationError.Code(rawValue: code), limit: limit)
  }
}
