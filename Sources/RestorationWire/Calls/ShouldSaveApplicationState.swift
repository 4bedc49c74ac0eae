// SPDX-License-Identifier: Apache-2.0

/// Asks the delegate whether a save round may go on (R11).
package struct ShouldSaveApplicationState: ApplicationStateCall {
  package typealias Answer = Decision

  package static let method = ServedMethod.shouldSaveApplicationState
  package static let summary = "Whether the application wants to be saved now."

  package var application = ApplicationState()

  package init() {}
}
