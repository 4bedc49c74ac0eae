// SPDX-License-Identifier: Apache-2.0

/// Asks the delegate whether the application is to be restored (R21).
package struct ShouldRestoreApplicationState: ApplicationStateCall {
  package typealias Answer = Decision

  package static let method = ServedMethod.shouldRestoreApplicationState
  package static let summary = "Whether the application wants to be restored."

  package var application = ApplicationState()

  package init() {}
}
