// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// One method object of an OpenRPC document: a method of the broker, or one of the client that the broker calls.
struct DescribedMethod: JSONWritable {
  enum Direction: String, JSONWritable {
    case toBroker, toClient
  }

  let name: String
  let summary: String
  let direction: Direction
  let parameters: [Schema.Member]
  /// Nil for a notification.
  var result: Schema?
  var errors: [ErrorDescription] = []
  /// Whether `application` and `session` may be said with it.
  var isScoped = false
  var hasEvents = false

  /// Everything there is: what the broker takes, then what it sends.
  static func all(_ methods: [any RestorationMethod.Type]) -> [DescribedMethod] {
    methods.map { DescribedMethod($0) } + [cancelRequest] + ServedMethod.allCases.map { DescribedMethod($0) } + [event]
  }

  private static let cancelRequest = DescribedMethod(
    name: CancelRequest.method,
    summary: CancelRequest.summary,
    direction: .toBroker,
    parameters: CancelRequest.parameters
  )

  private static let event = DescribedMethod(
    name: EventNotification.method,
    summary: EventNotification.summary,
    direction: .toClient,
    parameters: EventNotification.parameters,
    hasEvents: true
  )

  /// What it leads to.
  var schemas: [Schema] {
    parameters.map(\.schema) + (result.map { [$0] } ?? [])
  }

  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("name", name)
      writer.member("summary", summary)
      writer.member("params", parameters.map { ContentDescriptor($0, isParameter: direction == .toBroker) })
      writer.member("paramStructure", direction == .toBroker && result != nil ? "either" : "by-name")
      if let result {
        writer.member("result", ContentDescriptor(.required("result", result), isParameter: false))
        if direction == .toBroker { writer.member("errors", errors) }
      }
      writer.member("x-direction", direction)
      writer.member("x-since", ProtocolVersion.first)
      writer.member("x-notification", ifTrue: result == nil)
      writer.member("x-scoped", ifTrue: isScoped)
      writer.member("x-cancellable", ifTrue: errors.contains(.requestCancelled))
      if hasEvents {
        writer.key("x-events")
        writer.object { writer in
          for name in EventName.allCases {
            writer.key(name.rawValue)
            name.shape.writeJSON(to: &writer)
          }
        }
      }
    }
  }
}

extension DescribedMethod {
  private init<Method: RestorationMethod>(_: Method.Type) {
    self.init(
      name: Method.method,
      summary: Method.summary,
      direction: .toBroker,
      parameters: Method.members,
      result: Method.mayBeDiscarded ? .either([Method.Reply.schema, .discarded]) : Method.Reply.schema,
      errors: Method.errors,
      isScoped: Method.isScoped
    )
  }

  private init(_ served: ServedMethod) {
    switch served.form {
    case .call(let call): self.init(call)
    case .notification(let notification):
      self.init(
        name: served.rawValue,
        summary: notification.summary,
        direction: .toClient,
        parameters: notification.members
      )
    }
  }

  private init<Call: RestorationCall>(_: Call.Type) {
    self.init(
      name: Call.method.rawValue,
      summary: Call.summary,
      direction: .toClient,
      parameters: Call.members,
      result: Call.Answer.schema
    )
  }
}

/// A parameter or a result.
private struct ContentDescriptor: JSONWritable {
  let member: Schema.Member
  /// Null is the same as absent.
  let isParameter: Bool

  init(_ member: Schema.Member, isParameter: Bool) {
    self.member = member
    self.isParameter = isParameter
  }

  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("name", member.name)
      if !member.summary.isEmpty { writer.member("description", member.summary) }
      writer.member("required", ifTrue: member.isRequired)
      writer.member("schema", isParameter && !member.isRequired ? .nullable(member.schema) : member.schema)
    }
  }
}

extension EventName {
  /// The parameters of the notification `event` with this name.
  var shape: Schema {
    let facts = EventNotification.facts(of: self)
    let word = rawValue.prefix(1).uppercased() + rawValue.dropFirst()
    var members = EventNotification.parameters
    members[1] = .required(members[1].name, .constant(.string(rawValue)), facts.summary)
    return .shared("\(word)Event", .object(members + facts.members))
  }
}
