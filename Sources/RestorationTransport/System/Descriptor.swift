// SPDX-License-Identifier: Apache-2.0

/// An open descriptor with one owner; closed at the end of its lifetime.
struct Descriptor: ~Copyable, Sendable {
  let number: Int32

  init(_ number: Int32) { self.number = number }

  deinit {
    SystemCalls.close(number)
  }

  /// Releases the descriptor to the caller, who must close it.
  consuming func release() -> Int32 {
    let number = number
    discard self
    return number
  }
}
