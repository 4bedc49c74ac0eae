// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Fetches the next call or notification of the broker, for clients that cannot be called over their connection.
package struct NextRequest: RestorationMethod {
  package static let method = "nextRequest"
  package static let summary = "Fetches a call of the broker."
  package static let parameters: [Schema.Member] = [
    .optional("waitMilliseconds", .integer(0...waitMillisecondsMax), "How long to wait where there is nothing yet."),
    .optional("serves", .list(ServedMethod.schema), "What the session serves from now on; null leaves it as it is."),
  ]
  package static let errors: [ErrorDescription] = [
    .notInitialized, .unknownApplication, .invalidParams, .requestCancelled, .limitExceeded,
  ]

  package static let waitMillisecondsMax: Int64 = 30_000

  /// How long to wait where there is nothing yet.
  package var waitMilliseconds: Int64
  /// Replaces what the session serves; nil leaves it.
  package var serves: [ServedMethod]?

  package init(waitMilliseconds: Int64 = 0, serves: [ServedMethod]? = nil) {
    self.waitMilliseconds = waitMilliseconds
    self.serves = serves
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    self.waitMilliseconds = try reader.optionalInteger("waitMilliseconds", in: 0...Self.waitMillisecondsMax) ?? 0
    self.serves = reader.present("serves") == nil ? nil : try ServedMethod.read(from: reader, "serves")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    if waitMilliseconds > 0 {
      writer.member("waitMilliseconds", waitMilliseconds)
    }
    writer.member("serves", ifPresent: serves)
  }

  /// What was fetched; null where nothing came in time.
  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.nullable(PolledRequest.schema)

    package var request: PolledRequest?

    package init(request: PolledRequest?) {
      self.request = request
    }

    package init?(_ slice: JSONSlice) {
      guard !slice.isNull else {
        self.request = nil
        return
      }
      guard let request = PolledRequest(slice) else { return nil }
      self.request = request
    }

    package func write(to writer: inout JSONWriter) {
      if let request { request.write(to: &writer) } else { writer.null() }
    }
  }
}

/// A call or a notification of the broker as `nextRequest` gives it.
package struct PolledRequest: Sendable, Hashable {
  package static let schema = Schema.shared(
    "PolledRequest",
    .object([
      .required("id", .nullable(.handle), "Of a call: what it is answered by. Null for a notification."),
      .required("method", ServedMethod.schema, "What is asked or told."),
      .required("params", .parameters, "What that method takes."),
    ])
  )

  /// To be answered by `answerRequest`; nil for a notification.
  package var id: Int64?
  package var method: String
  package var parameters: JSONText

  package init(id: Int64?, method: String, parameters: JSONText) {
    self.id = id
    self.method = method
    self.parameters = parameters
  }

  package init?(_ slice: JSONSlice) {
    do throws(WrongShape) {
      let reader = try ResultReader(slice)
      self.id = try reader.optionalInteger("id")
      self.method = try reader.string("method")
      self.parameters = try reader.value("params") { $0.kind == .object ? $0.compactText : nil }
    } catch {
      return nil
    }
  }

  package func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("id", id)
      writer.member("method", method)
      writer.member("params", parameters)
    }
  }
}
