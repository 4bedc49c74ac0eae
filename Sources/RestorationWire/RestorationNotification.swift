// SPDX-License-Identifier: Apache-2.0

/// A notification that the broker sends to clients that list it in `serves`; its members are the parameters.
package protocol RestorationNotification: WireObject, Hashable {
  static var method: ServedMethod { get }

  /// One sentence: what has happened.
  static var summary: String { get }
}
