// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationWire

extension OpenRPCDocument {
  package init(of methods: [any RestorationMethod.Type]) {
    var writer = JSONWriter(reserving: 128 << 10)
    writer.object { writer in
      writer.member("openrpc", "1.3.2")
      Self.writeInfo(to: &writer)
      let methods = DescribedMethod.all(methods)
      writer.member("methods", methods)
      writer.key("components")
      writer.object { writer in
        writer.key("schemas")
        Self.write(methods.flatMap(\.schemas) + EventName.allCases.map(\.shape) + [DescribedError.data], to: &writer)
      }
      writer.key("x-errors")
      writer.object { writer in
        writer.member("everyCall", ErrorCode.everyCall.map { DescribedError(code: $0) })
        writer.member("data", DescribedError.data)
      }
      writer.key("x-scope")
      writer.object { Schema.Member.writeEach(of: CallScope.members, to: &$0) }
    }
    self.init(text: JSONText(validated: writer.bytes))
  }

  private static func writeInfo(to writer: inout JSONWriter) {
    writer.key("info")
    writer.object { writer in
      writer.member("title", "The restoration protocol")
      writer.member("version", String(ProtocolVersion.current))
      writer.member(
        "description",
        "How a program speaks to `restorationd`, the broker that keeps the state of an application's objects while the "
          + "application's processes come and go."
      )
      writer.key("license")
      writer.object { $0.member("name", "Apache-2.0") }
    }
  }

  /// Writes every shared shape of the schemas once, by name.
  private static func write(_ schemas: [Schema], to writer: inout JSONWriter) {
    var shapes: [String: Schema] = [:]
    for schema in schemas { schema.collectShapes(into: &shapes) }
    writer.object { writer in
      for (name, shape) in shapes.sorted(by: { $0.key < $1.key }) {
        writer.key(name)
        writer.object { writer in
          writer.member("title", name)
          shape.writeMembers(to: &writer)
        }
      }
    }
  }
}

/// A method object of an OpenRPC document: a method of the broker, or one of the client that the broker calls.
struct DescribedMethod: JSONWritable {
  enum Direction: String, JSONWritable {
    case toBroker, toClient
  }

  let name: String
  let summary: String
  let direction: Direction
  let parameters: [Schema.Member]
  /// `nil` for a notification.
  var result: Schema?
  var errors: [ErrorCode] = []
  /// Whether `application` and `session` may be given with it.
  var isScoped = false
  var hasEvents = false

  /// The methods of the broker, then those that it calls.
  static func all(_ methods: [any RestorationMethod.Type]) -> [DescribedMethod] {
    methods.map { DescribedMethod($0) } + [cancelRequest] + ServedMethod.allCases.map { DescribedMethod($0) }
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

  var schemas: [Schema] { parameters.map(\.schema) + (result.map { [$0] } ?? []) }

  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("name", name)
      writer.member("summary", summary)
      writer.member("params", parameters.map { ContentDescriptor($0, isParameter: direction == .toBroker) })
      writer.member("paramStructure", direction == .toBroker && result != nil ? "either" : "by-name")
      if let result {
        writer.member("result", ContentDescriptor(.required("result", result), isParameter: false))
        if direction == .toBroker { writer.member("errors", errors.map { DescribedError(code: $0) }) }
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
  init<Method: RestorationMethod>(_: Method.Type) {
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
    case .event: self = Self.event
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

private struct ContentDescriptor: JSONWritable {
  let member: Schema.Member
  /// Whether null means absent.
  let isParameter: Bool

  init(_ member: Schema.Member, isParameter: Bool) { (self.member, self.isParameter) = (member, isParameter) }

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
  var shape: Schema {
    let facts = EventNotification.facts(of: self)
    let word = rawValue.prefix(1).uppercased() + rawValue.dropFirst()
    var members = EventNotification.parameters
    members[1] = .required(members[1].name, .constant(.string(rawValue)), facts.summary)
    return .shared("\(word)Event", .object(members + facts.members))
  }
}

private struct DescribedError: JSONWritable {
  let code: ErrorCode

  static let data = Schema.shared(
    "ErrorData",
    .object([
      .required("kind", .string, "The error's name."),
      .required("hint", .string, "One sentence that says what to do next; for people."),
      .optional("path", .list(.string), "The object the error is about."),
      .optional("pointer", .string, "JSON pointer into `params` to the member that is wrong."),
      .optional("offset", .count, "Of `parseError`: byte of the frame."),
      .optional("method", .string, "Of `methodNotFound`: the method called."),
      .optional("owners", .list(ObjectOwner.schema), "The sessions that hold what the caller wants."),
      .optional("limit", .string, "Of `limitExceeded`: the limit."),
      .optional("max", .integer, "Of `limitExceeded`: its value."),
      .optional("value", .integer, "Of `limitExceeded`: the excessive value."),
      .optional("indeterminate", .boolean, "Of `storeFailed`: whether the write may be stored anyway."),
      .optional("unconfirmed", .boolean, "Of `storeFailed`: it may be stored on this host alone."),
      .optional("refused", .boolean, "Of `storeFailed`: it fails again until somebody has acted."),
      .optional("sequence", .count, "Of `stateChanged`: the change that stored the newest state; 0 for none."),
      .optional("host", .nullable(.string), "Of `ownedElsewhere` and `fenced`: the host; null if it is not told."),
      .optional("since", .nullable(.timestamp), "Of `ownedElsewhere` and `fenced`: since when."),
      .optional("reference", .any, "Of `invalidReference`: the reference."),
      .optional("supported", .list(.integer), "Of `unsupportedProtocolVersion`: the supported versions."),
    ])
  )

  /// The message describes the error in general; an answer's message names the problem.
  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("code", code.rawValue)
      writer.member("message", code.summary ?? code.kind)
      writer.key("data")
      writer.object { $0.member("kind", code.kind) }
    }
  }
}
