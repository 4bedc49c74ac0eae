// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Logging
internal import RestorationBroker
internal import SystemdSupport

/// Lets the process that has started the broker move its clock, by lines on descriptor 0, each answered by a line. The
/// descriptor must be a socket.
struct ClockControl {
  let broker: Broker
  let clock: TestClock
  let logger: Logger

  func begin() {
    logger.warning("this broker is for tests only: whoever has started it can move its clock")
    let isServed = BackgroundThread.start("test-clock") {
      while let line = readLine() {
        let answer = broker.obey(line, on: clock) + "\n"
        if write(STDIN_FILENO, answer, answer.utf8.count) < 0 {
          logger.warning("descriptor 0 takes no answer (\(String(cString: strerror(errno)))); give it a socket")
        }
      }
    }
    if !isServed { logger.warning("the clock cannot be moved: the system has no thread left") }
  }
}
