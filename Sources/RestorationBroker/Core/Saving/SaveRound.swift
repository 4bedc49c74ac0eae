// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// A save round of an application: what has come for it, and who waits for it (R11, R12).
///
/// Confined to the application that holds it. No state is written before its commit.
package final class SaveRound {
  /// How clients are told of it: 1, 2, 3 … as long as the broker runs.
  let number: Int64
  let begun: Moment
  var machine: StateMachine
  var callers: [Waiting] = []
  /// What is still to be carried out; an action that leads to others does not begin them by itself.
  var actions: [StateMachine.Action] = []
  var isPerforming = false
  /// It goes on also when its last caller cancels: it began by itself, or somebody who asked for it has left.
  var isWanted = false
  /// States that have come, in the order in which they came.
  private(set) var staged: [StagedState] = []
  private var places: [NodeID: Int] = [:]
  /// By how much the archive would grow by them.
  private(set) var stagedBytes = 0
  /// The application's own state, and who gave it.
  var application: (state: CheckedState, session: SessionID)?
  /// Why there is none although the delegate was to give one; `why` is nil where its session was lost.
  var applicationStale: (session: SessionID, owner: ObjectOwner, why: String?, message: String?)?
  /// What owners have said of states that they could not give.
  var messages: [NodeID: String] = [:]
  /// Views with an element that was not named when it was asked for (R28).
  var unnamed: Set<NodeID> = []
  /// Nodes that the generation will hold, as far as it is known.
  var reached: Set<NodeID> = []
  /// When objects were looked for; what is claimed later is not of this round.
  var walked: Int64 = 0

  init(number: Int64, deadline: Int64, at now: Moment) {
    self.number = number
    begun = now
    machine = StateMachine(deadline: now.monotonic + deadline)
  }

  func stage(_ state: StagedState, growth: Int) {
    places[state.target.node] = staged.count
    staged.append(state)
    stagedBytes += growth
  }

  func staged(_ node: NodeID) -> StagedState? { places[node].map { staged[$0] } }

  /// What the data source has said of an element: nil takes it out (R28).
  func identify(_ question: StateMachine.Question, as identifier: String?) {
    guard let place = places[question.node] else { return }
    if let identifier {
      staged[place].elements[question.element]?.identifier = identifier
    } else {
      staged[place].elements[question.element] = nil as RestorableElement?
    }
  }

  /// Who waits for the round, and how long the lists of its answer may be.
  struct Waiting {
    var call: LongCall
    let bytesMax: Int
  }

  /// What a call of the round asks for.
  package enum Question {
    case decide, prepare, encode
    case identify(StateMachine.Question)
  }
}

/// A state that has come in a round and waits for its commit.
struct StagedState {
  let target: EncodeTarget
  /// Everything but the elements.
  var record: StateRecord
  /// Those that the data source has not are nil (R28).
  var elements: [RestorableElement?]
  let digest: StateDigest
  /// The application's last change when it came: a newer row of the object is the session's last word (R12).
  let sequence: SequenceNumber
}

/// Tells whether two states are the same without keeping either: 128 bits that differ from process to process.
struct StateDigest: Hashable {
  private let high: Int
  private let low: Int

  /// Of all that would be stored but the time.
  init(_ record: StateRecord) {
    high = StateDigest.hash(record, 0)
    low = StateDigest.hash(record, 1)
  }

  private static func hash(_ record: StateRecord, _ seed: UInt8) -> Int {
    var hasher = Hasher()
    hasher.combine(seed)
    record.text.withUnsafeBytes { hasher.combine(bytes: $0) }
    hasher.combine(record.references)
    hasher.combine(record.elements)
    hasher.combine(record.context)
    hasher.combine(record.session)
    hasher.combine(record.isEarly)
    return hasher.finalize()
  }
}
