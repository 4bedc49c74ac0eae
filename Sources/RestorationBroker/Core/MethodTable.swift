// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationWire

/// One row for each method: when it is allowed, what it may create, and what performs it. A method without a row cannot
/// be called.
package enum MethodTable {
  final class Row: Sendable {
    let method: any RestorationMethod.Type
    let name: String
    let makesArchive: Bool
    /// Whether it may be about a copy that was set aside (R36).
    let takesSetAside: Bool
    /// Throws if the parameters are invalid, so that a refused call creates no empty archive.
    let check: @Sendable (Parameters) throws(ErrorObject) -> Void
    let perform: @Sendable (inout BrokerCore, IncomingMessage, Client) throws(ErrorObject) -> Void

    fileprivate init<Method: RestorationMethod>(
      _: Method.Type,
      makesArchive: Bool,
      takesSetAside: Bool = false,
      check: @escaping @Sendable (Parameters) throws(ErrorObject) -> Void = { _ in },
      perform: @escaping @Sendable (inout BrokerCore, IncomingMessage, Client) throws(ErrorObject) -> Void
    ) {
      method = Method.self
      name = Method.method
      (self.makesArchive, self.takesSetAside, self.check, self.perform) = (makesArchive, takesSetAside, check, perform)
    }
  }

  struct Call<Request> {
    let request: Request
    let message: IncomingMessage
    let client: Client
    let application: Application
    let session: Session?

    var caller: Caller { message.caller }
  }

  package static let methods: [any RestorationMethod.Type] = all.map(\.method)

  package static let document = OpenRPCDocument(of: methods)
  package static let generatorDocument = OpenRPCDocument(forGeneratorsOf: methods)

  static let rows: [String: Row] = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })

  /// In the order of `Protocol/README.md`.
  private static let all: [Row] = [
    .broker(Initialize.self, makesArchive: true) { core, message, client throws(ErrorObject) in
      try core.initialize(message, client)
    },

    // Objects
    .call(RegisterObjectForStateRestoration.self, makesArchive: true) { core, call throws(ErrorObject) in
      try core.register(call)
    },
    .changing(UnregisterObject.self) { $0.unregister },
    .owned(SetRestorationParent.self) { $0.setParent },
    .owned(SetRestorationIdentifier.self) { $0.setIdentifier },
    .owned(SetChildren.self) { $0.setChildren },
    .owned(RegisterRestorationClass.self) { $0.registerRestorationClass },
    .owned(RegisterDataSource.self) { $0.registerDataSource },

    // States
    .call(EncodeRestorableState.self, makesArchive: true) { core, call throws(ErrorObject) in
      core.counters.encodes += 1
      try call.application.encode(call.request, by: call.session, for: call.caller)
    },
    .call(DecodeRestorableState.self, isKnown: true, takesSetAside: true) { core, call throws(ErrorObject) in
      core.counters.decodes += 1
      try call.application.decode(call.request, by: call.session, for: call.caller)
    },
    .owned(InvalidateRestorableState.self) { $0.invalidate },

    // Saving and restoring
    .tracing(SaveApplicationState.self) { $0.save },
    .tracing(RestoreApplicationState.self) { $0.restore },
    .owned(ExtendStateRestoration.self) { $0.extendRestoration },
    .owned(CompleteStateRestoration.self) { $0.completeRestoration },
    .changing(DiscardApplicationState.self) { $0.discard },
    .reading(ListClosedObjects.self) { $0.listClosed },
    .changing(ReopenObject.self) { $0.reopen },
    .call(ForgetApplication.self, isKnown: true, takesSetAside: true) { core, call throws(ErrorObject) in
      try core.forget(call)
    },
    .call(Goodbye.self) { core, call throws(ErrorObject) in try core.sayGoodbye(call) },

    // Reports and archives
    .long(ReadArchive.self, givesPages: true) { $0.readArchive },
    .reading(ExplainRestoration.self) { $0.explain },
    .broker(ListApplications.self, takesNotifications: false) { core, message, _ in
      core.context.emit(.list(.listApplications(message.caller)))
    },
    .reading(DescribeApplication.self) { $0.describe },
    .reading(ListPathComponents.self) { $0.listPathComponents },
    .reading(ListGenerations.self) { $0.listGenerations },
    .long(DiffGenerations.self, givesPages: true) { $0.diffGenerations },
    .call(RollBack.self, isKnown: true) { core, call throws(ErrorObject) in try core.rollBack(call) },
    .long(VerifyArchive.self) { $0.verify },
    .call(BackupArchive.self, isKnown: true) { _, call throws(ErrorObject) in
      let (request, session, caller) = (call.request, call.session, call.caller)
      if request.to != nil { try call.client.requireHost(to: "name a file") }
      try call.inTurn { application throws(ErrorObject) in try application.backUp(request, by: session, for: caller) }
    },
    .long(ExportArchive.self, givesPages: true) { $0.export },
    .broker(ImportArchive.self, makesArchive: true) { core, message, client throws(ErrorObject) in
      try core.importArchive(message, client)
    },
    .reading(ListQuarantine.self) { $0.listQuarantine },
    .changing(ReleaseQuarantine.self) { $0.releaseQuarantine },

    // Connections
    .broker(Subscribe.self) { core, message, client throws(ErrorObject) in try core.subscribe(message, client) },
    .broker(Unsubscribe.self) { core, message, client throws(ErrorObject) in try core.unsubscribe(message, client) },
    .owned(NextRequest.self) { $0.nextRequest },
    .call(AnswerRequest.self) { _, call throws(ErrorObject) in
      let pointer = AnswerRequest.pointer(to: "id", in: call.message.parameters)
      let session = try BrokerCore.require(call.session)
      try call.application.answerRequest(call.request, at: pointer, by: session, for: call.caller)
    },

    .broker(OpenApplicationSocket.self, takesNotifications: false) { core, message, client throws(ErrorObject) in
      try client.requireHost(to: "open sockets")
      let name = try OpenApplicationSocket(message.parameters).application.description
      let max = core.context.limits.applicationSocketsMax
      core.context.emit(.openSocket(application: name, socketsMax: max, message.caller))
    },

    // Hosts of a fleet
    .broker(ReportReplica.self, takesNotifications: false) { core, message, client throws(ErrorObject) in
      try core.context.ask(message, client, .report(ReportReplica(message.parameters).application))
    },
    .broker(FlushReplica.self, takesNotifications: false) { core, message, client throws(ErrorObject) in
      let request = try FlushReplica(message.parameters)
      try core.context.ask(message, client, .flush(request.application, milliseconds: request.milliseconds ?? 5_000))
    },
    .broker(MigrateReplica.self, takesNotifications: false) { core, message, client throws(ErrorObject) in
      let request = try MigrateReplica(message.parameters)
      try core.context.ask(message, client, .migrate(request.application, milliseconds: request.milliseconds ?? 60_000))
    },

    // The broker
    .broker(ReportLimits.self) { core, message, _ in
      core.context.emit(.respond(message.caller, .result(core.context.limits)))
    },
    .broker(ReportStatistics.self) { core, message, _ in core.context.emit(.reportStatistics(message.caller)) },
    .broker(Ping.self) { core, message, _ in core.context.emit(.respond(message.caller, .result(EmptyResult()))) },
    .broker(Discover.self) { core, message, _ throws(ErrorObject) in
      let document = try Discover(message.parameters).forGenerators ? generatorDocument : document
      core.context.emit(.respond(message.caller, .result(document)))
    },
  ]
}

