// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Logging
internal import RestorationBroker
internal import Testing

/// A request says of which trace it is, and so do the calls that it causes.
@Suite struct TraceTests {
  private static let parents = [1, 2].map { "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b\($0)-01" }

  private static func meta(_ number: Int) -> String {
    #"{"_meta":{"traceparent":"\#(parents[number])","tracestate":"a=\#(number)","progressToken":1}}"#
  }

  private static func traces(_ peer: Peer) -> [String] {
    peer.calls.map { call in
      let meta = call.parameters["_meta"]
      return "\(call.method) \(meta?["traceparent"]?.string ?? "none") \(meta?["tracestate"]?.string ?? "none")"
    }
  }

  private static func worker(_ broker: MemoryBroker, _ more: String = "") throws -> Peer {
    let peer = broker.connect(pid: 2)
    let served = #""willEncodeRestorableState","encodeRestorableStateWithCoder""#
    try peer.initialize("App", #""delegate":true,"serves":[\#(served)]\#(more)"#)
    try peer.register("A")
    peer.serves["willEncodeRestorableState"] = { _ in "null" }
    return peer
  }

  @Test func theCallsOfARoundAreOfTheTraceOfItsFirstCaller() throws {
    let broker = MemoryBroker()
    let peer = try Self.worker(broker)
    peer.serves["willEncodeRestorableState"] = nil
    peer.start("saveApplicationState", Self.meta(0))
    // The session that is asked cannot join.
    broker.connect(pid: 3).start("saveApplicationState", #"{"application":"App","# + Self.meta(1).dropFirst())
    peer.answer(try #require(peer.calls.first).id, "null")
    peer.answerEncode { _ in "{}" }
    let trace = "\(Self.parents[0]) a=0"
    #expect(Self.traces(peer) == ["willEncodeRestorableState \(trace)", "encodeRestorableStateWithCoder \(trace)"])
    peer.start("saveApplicationState")
    peer.answer(try #require(peer.calls.last).id, "null")
    #expect(Self.traces(peer).suffix(2).allSatisfy { $0.hasSuffix(" none none") })
    broker.inspect()
  }

  @Test func aRequestWithAnInvalidTraceIsDoneAsWithoutOne() throws {
    let broker = MemoryBroker()
    let peer = try Self.worker(broker)
    let id = peer.start("saveApplicationState", #"{"_meta":{"traceparent":"no","tracestate":"a=1"}}"#)
    peer.answerEncode { _ in "{}" }
    #expect(try peer.result(of: id)["saved"] == true)
    #expect(Self.traces(peer).count == 2 && Self.traces(peer).allSatisfy { $0.hasSuffix(" none none") })
  }

  /// What a client reads is kept for what it was asked for.
  @Test func aCallThatFitsOnlyWithoutItsTraceIsMadeWithoutIt() throws {
    let broker = MemoryBroker()
    let peer = try Self.worker(broker, #","messageBytesMax":256"#)
    peer.start("saveApplicationState", Self.meta(0))
    #expect(Self.traces(peer).last == "encodeRestorableStateWithCoder none none", "\(Self.traces(peer))")
  }

  @Test func theCallsOfARestorationAreOfItsCallersTraceAndThoseOfTheNextAreNot() throws {
    let fixture = RestoringFixture()
    try fixture.save([("A", nil, "", "{}"), ("B", nil, "", "{}"), ("C", nil, RestoringTests.made, "{}")])
    let peer = try fixture.join("W", pid: 3, delegate: true)
    try fixture.makes("Pages", peer, "W")
    try peer.register("A")
    let parameters = #"{"deadlineMilliseconds":1000,"# + Self.meta(1).dropFirst()
    let id = peer.start("restoreApplicationState", parameters)
    fixture.broker.advance(milliseconds: 1_000)
    #expect(try peer.result(of: id)["restored"]?.array?.count == 2)
    let traces = Self.traces(peer)
    #expect(traces.contains { $0.hasPrefix("objectWith") } && traces.contains { $0.hasPrefix("didDecode") })
    #expect(traces.allSatisfy { $0.hasSuffix(" \(Self.parents[1]) a=1") }, "\(traces)")
    peer.start("restoreApplicationState")
    #expect(Self.traces(peer).count > traces.count)
    #expect(Self.traces(peer).dropFirst(traces.count).allSatisfy { $0.hasSuffix(" none none") })
  }

  @Test func debugNamesTheTraceOfEachRequest() throws {
    let broker = MemoryBroker(logLevel: .debug)
    let peer = try Self.worker(broker)
    try peer.call("ping", Self.meta(1))
    peer.start("saveApplicationState", Self.meta(0))
    peer.answerEncode { _ in "{}" }
    let lines = broker.logged.filter { $0.contains("traceparent=") }
    #expect(lines.map { $0.suffix(55) } == [1, 0, 0, 0].map { Self.parents[$0].suffix(55) }, "\(broker.logged)")
    #expect(lines.first?.hasPrefix("request answered ") == true && lines.last?.contains("saveApplicationState") == true)
  }
}
