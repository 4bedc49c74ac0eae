// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

final class Client {
  let id: ClientID
  let process: ClientProcess?
  /// The application, without instance, that the client is confined to; `nil` if it may use all.
  let confinement: String?
  private unowned let context: CoreContext
  let unit: String?
  var bound: (application: ApplicationID, session: SessionID)? { didSet { context.emit(.clientChanged(id)) } }
  /// Tokens of the detached sessions that its calls began.
  var detached: [ApplicationID: String] = [:] {
    didSet { if detached != oldValue { context.emit(.clientChanged(id)) } }
  }
  /// The record of an adopted client whose archives are still opening.
  var pendingAdoption: ClientSnapshot? { didSet { tellWaiting() } }
  /// Applications that it has named; counted against their connection limit.
  var applications: Set<ApplicationID> = []
  /// The archive that it waits for. `waitsSince` orders the waits.
  var waitsFor: ApplicationID? { didSet { tellWaiting() } }
  var waitsSince: Int64 = 0
  /// Its `initialize` waits for the list of instances.
  var choosesInstance = false { didSet { tellWaiting() } }
  /// One of its messages waits for a probe of processes.
  var isProbing = false { didSet { tellWaiting() } }
  var upload: ArchiveUpload?
  var uploadCounter = 0
  /// The first queued message is an import that waits for its next piece.
  var isImporting = false { didSet { tellWaiting() } }
  /// The first queued message waits for room for its answer.
  var isDraining = false { didSet { tellWaiting() } }
  /// Its connection has ended. The client is removed when its queue is empty.
  var hasLeft = false
  /// It has left, and no queued message must take effect. A session that it resumes must stay.
  var wantsNothing: Bool {
    hasLeft
      && queue.allSatisfy { message in
        message.method == Initialize.method && (try? Initialize(message.parameters))?.session == nil
      }
  }
  var queue: [IncomingMessage] = []
  var cancelled: Set<Caller> = []
  /// Its input is paused, because too many of its messages wait.
  var isHeld = false
  var lastSubscription: Int64 = 0
  /// The choice of its `initialize` with `instance: "auto"`.
  var chosenInstance: ApplicationName?
  /// Another host has its application (R36): calls are refused until it says goodbye or a session begins.
  var loss: (application: ApplicationName, loss: ArchiveLoss)?
  var lastRow: MethodTable.Row?
  /// The last `application` member that it sent, and its application. Ids are never reused.
  var lastApplication: (text: String, id: ApplicationID)?

  /// Requests and notifications can be sent to it.
  var canBeCalled = true

  /// Whether reading pauses while its messages wait. The transport limits the bytes of unanswered requests, but does
  /// not count notifications after their delivery; so their bytes count here.
  var hasEnoughQueued: Bool {
    let bytes = queue.reduce(0) { $1.caller.call == nil ? $0 + $1.parameters.bytes : $0 }
    return queue.count >= 64 || bytes > 1 << 20
  }

  var isWaiting: Bool { waitsFor != nil || choosesInstance || isProbing || isImporting || awaitsAdoption || isDraining }

  /// A pattern, because `!= nil` would copy the snapshot for every message.
  private var awaitsAdoption: Bool { if case nil = pendingAdoption { false } else { true } }

  /// While a client waits, its connection stays busy, so that a restart cannot lose the message unnoticed.
  private var isHolding = false

  func enqueue(_ message: IncomingMessage) {
    queue.append(message)
    guard !isHeld, hasEnoughQueued else { return }
    isHeld = true
    context.emit(.setWaiting(id, true))
  }

  /// Begins to handle the queued messages, each when there is room for its answer.
  func drain() {
    guard !isWaiting else { return }
    isDraining = !queue.isEmpty
    awaitRoom()
    guard isHeld, !isDraining else { return }
    isHeld = false
    context.emit(.setWaiting(id, false))
  }

  /// Cancels the import of a client that has left.
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
