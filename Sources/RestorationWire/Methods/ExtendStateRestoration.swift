// SPDX-License-Identifier: Apache-2.0

/// Holds back the end of the restoration until `completeStateRestoration` is called as often (R21, R34).
package struct ExtendStateRestoration: RestorationMethod {
  package static let method = "extendStateRestoration"
  package static let summary = "Holds back the end of the restoration."
  package static let errors: [ErrorDescription] = [.archiveUnreadable]
  package static let mayBeDiscarded = true

  package typealias Reply = CompleteStateRestoration.Reply

  package init() {}
}
