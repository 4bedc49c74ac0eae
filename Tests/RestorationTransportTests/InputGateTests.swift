// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationTransport
internal import Testing

/// When a connection reads and takes frames, without a connection.
@Suite struct InputGateTests {
  private static let positions: [FramePosition] = [.betweenFrames, .insideFrame, .finishingFrame, .finishingLine]

  private func gate(_ change: (inout TransportLimits) -> Void = { _ in }) -> InputGate {
    var limits = TransportLimits()
    change(&limits)
    return InputGate(limits: limits)
  }

  @Test(arguments: positions)
  func anOpenConnectionReadsWhereverItsDecoderIs(position: FramePosition) {
    #expect(gate().wantsInput(at: position) && gate().takesFrames(at: position))
  }

  @Test func oneReadIsAskedForAtATime() {
    var gate = gate()
    #expect(gate.hasWork && gate.beginsRead())
    #expect(!gate.beginsRead() && !gate.hasWork)
    gate.readCompleted()
    #expect(gate.hasWork && gate.beginsRead())
  }

  @Test func nothingIsReadWhileFramesWaitAndTheyAreTaken() {
    var gate = gate()
    gate.inputWaits(true)
    #expect(!gate.wantsInput(at: .betweenFrames) && gate.takesFrames(at: .betweenFrames) && gate.hasWork)
    gate.inputWaits(false)
    #expect(gate.wantsInput(at: .betweenFrames))
  }

  @Test func inputIsPausedUntilEachReasonIsGone() {
    var gate = gate()
    gate.pause(.receiver)
    gate.pause(.output)
    gate.pause(.output)
    #expect(!gate.wantsInput(at: .betweenFrames) && !gate.takesFrames(at: .finishingFrame) && !gate.takesInput)
    gate.resume(.output)
    #expect(!gate.takesInput && gate.isPaused(.receiver) && !gate.isPaused(.output))
    gate.resume(.receiver)
    #expect(gate.wantsInput(at: .betweenFrames) && gate.takesInput)
  }

  @Test func soMuchMayBeHeldBackAndNotOneByteMore() {
    var gate = gate { $0.heldBackBytesPause = 1_000 }
    gate.holdBack(bytes: 1_000)
    #expect(gate.takesFrames(at: .betweenFrames) && gate.wantsInput(at: .betweenFrames))
    gate.holdBack(bytes: 1_001)
    #expect(!gate.takesFrames(at: .betweenFrames) && !gate.wantsInput(at: .betweenFrames))
    gate.holdBack(bytes: 0)
    #expect(gate.wantsInput(at: .betweenFrames))
  }

  @Test func callsHeldBackAreResumedWhileThereIsRoomInFlightEvenIfTheyPauseInput() {
    var gate = gate { ($0.conversation.inFlightMax, $0.heldBackBytesPause) = (2, 10) }
    #expect(!gate.resumesCalls(inFlight: 0), "none is held back")
    gate.holdBack(bytes: 1_000)
    _ = gate.beginsRead()
    #expect(gate.hasWork && gate.resumesCalls(inFlight: 1) && !gate.resumesCalls(inFlight: 2))
    gate.pause(.output)
    #expect(!gate.resumesCalls(inFlight: 0))
    gate.resume(.output)
    gate.pause(.receiver)
    #expect(!gate.resumesCalls(inFlight: 0))
  }

  @Test func callsHeldBackAreResumedAlsoIfTheirProcessIsNotRead() {
    var gate = gate()
    gate.holdBack(bytes: 1)
    gate.pause(.process)
    #expect(!gate.takesInput && gate.resumesCalls(inFlight: 0))
    gate.pause(.output)
    #expect(!gate.resumesCalls(inFlight: 0))
    gate.resume(.output)
    gate.resume(.process)
    #expect(gate.takesInput)
  }

  @Test func aDrainedConnectionTakesOnlyWhatNoOtherCouldFinish() {
    var gate = gate()
    gate.holdBack(bytes: 1)
    gate.drain()
    #expect(gate.isDraining && !gate.resumesCalls(inFlight: 0))
    for position in Self.positions {
      let isTaken = position == .finishingFrame || position == .finishingLine
      #expect(gate.takesFrames(at: position) == isTaken && gate.wantsInput(at: position) == isTaken, "\(position)")
    }
    gate.pause(.receiver)
    #expect(!gate.takesFrames(at: .finishingFrame))
  }

  @Test func afterTheEndOfInputNothingIsReadAndWhatWaitsIsTaken() {
    var gate = gate()
    #expect(!gate.deliversEnd() && !gate.isEnded)
    gate.inputWaits(true)
    gate.inputEnded()
    #expect(gate.isEnded && gate.takesFrames(at: .betweenFrames))
    gate.inputWaits(false)
    #expect(!gate.wantsInput(at: .insideFrame))
  }

  @Test func theEndOfInputIsDeliveredOnce() {
    var gate = gate()
    gate.inputEnded()
    #expect(!gate.endIsDelivered && gate.deliversEnd() && gate.endIsDelivered)
    gate.inputEnded()
    #expect(!gate.deliversEnd() && gate.isEnded && gate.endIsDelivered)
  }
}
