// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// How long this thread has had the processor, in nanoseconds: what else the machine does hardly counts.
package enum ThreadTime {
  package static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
