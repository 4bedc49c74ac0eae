// SPDX-License-Identifier: Apache-2.0

internal import RestorationTransport
internal import Testing

/// The steps of a connection's end, without a connection.
@Suite struct ClosingStateTests {
  private func opened(lingers: Bool = true) -> Closing {
    var closing = Closing(lingers: lingers)
    #expect(!closing.isOpen && closing.open() && closing.isOpen)
    return closing
  }

  /// The same at the point where the end of the output is on its way.
  private func flushing(_ reason: CloseReason, lingers: Bool = true) -> Closing {
    var closing = opened(lingers: lingers)
    #expect(closing.begin(reason, afterOutput: true) == true)
    #expect(closing.advance() == .awaitOutput)
    return closing
  }

  @Test func aConnectionIsOpenedOnce() {
    var closing = opened()
    #expect(!closing.open() && closing.isOpen)
    _ = closing.end()
    #expect(!closing.open() && !closing.isOpen && closing.isClosed)
  }

  @Test func anOpenConnectionHasNoNextStep() {
    var closing = opened()
    #expect(closing.advance() == nil && closing.outputIsTaken(inputHasEnded: true) == nil)
    #expect(closing.isOpen && !closing.isEnding)
  }

  @Test func closingAfterOutputAwaitsItOnceThenLeavesThePeerTime() {
    var closing = opened()
    #expect(closing.begin(.closed, afterOutput: true) == true)
    #expect(!closing.isOpen && closing.isEnding && !closing.dropsOutput)
    #expect(closing.outputIsTaken(inputHasEnded: false) == nil, "nobody has asked yet")
    #expect(closing.advance() == .awaitOutput)
    #expect(closing.advance() == nil && closing.isEnding)
    #expect(closing.outputIsTaken(inputHasEnded: false) == .linger)
    #expect(closing.isLingering && !closing.isEnding)
    #expect(closing.advance() == nil && closing.outputIsTaken(inputHasEnded: false) == nil)
    #expect(closing.end() == .closed)
  }

  @Test func aPeerThatHasEndedItsInputIsGivenNoTime() {
    var closing = flushing(.peerClosed)
    #expect(closing.outputIsTaken(inputHasEnded: true) == .close)
    #expect(closing.end() == .peerClosed)
  }

  @Test func withoutTimeToGiveTheConnectionClosesWithItsOutput() {
    var closing = flushing(.protocolFault, lingers: false)
    #expect(closing.outputIsTaken(inputHasEnded: false) == .close)
    #expect(!closing.isLingering)
  }

  @Test func closingAtOnceDropsTheOutput() {
    var closing = opened()
    #expect(closing.begin(.outputOverflow, afterOutput: false) == true)
    #expect(closing.dropsOutput && !closing.isEnding)
    #expect(closing.advance() == .close)
    #expect(!closing.begin(.closed, afterOutput: true) && closing.dropsOutput)
    #expect(closing.end() == .outputOverflow)
  }

  @Test func waitingForOutputCanBeCalledOffAndTheFirstReasonStays() {
    var ending = opened()
    #expect(ending.begin(.protocolFault, afterOutput: true) == true)
    var lingering = flushing(.protocolFault)
    #expect(lingering.outputIsTaken(inputHasEnded: false) == .linger)
    for var closing in [ending, flushing(.protocolFault), lingering] {
      #expect(closing.begin(.partialFrame, afterOutput: true) == false)
      #expect(closing.begin(.closed, afterOutput: false) == true)
      #expect(closing.outputIsTaken(inputHasEnded: false) == nil, "what was awaited does not matter any more")
      #expect(closing.advance() == .close)
      #expect(closing.end() == .protocolFault)
    }
  }

  @Test func anOpenConnectionThatEndsWasClosedByItsPeerAndTheEndIsReportedOnce() {
    var closing = opened()
    #expect(closing.end() == .peerClosed)
    #expect(closing.end() == nil)
    #expect(!closing.begin(.closed, afterOutput: false) && closing.advance() == nil)
  }

  @Test func aConnectionThatNeverOpenedIsNotReported() {
    var closing = Closing(lingers: true)
    #expect(closing.begin(.closed, afterOutput: true) == false)
    #expect(closing.end() == nil && closing.isClosed)
  }
}
