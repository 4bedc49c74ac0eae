// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import JSONRPC
internal import Mutation
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire

extension FuzzTarget {
  /// Messages of several clients to the real service. Each line of the input is a step; its first byte says which:
  ///
  ///     a, b, c   the rest is sent by this client; c is confined
  ///     =, !      the rest is the result, or the error, of the broker's oldest call to a
  ///     t         so many milliseconds pass
  ///     k         this client's process is killed, and another takes its place
  ///     A         a connection goes on that is said to have had the rest for its context
  static let messages = FuzzTarget(
    name: "messages",
    seeds: { FuzzedScript.vectors + FuzzedScript.borderCalls },
    run: { input in
      let script = FuzzedScript()
      for line in input.split(separator: UInt8(ascii: "\n")).prefix(200) { script.perform(line) }
      script.broker.stop()
    }
  )
}

/// A broker with three clients at work.
private final class FuzzedScript {
  let broker: FuzzedBroker
  private var clients: [UInt8: FuzzedPeer] = [:]

  init() {
    var limits = Limits()
    // Reached by few calls.
    (limits.objectsPerApplicationMax, limits.pathBytesMax) = (24, 400)
    broker = FuzzedBroker(limits: limits) { loop in
      try MemoryArchiveStore(on: loop, newIdentifier: { "01234567-89ab-cdef-0123-456789abcdef" })
    }
  }

  /// The client of this name, nil if there is no such name. It begins when a step names it: beginning takes longer than
  /// most steps.
  private func client(_ name: UInt8) -> FuzzedPeer? {
    if clients[name] == nil, "abc".utf8.contains(name) { begin(name) }
    return clients[name]
  }

  /// A client with a session and some objects.
  private func begin(_ name: UInt8) {
    let client = broker.connect(confinement: name == UInt8(ascii: "c") ? "App" : nil)
    clients[name] = client
    let served = ServedMethod.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ",")
    let isDelegate = name == UInt8(ascii: "a")
    let role = String(UnicodeScalar(name))
    let options = #""process":"\#(role)","delegate":\#(isDelegate),"serves":[\#(served)]"#
    let calls = [
      #""initialize","params":{"application":"App",\#(options)}"#,
      #""registerObjectForStateRestoration","params":{"restorationIdentifier":"\#(role)","kind":"viewController"}"#,
      #""registerObjectForStateRestoration","params":{"restorationIdentifier":"x","restorationParent":["\#(role)"]}"#,
    ]
    for call in calls { client.send(#"{"jsonrpc":"2.0","id":0,"method":\#(call)}"#.utf8 + [10]) }
    broker.run()
  }

  func perform(_ line: ArraySlice<UInt8>) {
    guard let name = line.first else { return }
    let rest = line.dropFirst()
    switch name {
    case UInt8(ascii: "="): answer(#""result":"#, rest)
    case UInt8(ascii: "!"): answer(#""error":"#, rest)
    case UInt8(ascii: "t"):
      let milliseconds = Int64(String(decoding: rest.prefix(6), as: UTF8.self)) ?? 0
      broker.advance(milliseconds: max(0, milliseconds))
    case UInt8(ascii: "k"):
      guard let victim = rest.first, let client = client(victim) else { return }
      broker.kill(client)
      begin(victim)
    case UInt8(ascii: "A"): clients[UInt8(ascii: "b")] = broker.connect(adopting: Array(rest))
    default: client(name)?.send(rest + [10])
    }
    broker.run()
  }

  private func answer(_ member: String, _ value: ArraySlice<UInt8>) {
    guard let client = clients[UInt8(ascii: "a")], let call = client.takeCall() else { return }
    client.send(#"{"jsonrpc":"2.0","id":\#(call),\#(member)"#.utf8 + value + "}\n".utf8)
  }

  // MARK: Seeds

  /// The messages of the protocol's own test vectors.
  static let vectors: [[UInt8]] = {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent("Protocol/vectors")
    let files = (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? []
    let contexts = [
      #"A{"session":{"application":"App","number":1},"detached":[],"confinement":"App","canBeCalled":false}"#,
      "ka\nt5000\nkb",
    ]
    return files.sorted { $0.path < $1.path }.compactMap { script(at: $0) } + contexts.map { Array($0.utf8) }
  }()

  /// Each method with every number at its borders.
  static var borderCalls: [[UInt8]] {
    MethodTable.methods.compactMap { method in
      let parameters = FuzzTarget.sample(of: .object(method.members)).replacingOccurrences(of: "org.example.", with: "")
      let calls = borders(of: Array(parameters.utf8)).map { parameters -> [UInt8] in
        Array(#"a{"jsonrpc":"2.0","id":1,"method":"\#(method.method)","params":"#.utf8) + parameters + "}\n".utf8
      }
      return calls.isEmpty ? nil : calls.flatMap { $0 }
    }
  }

  private static func script(at file: URL) -> [UInt8]? {
    guard file.pathExtension == "json", let text = try? String(contentsOf: file, encoding: .utf8) else { return nil }
    let own = text.replacingOccurrences(of: "$APPLICATION", with: "App")
    guard let steps = try? JSONCodec.parse(Array(own.utf8))["steps"]?.array else { return nil }
    return steps.flatMap { step -> [UInt8] in
      guard let message = step["send"] else { return [] }
      let client = step["client"] == "b" ? "b" : "a"
      for (member, mark) in [("result", "="), ("error", "!")] {
        if let value = message[member] { return Array(mark.utf8) + JSONText(value).bytes + [10] }
      }
      return Array(client.utf8) + JSONText(message).bytes + [10]
    }
  }
}
