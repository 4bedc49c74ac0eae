// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Waits for a condition that no event announces, such as a discovery of the broker itself.
package enum Wait {
  /// Asks until the answer is yes, ever less often: in between, the machine is free for the process that is waited for.
  package static func until(_ what: String, _ deadline: Deadline = Deadline(), _ isTrue: () throws -> Bool) throws {
    var pause = 1
    while try !isTrue() {
      guard !deadline.isOver else { throw TestFailure("waited in vain until \(what)") }
      moment(.milliseconds(pause))
      pause = min(64, 2 * pause)
    }
  }
}

extension Wait {
  /// Lets the rest of the system run for a while: for the random moment of a kill, and for tests that a broker does not
  /// do something. Nothing else may wait for time.
  package static func moment(_ duration: Duration) { poll(nil, 0, Int32(clamping: duration.milliseconds)) }
}
