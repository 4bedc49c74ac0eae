// SPDX-License-Identifier: Apache-2.0

internal import CLinux

extension SystemCalls {
  /// Makes the event loop's own set close on exec, by a descriptor that the loop watches: a program that this process
  /// starts would inherit it otherwise, because NIO makes it without the flag.
  static func closeEventLoopOnExec(watching descriptor: Int32) { clinux_close_epolls_on_exec(descriptor) }
}
