// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient

/// The commands of the process, listed at the top of `Tests/Clients/serving.py`; `ServingValues.swift` has some more.
extension ServingProcess {
  func obey(_ command: JSONValue) async throws -> JSONValue {
    do {
      return try await carryOut(command)
    } catch let error as RestorationError {
      return ["error": Self.value(error)]
    } catch let error as RestorationSessionError {
      return ["lost": .string(error.message)]
    } catch let error as BrokerConnectionError {
      return ["lost": .string(error.message)]
    } catch let fault as Fault {
      return ["fault": .string(fault.description)]
    }
  }

  private func carryOut(_ command: JSONValue) async throws -> JSONValue {
    let name = command["name"]?.string ?? ""
    switch command["do"]?.string {
    case "open": return try await open(command)
    case "register": return try await registerAll(command)
    case "set": try change(name, command)
    case "application": applicationState = command["state"] ?? .null
    case "behave": behaviours[command["method"]?.string ?? ""] = command["as"].flatMap { $0.isNull ? nil : $0 }
    case "release": return ["released": .integer(release())]
    case "log": return ["log": takeLog()]
    case "await":
      return ["count": .integer(await awaits(command["what"]?.string ?? "", command["count"]?.integer ?? 1))]
    case "restored":
      return ["objects": .object(restored), "application": decodedApplicationState, "finished": .array(finishedNames)]
    case "wait": return try await pending.removeValue(forKey: command["call"]?.integer ?? 0)?.value ?? .null
    default: return try await call(command, name)
    }
    return [:]
  }

  private func call(_ command: JSONValue, _ name: String) async throws -> JSONValue {
    guard let session else { throw Fault("there is no session") }
    let deadline = command["deadlineMilliseconds"]?.integer.map { Duration.milliseconds($0) }
    switch command["do"]?.string {
    case "class":
      try await session.registerRestorationClass(command["restorationClass"]?.string ?? "") { [self] in
        try await make($0)
      }
    case "dataSource": try await registerDataSource(command, session)
    case "push": return try await push(command["names"]?.array?.compactMap(\.string) ?? names, session)
    case "decode":
      guard let thing = things[name], let object = thing.object else { throw Fault("there is no such object") }
      let decoded = try await session.decode(object)
      if let state = decoded.state {
        await thing.restoring.decodeRestorableState(ObjectState(state, elements: decoded.elements))
      }
      return ["status": .string(decoded.status.rawValue)]
    case "invalidate":
      if let object = things[name]?.object { try await session.invalidateRestorableState(of: object) }
    case "save":
      let reason = command["reason"]?.string
      return try await longCall(command) {
        Self.value(try await session.saveApplicationState(reason: reason, deadline: deadline))
      }
    case "restore":
      return try await longCall(command) {
        Self.value(try await session.restoreApplicationState(deadline: deadline))
      }
    case "extend": return ["pending": .integer(try await session.extendStateRestoration())]
    case "complete": return ["pending": .integer(try await session.completeStateRestoration())]
    case "goodbye":
      let reason = command["reason"]?.string.flatMap(GoodbyeReason.init) ?? .restart
      guard await session.end(reason) else { return ["lost": "the goodbye was not confirmed"] }
    case "resume": return try await resume(session)
    default: return try await lookUp(command, session)
    }
    return [:]
  }

  private func longCall(
    _ command: JSONValue,
    _ body: @escaping @Sendable () async throws -> JSONValue
  ) async throws -> JSONValue {
    guard command["wait"]?.bool == false else { return try await body() }
    let number = Int64(pending.count + 1)
    pending[number] = Task { try await body() }
    return ["call": .integer(number)]
  }

  // MARK: The session

  private func open(_ command: JSONValue) async throws -> JSONValue {
    var options = SessionOptions(
      application: command["application"]?.string ?? "",
      process: command["process"]?.string,
      bundleVersion: command["bundleVersion"]?.string,
      answersCalls: true
    )
    func aliases(_ name: String) -> [String: String] {
      let members = command["aliases"]?[name]?.object?.members ?? []
      return Dictionary(members.map { ($0.name, $0.value.string ?? "") }) { first, _ in first }
    }
    options.classAliases = aliases("classes")
    options.identifierAliases = aliases("identifiers")
    if command["delegate"]?.bool == true { delegate = ServedDelegate(of: self) }
    let session = try await RestorationSession.start(options, delegate: delegate, socket: socket)
    self.session = session
    token = session.info.session
    follower = Task { for await notification in session.notifications { follow(notification) } }
    let restoration = session.info.restoration
    return [
      "session": .string(token), "reason": .string(restoration.reason.rawValue),
      "state": .string(restoration.state.rawValue), "generation": restoration.generation.map { .integer($0) } ?? .null,
    ]
  }

