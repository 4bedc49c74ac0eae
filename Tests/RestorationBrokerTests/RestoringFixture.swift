// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// An application that has crashed and restarts: its saved states, and processes that serve restoring.
final class RestoringFixture {
  let broker = MemoryBroker()
  /// The broker's calls and notifications, in order: `role method what`.
  var log: [String] = []

  static let served = [
    "shouldRestoreApplicationState", "didDecodeRestorableState", "objectWithRestorationIdentifierPath",
    "viewControllerWithRestorationIdentifierPath", "decodeRestorableStateWithCoder",
    "applicationFinishedRestoringState", "indexPathForElementWithModelIdentifier",
  ]

  /// Saves objects in a session that crashes then: identifier, parent as JSON, further members, state or `nil`.
  func save(_ objects: [(identifier: String, parent: String?, more: String, state: String?)]) throws {
    let writer = broker.connect(pid: 900)
    try writer.initialize()
    for object in objects {
      let handle = try writer.register(object.identifier, below: object.parent, object.more)
      if let state = object.state { try writer.encode("\(handle)", state) }
    }
    broker.crash(writer)
  }

  /// A process that serves everything, and says yes to all; `serves` of the peer changes that.
  func join(
    _ role: String,
    pid: Int64,
    delegate: Bool = false,
    serves: [String] = served,
    messageBytesMax: Int = 65_536,
    session: String? = nil,
    unit: String? = nil
  ) throws -> Peer {
    let peer = broker.connect(pid: pid, unit: unit)
    // It may be called as soon as it exists.
    answer(peer, role)
    let names = serves.map { "\"\($0)\"" }.joined(separator: ",")
    let token = session.map { #""session":"\#($0)","# } ?? ""
    try peer.initialize(
      "App",
      token + #""process":"\#(role)","delegate":\#(delegate),"messageBytesMax":\#(messageBytesMax),"#
        + #""serves":[\#(names)]"#
    )
    return peer
  }

  /// Has the peer answer the calls of the broker, and notes them.
  func answer(_ peer: Peer, _ role: String) {
    for name in ["shouldRestoreApplicationState", "didDecodeRestorableState"] {
      peer.serves[name] = { _ in
        self.log.append("\(role) \(name)")
        return "true"
      }
    }
    peer.serves["decodeRestorableStateWithCoder"] = { parameters in
      let objects = (parameters["objects"]?.array ?? []).map { object in
        (object["path"]?.joined ?? "-") + (object["deferred"]?.bool == true ? "?" : "")
      }
      self.log.append("\(role) decode \(objects.joined(separator: " "))")
      return "{}"
    }
    for name in ["objectWithRestorationIdentifierPath", "viewControllerWithRestorationIdentifierPath"] {
      peer.serves[name] = { _ in "null" }
    }
  }

  /// The peer makes the objects of a restoration class, by registering them if they were.
  func makes(_ restorationClass: String, _ peer: Peer, _ role: String) throws {
    peer.serves["objectWithRestorationIdentifierPath"] = { parameters in
      let path = parameters["identifierPath"]?.array?.compactMap(\.string) ?? []
      self.log.append("\(role) make \(path.joined(separator: "/"))")
      let parent = path.count > 1 ? JSONText(.array(path.dropLast().map { .string($0) })).string : nil
      let more = #""kind":"viewController","restorationClass":"\#(restorationClass)""#
      return (try? peer.register(path.last, below: parent, more)).map { #"{"object":\#($0)}"# } ?? "null"
    }
    try peer.call("registerRestorationClass", #"{"restorationClass":"\#(restorationClass)"}"#)
  }

  func finished(_ peer: Peer) -> [Int64] {
    peer.notifications.filter { $0.method == "applicationFinishedRestoringState" }
      .flatMap { $0.parameters["objects"]?.array ?? [] }.compactMap(\.integer)
  }
}

/// The outcome of a restoration in words: `+path` restored, `-path reason` skipped, `?path` absent.
func outcome(_ result: JSONValue) -> [String] {
  let restored = (result["restored"]?.array ?? []).map { "+" + ($0.joined ?? "") }
  let skipped = (result["skipped"]?.array ?? []).map {
    "-" + ($0["path"]?.joined ?? "") + " " + ($0["reason"]?.string ?? "")
  }
  return restored + skipped + (result["absent"]?.array ?? []).map { "?" + ($0.joined ?? "") }
}
