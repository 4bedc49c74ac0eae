// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
package import RestorationWire

/// Numbers an application for as long as the broker runs.
package typealias ApplicationID = Int

/// The receiver of an answer; `call` is `nil` for a notification, which has none.
package struct Caller: Hashable, Sendable {
  package let client: ClientID
  package let call: Conversation.Call?

  package init(client: ClientID, call: Conversation.Call?) { (self.client, self.call) = (client, call) }

  /// A request of the broker itself.
  static let nobody = Caller(client: 0, call: nil)
}

/// The answer to a call.
package enum Answer: Sendable {
  case result(any JSONWritable & Sendable)
  case error(ErrorObject)
}

/// What an event led to: the changes of one transaction, then what else is to be done, in this order.
package struct Outcome: Sendable {
  package fileprivate(set) var changes: [(application: ApplicationID, change: ArchiveChange)] = []
  package fileprivate(set) var effects: [Effect] = []

  package init() {}

  package var isEmpty: Bool { changes.isEmpty && effects.isEmpty }

  package mutating func removeAll() {
    changes.removeAll(keepingCapacity: true)
    effects.removeAll(keepingCapacity: true)
  }

  /// The changes will not be stored: what promises that they are becomes a refusal, or is not said.
  mutating func lose(for error: ErrorObject) {
    changes = []
    effects = effects.compactMap { effect in
      switch effect {
      case .respondAfter(_, _, let caller, _), .readState(_, _, let caller):
        return .respond(caller, .error(error))
      case .read(_, let request, _):
        return request.caller.call == nil ? nil : .respond(request.caller, .error(error))
      case .notify: return nil
      case .announce(let id, let announcement): return announcement.lost.map { .announce(id, $0) }
      case .respond, .carryOut, .open, .takeOver, .goOn, .hurry, .giveUp, .close, .list, .openSocket, .reportStatistics,
        .reportMetrics, .call, .endCall, .tell, .tellLoss, .hold, .release, .confine, .clientChanged, .endSubscription,
        .park, .unpark, .replica,
        .watch, .watchProcess, .probe, .unwatch, .setTimer, .cancelTimer, .checkUnit, .startUnit, .backUp, .setWaiting,
        .expect, .awaitRoom, .disconnect, .log:
        return effect
      }
    }
  }

  mutating func append(_ later: Outcome) {
    if isEmpty { return self = later }
    changes += later.changes
    effects += later.effects
  }
}

/// What the core wants done besides writing.
package enum Effect: Sendable {
  case respond(Caller, Answer)
  /// Respond when the application's change with this number is durable; an error if it cannot be (R15).
  case respondAfter(ApplicationID, SequenceNumber, Caller, Answer)
  /// Answer a decode with this row once it is durable: `decoded` makes the answer, or `readingFinished`.
  case readState(ApplicationID, StateRequest.Row, Caller)
  /// Read states once the changes up to `after` are durable, and bring them to `readingFinished`.
  case read(ApplicationID, StateRequest, after: SequenceNumber)
  /// Do a piece of work once the changes up to `after` are durable, and bring its outcome to `jobFinished`.
  case carryOut(ApplicationID, StoreJob, after: SequenceNumber)
  /// Open the archive, and call `opened`.
  case open(ApplicationID, ApplicationName, for: ArchivePurpose)
  /// Whichever host has the archive is to lose it to this one when it is opened (R36).
  case takeOver(ApplicationName)
  /// Call `goOn` in another turn of the loop.
  case goOn(ApplicationID)
  /// A client waits for what becomes of the archive after a failed transaction.
  case hurry(ApplicationID)
  /// No client waits any longer for the opening of the archive: it may fail.
  case giveUp(ApplicationID)
  /// Close the archive, and then remove its files if that is said.
  case close(ApplicationID, ArchiveRemoval?)
  /// List all archives, and pass the list to `listingFinished`.
  case list(ListingPurpose)
  /// Have a socket for the application, of which there may be so many in all, and answer where it is.
  case openSocket(application: String, socketsMax: Int, Caller)
  /// Ask the store for it, and answer.
  case replica(ReplicaRequest, Caller)
  /// Answer `statistics`: counters and gauges of core and service together.
  case reportStatistics(Caller)
  /// Answer a request for the metrics, with these applications.
  case reportMetrics(Caller, MetricsPage, [ApplicationOverview])
  /// Call the client, and pass the outcome to `callEnded`.
  case call(ApplicationID, CallNumber, ClientID, method: String, parameters: JSONText)
  /// The call's answer is no longer wanted.
  case endCall(ClientID, CallNumber, of: ApplicationID)
  /// If the client is still connected, send a notification once everything that this event wrote is durable.
  case notify(ApplicationID, Recipient, method: String, parameters: JSONText)
  /// If the client is still connected, send a notification at once: it is not about a change.
  case tell(ClientID, method: String, parameters: JSONText)
  /// Tell a subscription that it has missed an unknown number of events.
  case tellLoss(Subscriber)
  /// A message of the client begins to wait in the core, or ends waiting; both are reported equally often.
  case hold(ClientID)
  case release(ClientID)
  /// The client is confined to one application, and not told what is outside of it.
  case confine(ClientID, to: String)
  /// The client's context for the next broker has changed.
  case clientChanged(ClientID)
  /// Tell subscribers of an event when its condition is met.
  case announce(ApplicationID, Announcement)
  /// Report a subscription's losses now, because it has ended.
  case endSubscription(Subscriber)
  /// The call may wait long, so it does not count as in flight.
  case park(Caller)
  case unpark(Caller)
  /// Call `processExited` when the client's process ends.
  case watch(ClientID, ApplicationID, SessionID)
  /// The same for a process of a former broker's client.
  case watchProcess(ClientProcess, ApplicationID, SessionID)
  /// Check whether the processes of these sessions have ended, and call `probed`.
  case probe(ApplicationID, [SessionID], ProbedCall)
  case unwatch(ApplicationID, SessionID)
  /// Call `timerFired` after this many milliseconds; replaces a timer of the same name.
  case setTimer(TimerName, milliseconds: Int64)
  case cancelTimer(TimerName)
  /// Read the files of a session's unit, and pass them to `unitChecked`.
  case checkUnit(ApplicationID, SessionID, unit: UnitName)
  /// Start a unit for the application if its file permits that; otherwise call `unitFailed` (R22).
  case startUnit(ApplicationID, unit: UnitName)
  /// Keep a copy of the archive as the last good one (R32), also in place of one in an earlier format if that is due.
  case backUp(ApplicationID, replacingFormer: Bool)
  /// Pause reading from the client while too many of its messages wait, or resume it.
  case setWaiting(ClientID, Bool)
  /// The caller will get about so many bytes, which count from now on.
  case expect(Int, Caller)
  /// Pass this message to `goOn` once there is room for its answer; those of its client behind it wait.
  case awaitRoom(Caller)
  /// End the connection after its output.
  case disconnect(ClientID)
  case log(LogLevel, String, of: ApplicationName?, Incident? = nil)
}

