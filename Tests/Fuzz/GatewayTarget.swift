// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import JSONRPC
internal import Mutation
internal import NIOCore
internal import NIOEmbedded
internal import RestorationArchive
internal import RestorationReplica
internal import RestorationTransport

extension FuzzTarget {
  /// What brokers of two users say to the gateway. Each line of the input is a step; its first byte says which:
  ///
  ///     a, b   the rest is sent by the broker of this user
  ///     x      this user's connection ends, and the next step makes another one
  ///     t      so many milliseconds pass
  ///
  /// Whatever they say, a third user is served, and sees nothing of theirs.
  static let gateway = FuzzTarget(
    name: "gateway",
    seeds: {
      let lease = #""lease":{"application":"App","archive":1,"id":"00000000000000000000000000000005"}"#
      let change = #""change":"0123456789abcdef0123456789abcdef""#
      let part = #""attempt":7,"tip":{"sequence":3,\#(change)},"reader":1,"bytes":"AAEC""#
      let (former, own) = ("00000000000000000000000000000004", "00000000000000000000000000000005")
      let reigns = #"[{"lease":"\#(former)","end":2},{"lease":"\#(own)","end":2}]"#
      let standing = #"{"history":"history 1","reigns":\#(reigns),"phase":"held","archive":"u"}"#
      let calls = [
        #"attach","params":{"version":1,"broker":"b","term":15000,"host":"A"}"#,
        #"acquire","params":{"application":"App","reader":1,"wants":true}"#,
        #"append","params":{\#(lease),"batch":{"after":0,"upto":2,\#(change),"body":"AA=="}}"#,
        #"load","params":{\#(lease),"from":{"after":0}}"#,
        #"snapshot","params":{\#(lease),"part":{\#(part),"number":0,"count":2}}"#,
        #"snapshot","params":{\#(lease),"part":{\#(part),"number":1,"count":2}}"#,
        #"load","params":{\#(lease),"from":{"part":0}}"#,
        #"acquire","params":{"application":"App","reader":1,"isForced":true,"standing":\#(standing)}"#,
        #"renew""#, #"list","params":{"after":"A"}"#,
        #"release","params":{\#(lease),"upto":2,"summary":"AA=="}"#,
        #"release","params":{\#(lease),"isRemoval":true,"summary":""}"#,
      ]
      func line(_ user: String, _ call: String) -> String {
        #"\#(user){"jsonrpc":"2.0","id":1,"method":"\#(call)}"#
      }
      let both = calls.map { line("a", $0) } + ["t60000", "xa"] + calls.map { line("b", $0) }
      func script(_ steps: [String]) -> [UInt8] { Array(steps.joined(separator: "\n").utf8) }
      let introduced = [line("a", calls[0]), line("a", calls[1])]
      return [script(both)]
        + calls.dropFirst().flatMap { call in
          let variants = borders(of: Array(call.utf8)).map { line("a", String(decoding: $0, as: UTF8.self)) }
          return [script(introduced + [line("a", call)]), script(introduced + variants)]
        } + [
          script(borders(of: Array(calls[0].utf8)).flatMap { ["xa", line("a", String(decoding: $0, as: UTF8.self))] })
        ]
    },
    run: { input in
      let gateway = FuzzedGateway()
      for line in input.split(separator: UInt8(ascii: "\n")).prefix(200) { gateway.perform(line) }
      gateway.stop()
    }
  )
}

/// The gateway's service with time and replicas in memory.
private final class FuzzedGateway {
  private let loop = TestEventLoop()
  private let host: MemoryHost
  private let service: GatewayService
  private let replicas: NIOLoopBoundBox<[String: MemoryReplica]>
  private var peers: [UInt8: FuzzedPeer] = [:]
  private var lastPID: Int64 = 1

  private static let users = Array("abc".utf8)

  init() {
    let replicas = NIOLoopBoundBox<[String: MemoryReplica]>([:], eventLoop: loop)
    (host, self.replicas) = (MemoryHost(on: loop), replicas)
    service = GatewayService(
      GatewayService.Settings(host: "here"),
      on: loop,
      findUser: { $1("user\($0)") },
      makeReplica: { owner, host, term, attention in
        let replica = replicas.value[owner] ?? MemoryReplica()
        replicas.value[owner] = replica
        return replica.link(from: host, term: term, attention: attention)
      }
    )
  }

  private func peer(of user: UInt8) -> FuzzedPeer? {
    guard let index = Self.users.firstIndex(of: user) else { return nil }
    if let peer = peers[user], peer.isOpen { return peer }
    var settings = GatewayService.connectionSettings
    // Nothing is lost where there is no kernel.
    settings.limits.lingerSeconds = 0
    lastPID += 1
    let process = host.process(lastPID, unit: nil)
    let peer = FuzzedPeer(process, of: 1_000 + UInt32(index), settings, service, on: loop)
    peers[user] = peer
    run()
    return peer
  }

  func perform(_ line: ArraySlice<UInt8>) {
    guard let step = line.first else { return }
    let rest = line.dropFirst()
    switch step {
    case UInt8(ascii: "t"):
      let milliseconds = max(0, Int64(String(decoding: rest.prefix(6), as: UTF8.self)) ?? 0)
      for replica in replicas.value.values { replica.advance(by: milliseconds) }
      advance(milliseconds: milliseconds)
    case UInt8(ascii: "x"): if let user = rest.first { peers[user]?.close() }
    case UInt8(ascii: "a"), UInt8(ascii: "b"): peer(of: step)?.send(rest + [10])
    default: break
    }
    run()
  }

  /// Runs until nothing is left to do at this moment.
  private func run() { repeat { loop.run() } while peers.values.reduce(false) { $1.takeOutput() || $0 } }

  private func advance(milliseconds: Int64) {
    let end = loop.now + .milliseconds(milliseconds)
    var isMore = true
    while isMore {
      isMore = loop.advance(to: end)
      run()
    }
  }

  /// Has another user served, and ends the service.
  func stop() {
    let peer = peer(of: UInt8(ascii: "c"))
    for call in [#"attach","params":{"version":1,"broker":"b","term":15000}"#, #"list""#] {
      peer?.send(#"{"jsonrpc":"2.0","id":"c","method":"\#(call)}"#.utf8 + [10])
      run()
    }
    demand(peer?.last?["result"]?["archives"]?.text.elementsEqual("[]".utf8) == true, "another user is not served")
    let (hasStopped, service) = (NIOLoopBoundBox(false, eventLoop: loop), service)
    service.assumeIsolated { service in
      _ = Task {
        await service.stop(milliseconds: 0)
        hasStopped.value = true
      }
    }
    run()
    advance(milliseconds: 1_000)
    demand(hasStopped.value, "the gateway does not end")
    for peer in peers.values { peer.close() }
    loop.run()
    loop.cancelTimers()
    loop.run()
  }
}
