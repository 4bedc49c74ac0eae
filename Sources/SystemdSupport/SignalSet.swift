// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// Signals that a process waits for instead of being interrupted by them.
package struct SignalSet {
  private var set = sigset_t()

  package init(_ signals: [Int32]) {
    sigemptyset(&set)
    for signal in signals { sigaddset(&set, signal) }
  }

  /// Blocks the signals in this thread and in those it starts.
  package func block() {
    var set = set
    pthread_sigmask(SIG_BLOCK, &set, nil)
  }

  /// Waits for one of the signals in a single system call.
  package func wait() -> Int32 {
    var set = set
    var signal: Int32 = 0
    while sigwait(&set, &signal) != 0 {}
    return signal
  }
}