extension MethodTable.Call {
  /// Begins at once, or later if too many such calls are under way. So `begin` must not capture the message.
  func inTurn(isRollback: Bool = false, _ begin: @escaping ArchiveJobs.Beginning) throws(ErrorObject) {
    let call = ArchiveJobs.Waiting(caller: caller, isRollback: isRollback, begin: begin)
    if application.jobs.canBegin(call) { try begin(application) }
  }
}

extension MethodTable.Row {
  /// A method about the broker, or one that finds its application itself (`Client.application(named:)`). Confined
  /// clients get answers about their application only.
  fileprivate static func broker<Method: RestorationMethod>(
    _: Method.Type,
    takesNotifications: Bool = true,
    makesArchive: Bool = false,
    _ perform: @escaping @Sendable (inout BrokerCore, IncomingMessage, Client) throws(ErrorObject) -> Void
  ) -> MethodTable.Row {
    MethodTable.Row(Method.self, makesArchive: makesArchive) {
      core,
      message,
      client throws(ErrorObject) in
      if let (application, session) = core.boundSession(client) { application.heard(from: session) }
      guard takesNotifications || message.caller.call != nil else { return }
      try perform(&core, message, client)
    }
  }

  /// A method of an application.
  ///
  /// - Parameters:
  ///   - isKnown: whether it is refused for an application without any write.
  ///   - takesNotifications: false for reports, whose answer would be lost. These may be about copies set aside.
  fileprivate static func call<Method: RestorationMethod>(
    _: Method.Type,
    isKnown: Bool = false,
    takesNotifications: Bool = true,
    makesArchive: Bool = false,
    takesSetAside: Bool = false,
    _ perform: @escaping @Sendable (inout BrokerCore, MethodTable.Call<Method>) throws(ErrorObject) -> Void
  ) -> MethodTable.Row {
    let check: @Sendable (Parameters) throws(ErrorObject) -> Void = { parameters throws(ErrorObject) in
      _ = try Method(parameters)
    }
    let takesSetAside = takesSetAside || !takesNotifications
    return MethodTable.Row(Method.self, makesArchive: makesArchive, takesSetAside: takesSetAside, check: check) {
      core,
      message,
      client throws(ErrorObject) in
      guard let (application, session) = try core.scope(of: message, client) else { return }
      if isKnown { try core.requireKnown(application, session) }
      guard takesNotifications || message.caller.call != nil else { return }
      if Method.mayBeDiscarded, let session, session.isDiscarded {
        return core.context.emit(.respond(message.caller, .result(EncodeRestorableState.Reply.discarded)))
      }
      let request = try Method(message.parameters)
      try perform(
        &core,
        MethodTable.Call(request: request, message: message, client: client, application: application, session: session)
      )
    }
  }

