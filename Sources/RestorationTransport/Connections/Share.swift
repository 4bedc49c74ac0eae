// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Limits an application in a sandbox to half of the shared resources that others leave, so that it cannot exclude
/// them.
package enum Share {
  /// Why the application must not have `more`; `nil` if it may. Reveals nothing about others.
  ///
  /// - Parameter max: of all together.
  package static func refusal(
    of limit: String,
    max: Int,
    own: Int,
    others: Int,
    adding addition: Int = 1
  ) -> ErrorObject? {
    guard own + addition > Swift.max(0, max - others) / 2 else { return nil }
    let hint =
      "Give up some of what it has, or raise \(limit) in the broker's configuration: an application in a sandbox may "
      + "have at most half of what the others leave."
    return .limitExceeded(limit, max: own, value: own + Swift.max(1, addition), hint: hint)
  }
}
