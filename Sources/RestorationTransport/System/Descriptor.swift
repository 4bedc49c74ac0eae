// SPDX-License-Identifier: Apache-2.0

/// An open descriptor with one owner, closed when the owner goes.
struct Descriptor: ~Copyable, Sendable {
  /// The number; valid as long as this value lives.
  let number: Int32

  /// Takes over an open descriptor.
  init(_ number: Int32) { self.number = number }

  deinit {
    SystemCalls.close(number)
  }

  /// Gives the descriptor away: the caller closes it.
  consuming func release() -> Int32 {
    let number = number
    discard self
    return number
  }
}
