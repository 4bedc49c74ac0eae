// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationTransport
internal import RestorationWire
internal import Testing

/// The broker's books: each account counts what clients make it hold. That all of them are empty when everybody has
/// left is expected at the end of every test with a `MemoryBroker`, and of every simulated history.
@Suite struct HoldingsTests {
  private let broker = MemoryBroker()

  private var held: Holdings { .sum(broker.holdings, broker.books.holdings) }

  private func expect(_ accounts: String..., sourceLocation: SourceLocation = #_sourceLocation) {
    for account in accounts {
      #expect((held[account] ?? 0) > 0, "\(account) of \(held)", sourceLocation: sourceLocation)
    }
  }

  @Test func whatASessionHasIsCounted() throws {
    #expect(held.isEmpty, "\(held)")
    let peer = broker.connect(confinement: "App")
    try peer.initialize("App", #""serves":["encodeRestorableStateWithCoder","objectWithRestorationIdentifierPath"]"#)
    try peer.call("subscribe")
    let object = try peer.register("A")
    try peer.call("registerRestorationClass", #"{"restorationClass":"C"}"#)
    expect("clients", "connections", "confined clients", "sessions", "subscriptions", "providers", "watched processes")
    expect("connections of processes", "processes with connections")
    let call = peer.registration("B", below: #"["Missing"]"#, #""awaitParentMilliseconds":1000"#)
    peer.start("registerObjectForStateRestoration", call)
    expect("waits for parents", "timers", "what waits of processes")
    try peer.call("invalidateRestorableState", #"{"object":\#(object)}"#)
    expect("saving")
    broker.advance(milliseconds: 200)
    expect("calls to clients", "calls over connections")
  }

  @Test func whatWaitsForTheDiskIsCounted() throws {
    let peer = broker.connect()
    try peer.initialize()
    broker.holdsCommits = true
    let text = String(repeating: "x", count: 100_000)
    peer.start("encodeRestorableState", peer.encoding(#"["A"]"#, #"{"x":"\#(text)"}"#))
    expect("waits for the disk", "bytes that wait for the disk", "growth that is not counted")
    broker.commit()
    broker.holdsCommits = false
    try peer.call("exportArchive")
    let uploader = broker.connect(pid: 2)
    let part = #"{"format":"restorationd.archive","version":1,"objects":[]}"#
    try uploader.call("importArchive", #"{"application":"Other","part":\#(part),"more":true}"#)
    expect("imports in parts", "timers")
    broker.holdsOpenings = true
    uploader.start("describeApplication", #"{"application":"Third"}"#)
    uploader.start("ping")
    expect("messages that wait")
  }

  @Test func whatARestorationHasUnderWayIsCounted() throws {
    let writer = broker.connect(pid: 1)
    try writer.initialize()
    try writer.encode("\(writer.register("A", #""restorationClass":"C""#))", #"{"n":1}"#)
    broker.crash(writer)
    broker.advance(milliseconds: 2_000)
    let peer = broker.connect(pid: 2)
    try peer.initialize("App", #""serves":["decodeRestorableStateWithCoder"]"#)
    peer.start("restoreApplicationState", #"{"deadlineMilliseconds":5000}"#)
    expect("restoring", "timers")
    try peer.register("A")
    expect("decodes on trial")
  }
}
