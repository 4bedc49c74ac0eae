// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Has the connection told of events, of one application or of all.
package struct Subscribe: RestorationMethod {
  package static let method = "subscribe"
  package static let summary = "Has the connection told of events."
  package static let parameters: [Schema.Member] = [
    .optional(
      "events",
      .array(EventName.schema, count: 1...Int.max),
      "Names of events to be told of; null for all of them, also those that later brokers know."
    ),
  ]
  package static let errors: [ErrorDescription] = [.invalidParams, .forbidden, .limitExceeded]

  /// The events to be told of; nil for all, also those of later brokers.
  package var events: [EventName]?

  package init(events: [EventName]? = nil) {
    self.events = events
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    self.events = try EventName.read(from: reader, "events")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("events", ifPresent: events)
  }

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required(
        "subscription",
        .integer(1...),
        "Number of the subscription: 1, 2, 3 … on each connection, never given out twice."
      ),
    ])

    /// Unique on the connection; its events carry it.
    package var subscription: Int64

    package init(subscription: Int64) {
      self.subscription = subscription
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        self.subscription = try ResultReader(slice).integer("subscription")
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { $0.member("subscription", subscription) }
    }
  }
}
