// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// Who owns an object, as errors and notifications name it.
public struct ObjectOwner: Hashable, Sendable {
  /// The process role that the session gave; nil where it gave none.
  public let process: String?
  /// The process's number.
  public let pid: Int64

  /// An owner with this role and number.
  public init(process: String?, pid: Int64) {
    self.process = process
    self.pid = pid
  }

  init(_ wire: RestorationWire.ObjectOwner) {
    self.init(process: wire.process, pid: wire.pid)
  }
}

extension ObjectOwner: CustomStringConvertible {
  /// For people: `editor (4711)`, or `process 4711`.
  public var description: String {
    process.map { "\($0) (\(pid))" } ?? "process \(pid)"
  }
}
