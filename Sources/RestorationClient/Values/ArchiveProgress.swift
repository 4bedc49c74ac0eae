// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// How far a long call has come.
public struct ArchiveProgress: Hashable, Sendable {
  /// Grows up to `total`; objects, or bytes of a copy.
  public let done: Int64
  /// Nil where it is not known yet.
  public let total: Int64?
  /// For people.
  public let message: String?

  /// Told on a thread of the library, never two at a time, and before the call returns: return soon.
  public typealias Handler = @Sendable (ArchiveProgress) -> Void

  init(done: Int64, total: Int64?, message: String?) {
    self.done = done
    self.total = total
    self.message = message
  }

  init(_ wire: Progress) {
    self.init(done: wire.done, total: wire.total, message: wire.message)
  }
}
