// SPDX-License-Identifier: Apache-2.0

/// Has the connection told of events, of one application or of all.
package struct Subscribe: RestorationMethod {
  package static let method = "subscribe"
  package static let summary = "Has the connection told of events."
  package static let errors: [ErrorDescription] = [.invalidParams, .forbidden, .limitExceeded]

  package var events: [EventName]?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional(
      "events",
      &events,
      .some,
      "Names of events to be told of; null for all of them, also those that later brokers know."
    )
  }

  package struct Reply: WireObject, Hashable {
    package var subscription: Int64 = 0

    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required(
        "subscription",
        &subscription,
        .from(1),
        "Number of the subscription: 1, 2, 3 … on each connection, never given out twice."
      )
    }
  }
}
