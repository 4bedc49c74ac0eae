// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Of what all applications share, one in a sandbox may have at most half of what the others leave. So it shuts nobody
/// out, whatever its processes do.
package enum Share {
  /// Why it may not have so much more; `nil` if it may. Says nothing of what others have.
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
