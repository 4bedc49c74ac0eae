// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import NIOCore
internal import RestorationTransport
internal import Testing

/// What a connection leaves to the next process, without a connection.
@Suite struct HandoffStateTests {
  private func buffer(_ text: String) -> ByteBuffer { ByteBuffer(string: text) }

  @Test func aNewConnectionHasNothingToTakeOver() {
    var state = HandoffState()
    #expect(state.takeAdopted() == nil && state.context.isEmpty && state.isSettled)
    #expect(state.snapshot(collected: [], inChannel: 0) == ConnectionSnapshot())
  }

  @Test func whatIsAdoptedIsTakenOverOnceAndItsContextStays() {
    var snapshot = ConnectionSnapshot(framing: .contentLength)
    snapshot.context = [1, 2]
    var state = HandoffState(adopting: snapshot)
    #expect(state.context == [1, 2])
    #expect(state.takeAdopted() == snapshot)
    #expect(state.takeAdopted() == nil && state.context == [1, 2])
    state.setContext([3])
    #expect(state.snapshot(collected: [], inChannel: 0).context == [3])
  }

  @Test func aSnapshotHoldsWhatTheKernelHasNotTakenInOrder() {
    var state = HandoffState()
    state.wrote(buffer("abc"))
    state.wrote(buffer("defg"))
    let collected = Array("hi".utf8)
    #expect(state.snapshot(collected: collected, inChannel: 7).output == Array("abcdefghi".utf8))
    #expect(state.snapshot(collected: collected, inChannel: 5).output == Array("cdefghi".utf8))
    state.firstIsTaken()
    #expect(state.snapshot(collected: collected, inChannel: 4).output == Array("defghi".utf8))
    #expect(state.snapshot(collected: [], inChannel: 1).output == Array("g".utf8))
    state.firstIsTaken()
    state.firstIsTaken()
    #expect(state.snapshot(collected: collected, inChannel: 0).output == collected)
  }

  @Test func itIsSettledWhenAsManyNotificationsAreDurableAsCame() {
    var state = HandoffState()
    state.countUnsettled(2)
    state.countUnsettled(-1)
    #expect(!state.isSettled)
    state.countUnsettled(-1)
    #expect(state.isSettled)
  }
}
