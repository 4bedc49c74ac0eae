// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// Whole archives and the real broker: no client waits for a long check or export, and an import happens completely or
/// not at all.
@Suite struct ArchiveTests {
  private static let application: JSONValue = "org.example.Big"

  /// Stores states of a size, as fast as the broker takes them.
  private static func fill(_ client: WireClient, count: Int, bytes: Int) throws {
    let filler = String(repeating: "x", count: bytes)
    for index in 0..<count {
      let object = #"["W\#(index % 40)","E\#(index)"]"#
      try client.send(
        #"{"jsonrpc":"2.0","method":"encodeRestorableState","params":{"application":"org.example.Big","object":"#
          + #"\#(object),"state":{"n":\#(index),"f":"\#(filler)"}}}"# + "\n"
      )
    }
    try client.call("describeApplication", ["application": application])
  }

  /// Encodes of another client that are answered until `client` has its answer; and the slowest of them.
  private static func encodes(_ other: WireClient, until client: WireClient) throws -> (count: Int, slowest: Int64) {
    var count = 0
    var slowest: Int64 = 0
    while !client.hasInput(within: .zero) {
      let begin = Deadline.now
      try other.encode("A", state: ["n": .integer(Int64(count))], of: "org.example.Other")
      slowest = max(slowest, Deadline.now - begin)
      count += 1
    }
    return (count, slowest)
  }

  @Test(.broker(alone: true)) func othersEncodeWhileALargeArchiveIsCheckedAndExported() throws {
    let client = try broker.connect()
    let other = try broker.connect()
    try Self.fill(client, count: 10_000, bytes: 1_000)
    try other.encode("A", state: [:], of: "org.example.Other")
    let check = try client.request("verifyArchive", ["application": Self.application])
    let meanwhile = try Self.encodes(other, until: client)
    #expect(try client.answer(to: check)["sound"] == true)
    #expect(meanwhile.count >= 10, "\(meanwhile)")
    var cursor: JSONValue = .null
    var pages = 0
    var answered = 0
    var slowest: Int64 = 0
    var objects = 0
    repeat {
      let page = try client.request("exportArchive", ["application": Self.application, "cursor": cursor])
      let meanwhile = try Self.encodes(other, until: client)
      answered += meanwhile.count
      slowest = max(slowest, meanwhile.slowest)
      let result = try client.answer(to: page)
      objects += result["part"]?["objects"]?.array?.count ?? 0
      cursor = result["cursor"] ?? .null
      pages += 1
    } while !cursor.isNull
    #expect(objects == 10_040)
    // The disk decides how many there are: a page takes about as long as an encode.
    #expect(pages >= 10 && answered > 0, "\(answered) encodes in \(pages) pages")
    print("\(meanwhile) encodes during the check, \(answered) in \(pages) pages, \(slowest) ms at most")
  }

  // MARK: Kills

  /// A document of many objects with one value in all of them.
  static func document(_ value: Int, count: Int) -> String {
    let filler = String(repeating: "y", count: 900)
    let objects = (0..<count).map { index in
      #"{"path":["O\#(index)"],"kind":"object","state":{"v":\#(value),"f":"\#(filler)"},"#
        + #""writer":{"written":"2026-02-28T09:05:00.042Z"}}"#
    }
    return #"{"format":"restorationd.archive","version":1,"objects":[\#(objects.joined(separator: ","))]}"#
  }

  static func importing(_ document: String) -> String {
    #"{"jsonrpc":"2.0","id":1,"method":"importArchive","params":{"application":"org.example.Big","force":true,"document":"#
      + document + "}}\n"
  }

  /// An import ends with its connection, which stays until it is done.
  static func importFirst(_ value: Int, count: Int) throws {
    let client = try broker.connect()
    try client.send(importing(document(value, count: count)))
    #expect(try client.receive().contains("\"objects\":\(count)"))
  }

  /// The value that all states have; fails if they have several, or if one is missing.
  static func value(count: Int) throws -> Int64? {
    let client = try broker.connect()
    var values: Set<Int64> = []
    var objects = 0
    var cursor: JSONValue = .null
    repeat {
      let page = try client.call("readArchive", ["application": application, "cursor": cursor])
      for object in page["objects"]?.array ?? [] {
        objects += 1
        if let value = object["state"]?["v"]?.integer { values.insert(value) }
      }
      cursor = page["cursor"] ?? .null
    } while !cursor.isNull
    guard values.count == 1, objects == count else { throw TestFailure("\(objects) objects with the values \(values)") }
    #expect(try client.call("verifyArchive", ["application": application])["sound"] == true)
    return values.first
  }

  @Test(.broker, .enabled(if: Strace.isUsable, Comment(rawValue: Strace.requirement)))
  func anImportThatIsKilledIsThereWholeOrNotAtAll() throws {
    let count = 3_000
    var expected: Int64 = 1
    try Self.importFirst(1, count: count)
    _ = try broker.terminate()
    var kills = 0
    let points = [3, 30, 300, 900, 1_400, 2_000].map { ("pwrite64", $0) } + [1, 2, 3].map { ("fdatasync", $0) }
    for (index, (call, number)) in points.enumerated() {
      broker.wrapper = Strace.killing(at: call, number: number)
      _ = try? broker.start()
      let next = index + 2
      var isAnswered = false
      if let client = try? broker.connect() {
        try? client.send(Self.importing(Self.document(next, count: count)))
        isAnswered = (try? client.receive().contains("\"objects\":\(count)")) ?? false
      }
      try broker.kill()
      broker.wrapper = []
      try broker.start()
      let found = try Self.value(count: count)
      #expect(found == Int64(next) || !isAnswered && found == expected, "killed at \(call) \(number)")
      if !isAnswered { kills += 1 }
      expected = found ?? 0
      _ = try broker.terminate()
    }
    #expect(kills >= 4, "\(kills) of \(points.count)")
    try broker.start()
  }
}