  /// A method for any caller, with the call's session if there is one.
  fileprivate typealias Open<Method: RestorationMethod> =
    @Sendable (Application) -> (Method, Session?, Caller) throws(ErrorObject) -> Void

  private static func application<Method: RestorationMethod>(
    isKnown: Bool,
    takesNotifications: Bool = true,
    _ method: @escaping Open<Method>
  ) -> MethodTable.Row {
    .call(Method.self, isKnown: isKnown, takesNotifications: takesNotifications) { _, call throws(ErrorObject) in
      try method(call.application)(call.request, call.session, call.caller)
    }
  }

  fileprivate static func reading<Method: RestorationMethod>(_: Method.Type, _ method: @escaping Open<Method>)
    -> MethodTable.Row
  {
    application(isKnown: true, takesNotifications: false, method)
  }

  /// A method that reads the archive piece by piece.
  ///
  /// - Parameter givesPages: whether the answer may be as long as a page; its bytes count even while the call waits.
  fileprivate static func long<Method: RestorationMethod>(
    _: Method.Type,
    givesPages: Bool = false,
    takesNotifications: Bool = false,
    _ method: @escaping Open<Method>
  ) -> MethodTable.Row {
    .call(Method.self, isKnown: true, takesNotifications: takesNotifications) { _, call throws(ErrorObject) in
      let (request, session, caller) = (call.request, call.session, call.caller)
      if givesPages {
        let bytes = Application.pageBytes(for: session?.facts.messageBytesMax)
        call.application.turn.ask(.expect(bytes, caller))
      }
      try call.inTurn { application throws(ErrorObject) in
        try method(application)(request, session, caller)
      }
    }
  }

  fileprivate static func changing<Method: RestorationMethod>(_: Method.Type, _ method: @escaping Open<Method>)
    -> MethodTable.Row
  {
    application(isKnown: true, method)
  }

  fileprivate static func tracing<Method: TracedMethod>(_: Method.Type, _ method: @escaping Open<Method>)
    -> MethodTable.Row
  {
    .call(Method.self, isKnown: true) { _, call throws(ErrorObject) in
      let request = call.request.with { $0.trace = TraceContext(call.message.parameters) }
      try method(call.application)(request, call.session, call.caller)
    }
  }

  fileprivate static func owned<Method: RestorationMethod>(_: Method.Type, _ method: @escaping Open<Method>)
    -> MethodTable.Row
  {
    application(isKnown: false, method)
  }

  /// A method that needs a session.
  fileprivate static func owned<Method: RestorationMethod>(
    _: Method.Type,
    _ method: @escaping @Sendable (Application) -> (Method, Session, Caller) throws(ErrorObject) -> Void
  ) -> MethodTable.Row {
    .call(Method.self) { _, call throws(ErrorObject) in
      try method(call.application)(call.request, BrokerCore.require(call.session), call.caller)
    }
  }
}