  /// Waits for a broker that answers.
  private func resume(_ session: RestorationSession) async throws -> JSONValue {
    while true {
      do {
        _ = try await session.call("ping")
        break
      } catch let error as RestorationSessionError where error.code == .outcomeUnknown {
        continue
      }
    }
    defer { token = session.info.session }
    return ["resumed": .bool(session.info.session == token)]
  }

  private func follow(_ notification: SessionNotification) {
    func name(_ object: RestorableObject) -> JSONValue {
      .string(things.first { $0.value.object === object }?.key ?? "?")
    }
    switch notification {
    case .applicationStateSaved(let generation): note("saved", .integer(generation))
    case .headReplaced(let generation): note("headReplaced", .integer(generation))
    case .stateWanted(let object): note("stateWanted", name(object))
    case .pathChanged(let object, _): note("pathChanged", name(object))
    case .registrationReplaced(let object, _, _), .registrationLost(let object, _): note("replaced", name(object))
    case .restorationClassLost, .dataSourceLost, .propertiesFailed, .archiveLost, .missed: break
    }
  }

  // MARK: Objects

  private func registerAll(_ command: JSONValue) async throws -> JSONValue {
    var registered: [JSONValue] = []
    for wanted in command["objects"]?.array ?? [] {
      let object = try await register(wanted)
      registered.append([
        "name": .string(things.first { $0.value.object === object }?.key ?? ""), "path": Self.value(object.path),
        "included": .bool(object.included), "state": .string(object.state.rawValue),
      ])
    }
    return ["objects": .array(registered)]
  }

  private func registerDataSource(_ command: JSONValue, _ session: RestorationSession) async throws {
    let items = command["items"] ?? .array([])
    let view: RestorableReference
    if let name = command["view"]?.string {
      view = things[name]?.object?.reference ?? .path(IdentifierPath(name.split(separator: "/").map(String.init)))
    } else {
      view = .path(IdentifierPath(command["view"]?.array?.compactMap(\.string) ?? []))
    }
    if let known = sources[view] { return await known.become(items) }
    let source = ServedItems(items, of: self)
    sources[view] = source
    try await session.registerDataSource(source, for: view)
  }

  private func push(_ names: [String], _ session: RestorationSession) async throws -> JSONValue {
    var results: JSONObject = [:]
    for name in names {
      guard let thing = things[name], let object = thing.object else { throw Fault("there is no object \(name)") }
      let state = try Self.state(of: thing)
      do {
        switch try await session.encode(state.state, for: object, elements: state.elements) {
        case .stored(let sequence, _): results[name] = ["sequence": .integer(sequence), "durability": "disk"]
        case .unsaved(let sequence): results[name] = ["sequence": .integer(sequence), "included": false]
        case .superseded: results[name] = ["superseded": true]
        case .discarded: results[name] = ["discarded": true]
        }
      } catch let error as RestorationError {
        results[name] = ["error": Self.value(error)]
      }
    }
    return ["results": .object(results)]
  }

  // MARK: Results

  private static func value(_ error: RestorationError) -> JSONValue {
    [
      "code": .integer(Int64(error.code.rawValue)), "message": .string(error.message),
      "data": error.dataText.map(value) ?? .null,
    ]
  }

  private static func value(_ number: Int64?) -> JSONValue { number.map { .integer($0) } ?? .null }

  private static func value(_ result: SaveResult) -> JSONValue {
    var value: JSONObject = [
      "saved": .bool(result.saved), "generation": value(result.generation), "objects": .integer(Int64(result.objects)),
      "bytes": .integer(Int64(result.bytes)), "milliseconds": .integer(result.milliseconds),
    ]
    if let reason = result.reason { value["reason"] = .string(reason) }
    value["stale"] = .array(
      result.stale.map {
        [
          "path": Self.value($0.path), "process": $0.process.map { .string($0) } ?? .null, "pid": Self.value($0.pid),
          "why": .string($0.why),
        ]
      }
    )
    value["excluded"] = .array(
      result.excluded.map { excluded in
        let by: JSONValue =
          switch excluded.by {
          case .handle(let handle): .integer(handle)
          case .path(let path): Self.value(path)
          }
        return ["object": .integer(excluded.object), "path": Self.value(excluded.path), "by": by]
      }
    )
    return .object(value)
  }

  private static func value(_ result: RestoreResult) -> JSONValue {
    var value: JSONObject = [
      "restored": .array(result.restored.map { Self.value($0) }),
      "skipped": .array(result.skipped.map { ["path": Self.value($0.path), "reason": .string($0.reason)] }),
      "absent": .array(result.absent.map { Self.value($0) }),
      "milliseconds": .integer(result.milliseconds),
    ]
    if result.declined { value["declined"] = true }
    return .object(value)
  }
}
