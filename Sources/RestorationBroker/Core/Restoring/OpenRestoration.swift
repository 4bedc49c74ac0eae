// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

/// The restoration that an application is in: its decisions, and what carries them out.
///
/// Confined to the application that holds it.
final class OpenRestoration {
  /// Tells its calls and reads from those of an earlier one.
  let number: Int
  var decisions: Restoration
  /// Who gets the answer, each with the bytes that it may have.
  var callers: [(call: LongCall, bytesMax: Int)] = []
  /// The paths that objects had when they were planned, for those that have none in the end.
  var paths: [NodeID: IdentifierPath] = [:]
  /// What the delegate is given; read once.
  var application: ApplicationState?
  /// What the sessions are being handed, until their calls are sent.
  var batches: [SessionID: OutgoingBatch] = [:]
  var calls: Set<CallNumber> = []
  /// What clients have said of objects that they could not make or fill.
  var messages: [NodeID: String] = [:]
  /// Objects whose factories are not called before states handed out earlier are proven (R31).
  var heldFactoryCalls: [(node: NodeID, lookup: RestoringStep.Lookup, session: SessionID)] = []
  /// Units that were to start, and why those of them did not that did not.
  var startedUnits: Set<String> = []
  var failedUnits: [String: String] = [:]
  /// Whether a unit was asked to start and has not failed.
  var isStarting: Bool { !startedUnits.allSatisfy { failedUnits[$0] != nil } }
  /// The unit that brings each object that has one.
  var units: [NodeID: UnitName] = [:]
  /// Actions that are still to be carried out; one that leads to others does not begin them by itself.
  var actions: [Restoration.Action] = []
  var isPerforming = false
  /// When the timer fires that is set.
  var timerDue: Int64?

  init(number: Int, _ decisions: Restoration) { (self.number, self.decisions) = (number, decisions) }

  func item(of node: NodeID) -> Restoration.Item? { decisions.index[node].map { decisions.items[$0] } }

  /// Whether the session is being handed the node's state, or was and has not answered.
  func isHanding(_ node: NodeID, to session: SessionID) -> Bool { item(of: node)?.place == .handed(session) }
}

/// States on their way to a session: read, then with their elements found in today's data, then sent (R21, R28).
struct OutgoingBatch {
  var handouts: [Restoration.Handout]
  var records: [NodeID: StateRecord] = [:]
  /// Elements as they are to be handed out, once a data source was asked.
  var elements: [NodeID: [RestorableElement]] = [:]
}

/// What a restoration reads.
package enum RestoringRead: Sendable, Hashable {
  /// The application's own state, and who is to be called with it.
  case application(SessionID, isAsking: Bool)
  /// The state of an object that the session is to make.
  case make(NodeID, RestoringStep.Lookup, SessionID)
  /// The states of the session's batch.
  case batch(SessionID)
  /// Nothing: everything written before is durable, and its answers are sent.
  case end
}

/// What a restoration has called a client for.
package enum RestoringCall: Hashable {
  case ask
  case make(NodeID)
  case handOut(SessionID)
  case tell
}
