// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// One connection, as the core knows it.
final class Client {
  let id: ClientID
  let process: ClientProcess?
  /// The application that it may use, without instance; `nil` if it may use all.
  let confinement: String?
  private unowned let context: CoreContext
  /// The unit its process was seen in.
  let unit: String?
  /// The session it initialized or resumed.
  var bound: (application: ApplicationID, session: SessionID)? { didSet { context.emit(.clientChanged(id)) } }
  /// Tokens of detached sessions its calls made, by application.
  var detached: [ApplicationID: String] = [:] {
    didSet { if detached != oldValue { context.emit(.clientChanged(id)) } }
  }
  /// Adopted from the former broker, and waiting for its archives to open.
  var pendingAdoption: ClientSnapshot? { didSet { tellWaiting() } }
  /// Applications it has named; counted against their connection limit.
  var applications: Set<ApplicationID> = []
  /// The archive that it waits for, and the number of that wait.
  var waitsFor: ApplicationID? { didSet { tellWaiting() } }
  var waitsSince: Int64 = 0
  /// Its `initialize` waits for the list of instances.
  var choosesInstance = false { didSet { tellWaiting() } }
  /// One of its messages waits until it is known whether processes have ended.
  var isProbing = false { didSet { tellWaiting() } }
  /// The document that it is importing.
  var upload: ArchiveUpload?
  var uploadCounter = 0
  /// The first of its queued messages is an import that goes on a little later.
  var isImporting = false { didSet { tellWaiting() } }
  /// The next of its queued messages waits until there is room for its answer.
  var isDraining = false { didSet { tellWaiting() } }
  /// Its connection has ended; it is removed when its queue is empty.
  var hasLeft = false
  /// It has left, and sent nothing that is to take effect without it; a session that it resumes is to stay.
  var wantsNothing: Bool {
    hasLeft
      && queue.allSatisfy { message in
        message.method == Initialize.method && (try? Initialize(message.parameters))?.session == nil
      }
  }
  /// Messages queued behind a waiting one.
  var queue: [IncomingMessage] = []
  /// Queued calls that were cancelled.
  var cancelled: Set<Caller> = []
  /// Its input is paused, because too many of its messages wait.
  var isHeld = false
  /// Number of the subscription it made last.
  var lastSubscription: Int64 = 0
  /// The instance found for its `initialize` with `instance: "auto"`.
  var chosenInstance: ApplicationName?
  /// Its session has ended because another host has this application: calls are refused until it says goodbye, or a
  /// session begins (R36).
  var loss: (application: ApplicationName, loss: ArchiveLoss)?
  /// Of the method it called last.
  var lastRow: MethodTable.Row?
  /// The last `application` member it sent, and its application; ids are never used again.
  var lastApplication: (text: String, id: ApplicationID)?

  /// It can be sent more than answers.
  var canBeCalled = true

  /// Whether no more is to be read while its messages wait. The transport limits the bytes of requests, which wait for
  /// their answers; of notifications it knows nothing after their delivery.
  var hasEnoughQueued: Bool {
    let bytes = queue.reduce(0) { $1.caller.call == nil ? $0 + $1.parameters.bytes : $0 }
    return queue.count >= 64 || bytes > 1 << 20
  }

  /// Whether its messages wait behind an earlier one.
  var isWaiting: Bool { waitsFor != nil || choosesInstance || isProbing || isImporting || awaitsAdoption || isDraining }

  /// A pattern, because `!= nil` copies what it compares, and every message asks.
  private var awaitsAdoption: Bool { if case nil = pendingAdoption { false } else { true } }

  /// A waiting client keeps its connection busy, so that a restart cannot lose its message unnoticed.
  private var isHolding = false

  /// Queues a message behind one that waits.
  func enqueue(_ message: IncomingMessage) {
    queue.append(message)
    guard !isHeld, hasEnoughQueued else { return }
    isHeld = true
    context.emit(.setWaiting(id, true))
  }

  /// The queued messages follow one by one, each when there is room for its answer.
  func drain() {
    guard !isWaiting else { return }
    isDraining = !queue.isEmpty
    awaitRoom()
    guard isHeld, !isDraining else { return }
    isHeld = false
    context.emit(.setWaiting(id, false))
  }

  /// Nobody waits any longer for the import that goes on a little later; it ends as if it was cancelled.
  func abandonImport() {
    guard isImporting, let caller = queue.first?.caller, caller.call != nil else { return }
    cancelled.insert(caller)
  }

  func awaitRoom() { if isDraining, let next = queue.first { context.emit(.awaitRoom(next.caller)) } }

  private func tellWaiting() {
    guard isWaiting != isHolding else { return }
    isHolding = isWaiting
    context.emit(isHolding ? .hold(id) : .release(id))
  }

  init(id: ClientID, process: ClientProcess?, confinement: String?, unit: String?, context: CoreContext) {
    (self.id, self.process, self.confinement, self.unit, self.context) = (id, process, confinement, unit, context)
  }
}
