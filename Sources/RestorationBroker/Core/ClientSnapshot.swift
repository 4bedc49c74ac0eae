// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// What the next broker has to know of a client, beside what the archive knows of its sessions.
struct ClientSnapshot: Equatable {
  struct SessionName: Equatable {
    var application: ApplicationName
    var token: String
    /// A detached session that nobody else knows of: it ends with the connection.
    var isOwn = false
  }

  /// The session it initialized or resumed.
  var session: SessionName?
  /// That session fetches its calls by `nextRequest`.
  var polls = false
  /// The detached sessions its calls made, one an application.
  var detached: [SessionName] = []
  var subscriptions: [Subscriptions.Entry] = []
  var lastSubscription: Int64 = 0
  var canBeCalled = true
  /// The broker before was killed. Not part of the text.
  var isAfterKill = false

  init() {}

  /// Reads `text`; members that are missing or make no sense are left out.
  init(text: [UInt8]) {
    guard let value = try? JSONCodec.parse(text) else { return }
    session = value["session"].flatMap { SessionName($0) }
    polls = value["polls"]?.bool ?? false
    detached = (value["detached"]?.array ?? []).compactMap { SessionName($0) }
    for entry in value["subscriptions"]?.array ?? [] {
      guard let number = entry["number"]?.storedCount else { continue }
      let names = entry["events"]?.array?.compactMap { $0.string.flatMap { EventName(rawValue: $0) } }
      let application = entry["application"]?.string.flatMap { ApplicationName($0) }
      // For one application whose name we cannot read is not for all of them.
      if application == nil, entry["application"] != nil { continue }
      subscriptions.append(.init(number: number, names: names.map { Set($0) }, application: application))
    }
    lastSubscription = value["lastSubscription"]?.storedCount ?? 0
    canBeCalled = value["canBeCalled"]?.bool ?? true
  }

  /// Empty where there is nothing to know.
  var text: [UInt8] {
    if self == ClientSnapshot() { return [] }
    var object: JSONObject = ["canBeCalled": .bool(canBeCalled)]
    object["session"] = session?.json
    if polls { object["polls"] = true }
    if !detached.isEmpty { object["detached"] = .array(detached.map(\.json)) }
    if lastSubscription > 0 { object["lastSubscription"] = .integer(lastSubscription) }
    if !subscriptions.isEmpty {
      object["subscriptions"] = .array(
        subscriptions.map { entry in
          var object: JSONObject = ["number": .integer(entry.number)]
          object["events"] = entry.names.map { .array($0.map(\.rawValue).sorted().map { .string($0) }) }
          object["application"] = entry.application.map { .string($0.description) }
          return .object(object)
        }
      )
    }
    return Array(JSONText(.object(object)).bytes)
  }
}

extension ClientSnapshot.SessionName {
  init?(_ value: JSONValue) {
    guard let name = value["application"]?.string.flatMap({ ApplicationName($0) }), let token = value["token"]?.string
    else { return nil }
    self.init(application: name, token: token, isOwn: value["own"]?.bool ?? false)
  }

  var json: JSONValue {
    ["application": .string(application.description), "token": .string(token), "own": .bool(isOwn)]
  }
}
