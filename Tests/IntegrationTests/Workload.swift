// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport

/// Encodes of a few objects, with a record of the states sent and acknowledged.
///
/// Each state shows whether it is complete, and which one it is.
struct Workload {
  private(set) var sent: [String: Int] = [:]
  private(set) var acknowledged: [String: Int] = [:]
  /// Everything the last run was to send was acknowledged.
  private(set) var isComplete = false
  private var next = 0

  static let application: JSONValue = "org.example.Work"

  static func state(_ number: Int) -> JSONValue {
    let size = [1, 200, 5_000][number % 3]
    let pad = String(repeating: "x", count: size)
    return ["n": .integer(Int64(number)), "pad": .string(pad), "sum": .integer(Int64(number * 31 + size))]
  }

  /// Encodes `count` states, four at a time, until the broker is gone.
  mutating func run(_ socket: String, count: Int) {
    isComplete = false
    guard let client = try? WireClient(socket) else { return }
    do {
      var pending: [Int64: (name: String, number: Int)] = [:]
      func takeAnswers(_ left: Int) throws {
        while pending.count > left {
          let answer = try client.receiveMessage()
          guard let id = answer["id"]?.integer, let (name, number) = pending.removeValue(forKey: id) else { continue }
          guard answer["result"]?["durability"] == "disk" else { throw TestFailure("not acknowledged: \(answer.text)") }
          acknowledged[name] = max(number, acknowledged[name] ?? 0)
        }
      }
      for _ in 1...count {
        next += 1
        let name = "O\(next % 7)"
        sent[name] = next
        let parameters: JSONValue = [
          "application": Self.application, "object": .path("Root", name), "state": Self.state(next),
        ]
        pending[try client.request("encodeRestorableState", parameters)] = (name, next)
        try takeAnswers(3)
      }
      try takeAnswers(0)
      isComplete = true
    } catch {
      // The broker is gone: pending encodes may be stored or not.
    }
  }

  /// Nothing that was acknowledged is lost, nothing is half (R15).
  func check(_ socket: String) throws {
    let client = try WireClient(socket)
    for (name, last) in sent {
      let least = acknowledged[name] ?? 0
      let found: JSONValue?
      do {
        let parameters: JSONValue = ["application": Self.application, "object": .path("Root", name)]
        found = try client.call("decodeRestorableState", parameters)["state"]
      } catch let error as CallError where error.kind == "unknownObject" || error.kind == "unknownApplication" {
        found = nil
      }
      guard let state = found, !state.isNull else {
        guard least == 0 else { throw TestFailure("\(name): \(least) was acknowledged and nothing is there") }
        continue
      }
      guard let number = state["n"]?.integer, state == Self.state(Int(number)) else {
        throw TestFailure("\(name): half a state: \(state.text.prefix(200))")
      }
      guard (least...last).contains(Int(number)) else {
        throw TestFailure("\(name): \(number) came back, \(least) was acknowledged, \(last) was sent")
      }
    }
  }
}