/// How a notification reaches its session.
package enum Recipient: Hashable, Sendable {
  case client(ClientID)
  /// It fetches notifications by `nextRequest`; pass this one to `notified`.
  case poller(SessionID)
}

/// The severity of a log entry.
package enum LogLevel: Sendable {
  case info, warning, error
}

/// How the files of an archive are removed, and who is answered then.
package struct ArchiveRemoval: Sendable {
  var caller = Caller.nobody
  /// Files that were set aside because of damage go as well (R32).
  var withDamaged = false
}

/// Names a timer of the core.
package enum TimerName: Hashable, Sendable {
  /// The time for a lost connection's process to end is over (R30).
  case lost(ApplicationID, SessionID)
  /// A detached session has been idle long enough.
  case detached(ApplicationID, SessionID)
  /// The earliest decode window of the application closes (R31).
  case windows(ApplicationID)
  /// Early marks of claims that are old enough are cleared (R19).
  case early(ApplicationID)
  /// Suspects of the application have been on trial long enough (R31).
  case trial(ApplicationID)
  /// A registration has waited long enough for its parent, or others are looked at (R3).
  case parent(ApplicationID, Int)
  /// Idle exports of the application are dropped.
  case exports(ApplicationID)
  /// The open restoration has waited long enough (R21).
  case restoration(ApplicationID)
  /// The time for a data source's answer is over (R28).
  case elements(ApplicationID, Int)
  /// The archive has changed, and its daily copy is due (R32).
  case backup(ApplicationID)
  /// An application without sessions may leave memory: it is large, or one of too many.
  case unused(ApplicationID)
  /// An idle import is dropped.
  case upload(ClientID)
  /// The save round continues without the sessions that have not answered, or ends (R12).
  case round(ApplicationID)
  /// An automatic round may be due (R18).
  case changes(ApplicationID)
  /// Objects that were invalidated are pulled (R18).
  case invalidated(ApplicationID)
  /// The time for pulls is over.
  case pulls(ApplicationID)
  /// A session's `nextRequest` has waited long enough.
  case poll(ApplicationID, SessionID)
  /// What another host waits for is saved, or there is no time left for that (R36).
  case leave(ApplicationID)
}

