// SPDX-License-Identifier: Apache-2.0

/// Tells the delegate that everything was decoded, and gives the application's own state back (R21).
package struct DidDecodeRestorableState: ApplicationStateCall {
  package typealias Answer = Acknowledgement

  package static let method = ServedMethod.didDecodeRestorableState
  package static let summary = "All owners have decoded."

  package var application = ApplicationState()

  package init() {}
}
