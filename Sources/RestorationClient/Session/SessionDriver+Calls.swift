// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationTransport
internal import RestorationWire

/// The broker's calls to a session: when each is answered. `SessionDriver+Serving.swift` has how.
extension SessionDriver {
  /// A call that has not ended, or a notification.
  struct ServedCall {
    enum Content {
      case call(Conversation.Call, Request, BrokerLink)
      /// All objects of the application are restored, these among them.
      case finishedRestoring([ObjectPlan.ObjectID])
    }

    let content: Content
    var task: Task<Void, Never>?
  }

  nonisolated func called(_ call: Conversation.Call, _ request: Request, by link: BrokerLink) {
    assumeIsolated { driver in
      guard driver.link === link else { return }
      driver.enqueue(.call(call, request, link), as: Self.lane(of: request.method))
    }
  }

  func finishedRestoring(_ handles: [ObjectHandle]) {
    // By the time it is their turn a broker may have lost the session, and given them other handles.
    enqueue(.finishedRestoring(handles.compactMap { objects.record(handle: $0)?.object.id }), as: .notice)
  }

  /// A data source is asked for what another call may be waiting for.
  private static func lane(of method: String) -> ServedCallQueue.Lane {
    switch ServedMethod(rawValue: method) {
    case .modelIdentifierForElementAtIndexPath, .indexPathForElementWithModelIdentifier: .atOnce
    case .shouldSaveApplicationState, .shouldRestoreApplicationState, .willEncodeRestorableState,
      .viewControllerWithRestorationIdentifierPath, .didDecodeRestorableState, .encodeRestorableStateWithCoder,
      .decodeRestorableStateWithCoder, .objectWithRestorationIdentifierPath, .applicationFinishedRestoringState,
      .applicationStateSaved, .registrationReplaced, .pathChanged, .headReplaced, .stateWanted, .archiveLost,
      .progress, .event, nil:
      .inOrder
    }
  }

  private func enqueue(_ content: ServedCall.Content, as lane: ServedCallQueue.Lane) {
    let number = callQueue.makeNumber()
    calls[number] = ServedCall(content: content)
    act(callQueue.add(number, lane))
  }

  /// The connection is lost: answers are no longer awaited.
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
    guard let content = calls[number]?.content else { return }
    calls[number]?.task = Task {
      switch content {
      case .call(let call, let request, let link):
        respond(to: call, with: await answer(request), on: link)
      case .finishedRestoring(let ids):
        await tellFinished(ids)
      }
      calls[number] = nil
      act(callQueue.ended(number))
    }
  }

  /// On the connection that the call came on; that may have ended.
  private func respond(to call: Conversation.Call, with outcome: Outcome, on link: BrokerLink) {
    link.assumeIsolated { $0.answer(call, with: outcome) }
  }
}
