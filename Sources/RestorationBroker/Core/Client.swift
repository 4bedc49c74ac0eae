// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// One connection, as far as the core knows it.
final class Client {
  let id: ClientID
  let process: ClientProcess?
  private unowned let context: CoreContext
  /// The unit its process was seen in.
  let unit: String?
  /// The session it initialized or resumed.
  var bound: (application: ApplicationID, session: SessionID)? { didSet { context.emit(.clientChanged(id)) } }
  /// Tokens of detached sessions its calls made, by application.
  var detached: [ApplicationID: String] = [:] {
    didSet { if detached != oldValue { context.emit(.clientChanged(id)) } }
  }
  /// A broker before this one had its connection, and archives have to be opened before it goes on.
  var pendingAdoption: ClientSnapshot? { didSet { tellWaiting() } }
  /// Applications it has named; counted against their connection limit.
  var applications: Set<ApplicationID> = []
  /// The archive it waits for, and since which wait.
  var waitsFor: ApplicationID? { didSet { tellWaiting() } }
  var waitsSince: Int64 = 0
  /// Its `initialize` waits for the list of instances.
  var choosesInstance = false { didSet { tellWaiting() } }
  /// One of its messages waits until it is known whether processes have ended.
  var isProbing = false { didSet { tellWaiting() } }
  /// A document that it imports, as far as it has come.
  var upload: ArchiveUpload?
  /// Its connection has ended; it goes when its queue is done.
  var hasLeft = false
  /// Messages that wait behind the one that waits.
  var queue: [IncomingMessage] = []
  /// Those of them that it does not want the answer to any more.
  var cancelled: Set<Caller> = []
  /// It is not read, because so many of its messages wait.
  var isHeld = false
  static let queuePause = 64
  /// Number of the subscription it made last.
  var lastSubscription: Int64 = 0
  /// The instance found for its `initialize` with `instance: "auto"`.
  var chosenInstance: ApplicationName?
  /// Of the method it called last.
  var lastRow: MethodTable.Row?
  /// The last `application` member it sent, and what it named; ids are never given again.
  var lastApplication: (text: String, id: ApplicationID)?

  /// It can be sent more than answers.
  var canBeCalled = true

  /// Its messages wait, because one that came before them does.
  var isWaiting: Bool { waitsFor != nil || choosesInstance || isProbing || pendingAdoption != nil }

  /// What the client has been told to wait for holds its connection: nothing of it may be lost unnoticed.
  private var isHolding = false

  private func tellWaiting() {
    guard isWaiting != isHolding else { return }
    isHolding = isWaiting
    context.emit(isHolding ? .hold(id) : .release(id))
  }

  init(id: ClientID, process: ClientProcess?, unit: String?, context: CoreContext) {
    (self.id, self.process, self.unit, self.context) = (id, process, unit, context)
  }
}