/// States that the core reads, and their purpose.
package struct StateRequest: Sendable {
  package var caller: Caller
  package var purpose: Purpose
  /// The rows asked for.
  package var rows: [Row]

  package init(caller: Caller, purpose: Purpose, rows: [Row]) {
    (self.caller, self.purpose, self.rows) = (caller, purpose, rows)
  }

  package struct Row: Hashable, Sendable {
    package var node: NodeID
    package var sequence: SequenceNumber
    /// Those of the text, if it is for an answer to a client.
    package var bytes: Int

    package init(node: NodeID, sequence: SequenceNumber, bytes: Int = 0) {
      (self.node, self.sequence, self.bytes) = (node, sequence, bytes)
    }
  }

  /// About as long the answer will be.
  var bytes: Int { rows.reduce(0) { $0 + $1.bytes } }

  package enum Purpose: Sendable {
    /// Answer a decode; an owner's is `isResolving`, if its elements are found in the current data first (R28).
    case decode(node: NodeID, isResolving: Bool = false)
    /// Ask the view's data source for identifiers of elements that were pushed (R28).
    case nameElements(of: NodeID)
    /// Something for the restoration with this number.
    case restoring(Int, RestoringRead)
    /// Answer one page of `readArchive`.
    case page(ArchivePage)
    /// Answer one page of `exportArchive`.
    case export(ExportPage)
    /// Answer one page of `listQuarantine`.
    case quarantine(QuarantinePage)
    /// Ask the delegate whether to save; the number of the round.
    case decision(round: Int64)
    /// Open again what was closed.
    case reopening(ClosedShelf.Subtree)
  }
}

/// A call that continues once it is known whether the blocking processes are alive.
package enum ProbedCall: Sendable {
  case message(IncomingMessage)
  /// A registration whose parent was registered (R3).
  case registration(Caller, SessionID, RegisterObjectForStateRestoration)
  /// `initialize` with `instance: "auto"`; the processes of these applications are known.
  case instance(IncomingMessage, known: Set<ApplicationID>)
}

/// A request or notification of a client.
package struct IncomingMessage: Sendable {
  package var caller: Caller
  package var method: String
  package var parameters: Parameters
  /// False if the broker can send only answers to the client.
  package var canBeCalled = true
}

/// All archives that are known here.
package struct ArchiveListing: Sendable {
  package var summaries: [ArchiveSummary]
  /// The fleet's store was asked, but has not answered in time: what only other hosts have may be missing.
  package var isIncomplete = false
}

/// The purpose of a listing of the archives.
package enum ListingPurpose: Sendable {
  case listApplications(Caller)
  /// A page of the metrics.
  case metrics(Caller, MetricsPage)
  /// `initialize` with `instance: "auto"`, which continues with the instance found.
  case chooseInstance(IncomingMessage)
}

/// Limits, clock, numbers and outgoing effects that all parts of the core share.
package final class CoreContext {
  package var limits: Limits
  package internal(set) var settings: CoreSettings
  /// Times of the event being handled.
  package var now = Moment()
  @exclusivity(unchecked) package internal(set) var outcome = Outcome()
  var subscriptions = Subscriptions()
  /// When save rounds end because the broker ends, in monotonic milliseconds (R33).
  var roundsEnd: Int64?
  /// The broker is ending: no call may begin to wait.
  var isEnding = false
  /// Whether not too much of what the client's process has sent waits already.
  package var mayPark: (ClientID) -> Bool = { _ in true }
  /// Why the application may not have so many bytes more, or, without a number, an archive if it has none: beside what
  /// all others have.
  package var refusal: (ApplicationName, _ growth: Int?) -> ErrorObject? = { _, _ in nil }

  package init(limits: Limits, settings: CoreSettings) { (self.limits, self.settings) = (limits, settings) }

  func emit(_ effect: consuming Effect) { outcome.effects.append(effect) }

  func swapOutcome(with other: inout Outcome) { swap(&outcome, &other) }

  func append(_ later: Outcome) { outcome.append(later) }

  func write(_ change: consuming ArchiveChange, of application: ApplicationID) {
    outcome.changes.append((application, change))
  }
}

/// A point in time by both clocks, in milliseconds.
package struct Moment: Hashable, Sendable {
  /// For deadlines; monotonic.
  package var monotonic: Int64 = 0
  /// Since 1970, UTC; for information only.
  package var wall: Int64 = 0

  package init(monotonic: Int64 = 0, wall: Int64 = 0) { (self.monotonic, self.wall) = (monotonic, wall) }
}

/// The environment of the core.
package struct CoreSettings: Sendable {
  package var version: String
  package var systemVersion: String?
  /// For development: nothing is quarantined, and a quit by the user empties nothing.
  package var isDeveloperMode: Bool
  package var loginPolicies = LoginPolicies()
  /// How many objects are looked at in one piece (`LongTurn`), if about a microsecond is spent on each.
  package var pieceObjects = 4_096
  /// 128 fresh random bits, for session tokens and the first change id.
  package var random: @Sendable () -> (UInt64, UInt64)

  package init(
    version: String,
    systemVersion: String?,
    isDeveloperMode: Bool = false,
    loginPolicies: LoginPolicies = LoginPolicies(),
    random: @escaping @Sendable () -> (UInt64, UInt64)
  ) {
    (self.version, self.systemVersion) = (version, systemVersion)
    (self.isDeveloperMode, self.loginPolicies, self.random) = (isDeveloperMode, loginPolicies, random)
  }
}
