// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Why nothing could be measured, for people.
struct Failure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }

  /// A call of the system that failed just now.
  static func system(_ what: String) -> Failure { Failure("\(what): \(String(cString: strerror(errno)))") }
}
