// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationTransport
internal import RestorationWire

/// The order of the broker's calls to a session. `SessionDriver+Serving.swift` answers them.
extension SessionDriver {
  /// The session for which this task answers the broker.
  @TaskLocal static var answering: ObjectIdentifier?

  /// A call that has not ended, or a notification.
  struct ServedCall {
    enum Content {
      case call(Conversation.Call, Request, BrokerLink)
      /// All objects of the application are restored, these among them.
      case finishedRestoring([ObjectPlan.ObjectID])
    }

    let content: Content
    let lane: ServedCallQueue.Lane
    var task: Task<Void, Never>?
  }

  nonisolated func called(_ call: Conversation.Call, _ request: Request, by link: BrokerLink) {
    assumeIsolated { driver in
      guard driver.link === link else { return }
      driver.enqueue(.call(call, request, link), as: Self.lane(of: request.method))
    }
  }

  func finishedRestoring(_ handles: [ObjectHandle]) {
    // Before their turn a broker may lose the session, and give them other handles.
    enqueue(.finishedRestoring(handles.compactMap { objects.record(handle: $0)?.object.id }), as: .notice)
  }

  /// A data source runs at once: another call may wait for it.
  private static func lane(of method: String) -> ServedCallQueue.Lane {
    switch ServedMethod(rawValue: method) {
    case .modelIdentifierForElementAtIndexPath, .indexPathForElementWithModelIdentifier: .atOnce
    case .shouldSaveApplicationState, .shouldRestoreApplicationState, .willEncodeRestorableState,
      .viewControllerWithRestorationIdentifierPath, .didDecodeRestorableState, .encodeRestorableStateWithCoder,
      .decodeRestorableStateWithCoder, .objectWithRestorationIdentifierPath, .applicationFinishedRestoringState,
      .applicationStateSaved, .registrationReplaced, .pathChanged, .headReplaced, .stateWanted, .encodeFailed,
      .archiveLost, .progress, .event, nil:
      .inOrder
    }
  }

  private func enqueue(_ content: ServedCall.Content, as lane: ServedCallQueue.Lane) {
    let number = callQueue.makeNumber()
    calls[number] = ServedCall(content: content, lane: lane)
    act(callQueue.add(number, lane))
  }

  /// Drops the calls of a lost connection.
  func dropCalls() { act(callQueue.drop()) }

  private func act(_ actions: [ServedCallQueue.Action]) {
    for action in actions {
      switch action {
      case .begin(let number): begin(number)
      case .cancel(let number): calls[number]?.task?.cancel()
      case .drop(let number): calls[number] = nil
      }
    }
  }

  private func begin(_ number: ServedCallQueue.Number) {
    guard let call = calls[number] else { return }
    // A data source does not wait for registrations that have not returned.
    if call.lane != .atOnce, returns.wait({ [weak self] in self?.enter { $0.begin(number) } }) { return }
    calls[number]?.task = Self.$answering.withValue(ObjectIdentifier(self)) {
      Task {
        switch call.content {
        case .call(let call, let request, let link):
          respond(to: call, with: await CallTrace.following(request) { await answer(request) }, on: link)
        case .finishedRestoring(let ids):
          await tellFinished(ids)
        }
        calls[number] = nil
        act(callQueue.ended(number))
      }
    }
  }

  /// Answers on the call's connection, which may have ended.
  private func respond(to call: Conversation.Call, with outcome: Outcome, on link: BrokerLink) {
    link.assumeIsolated { $0.answer(call, with: outcome) }
  }
}
