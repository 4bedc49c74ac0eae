// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// The calls of a session that have not ended, and the questions to the present connection. Invariant: each added call
/// ends once, by `complete` or `fail`.
struct PendingCalls {
  typealias Ticket = RestorationSession.StateMachine.Ticket

  /// The result of a call: its answer, and the object if it registered one.
  struct Completion: Sendable {
    let answer: Response.Outcome
    var object: RestorableObject?
  }

  /// The request that an answer of the link belongs to.
  enum Question {
    case initialize
    case register(ObjectPlan.ObjectID)
    case call(Ticket)
    /// A call whose task was cancelled.
    case abandonedCall(SessionCall)
    /// A repeated registration of a served class or data source, for a broker that may have lost it.
    case restorationClass(String)
    case dataSource(RestorableReference)
    /// A message whose answer is not awaited.
    case unawaited
  }

  private struct Waiter {
    let call: SessionCall
    let revision: Int64?
    let end: (Result<Completion, any Error>) -> Void
  }

  private var questions: [BrokerLink.Ticket: Question] = [:]
  private var linkTickets: [Ticket: BrokerLink.Ticket] = [:]
  private var waiters: [Ticket: Waiter] = [:]
  private var answers: [Ticket: Completion] = [:]

  mutating func add(
    _ call: SessionCall,
    revision: Int64?,
    as ticket: Ticket,
    _ end: @escaping (Result<Completion, any Error>) -> Void
  ) { waiters[ticket] = Waiter(call: call, revision: revision, end: end) }

  subscript(_ ticket: Ticket) -> (call: SessionCall, revision: Int64?)? {
    waiters[ticket].map { ($0.call, $0.revision) }
  }

  mutating func asked(_ question: Question, as linkTicket: BrokerLink.Ticket) {
    questions[linkTicket] = question
    if case .call(let ticket) = question { linkTickets[ticket] = linkTicket }
  }

  mutating func takeQuestion(of linkTicket: BrokerLink.Ticket) -> Question? {
    guard let question = questions.removeValue(forKey: linkTicket) else { return nil }
    if case .call(let ticket) = question { linkTickets[ticket] = nil }
    return question
  }

  /// Drops the answer, unless the call has an effect to track. Returns the ticket that the link may give up.
  mutating func abandon(_ ticket: Ticket) -> BrokerLink.Ticket? {
    guard let linkTicket = linkTickets.removeValue(forKey: ticket) else { return nil }
    if let call = waiters[ticket]?.call, call.hasEffect {
      questions[linkTicket] = .abandonedCall(call)
      return nil
    }
    questions[linkTicket] = nil
    return linkTicket
  }

  mutating func forgetQuestions() { (questions, linkTickets) = ([:], [:]) }

  /// Keeps the answer until it is the call's turn to end.
  mutating func answered(_ ticket: Ticket, _ completion: Completion) { answers[ticket] = completion }

  mutating func complete(_ ticket: Ticket) {
    guard let answer = answers.removeValue(forKey: ticket) else { return }
    waiters.removeValue(forKey: ticket)?.end(.success(answer))
  }

  mutating func fail(_ ticket: Ticket, _ error: any Error) {
    answers[ticket] = nil
    waiters.removeValue(forKey: ticket)?.end(.failure(error))
  }
}
