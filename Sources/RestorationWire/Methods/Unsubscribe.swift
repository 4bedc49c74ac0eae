// SPDX-License-Identifier: Apache-2.0

/// Ends a subscription of this connection; none of its events follows the answer.
package struct Unsubscribe: RestorationMethod {
  package static let method = "unsubscribe"
  package static let summary = "Ends a subscription."
  package static let errors: [ErrorDescription] = [.invalidParams]
  package static let isScoped = false

  package typealias Reply = EmptyResult

  package var subscription: Int64 = 0

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("subscription", &subscription, .from(1), "As `subscribe` gave it on this connection.")
  }
}
