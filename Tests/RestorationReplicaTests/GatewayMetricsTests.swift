// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationReplica
internal import TestSupport
internal import Testing

/// What a gateway counts.
@Suite(.passesTurnstile) struct GatewayMetricsTests {
  private static let database = GatewayMetrics.Database(connections: 2, connectionsMax: 4, busy: 1, waiting: 3)

  @Test func callsAreCountedByMethodAndOutcomeUnderTheNamesOfThePageAndNobodyIsNamed() async throws {
    let gateway = try ServedGateway()
    try await gateway.start()
    let client = try WireClient(gateway.name)
    try client.call("attach", ["version": 1, "broker": "b", "term": 3_000, "host": "A"])
    for _ in 1...2 { try client.call("list") }
    #expect(try client.failure("acquire", ["application": "../draw"]).kind == "invalidParams")
    for name in ["drop", "table"] { #expect(try client.failure(name).kind == "methodNotFound") }
    let text = try #require(await gateway.metrics(Self.database))
    let samples = Set(text.split(separator: "\n").map(String.init))
    for sample in [
      #"calls_total{method="attach",outcome="done"} 1"#, #"calls_total{method="list",outcome="done"} 2"#,
      #"calls_total{method="acquire",outcome="invalidParams"} 1"#,
      #"calls_total{method="other",outcome="methodNotFound"} 2"#,
      #"call_seconds_bucket{method="list",le="+Inf"} 2"#, #"call_seconds_count{method="list"} 2"#,
      "connections 1", "brokers 1", "users 1", "database_connections 2", "database_connections_max 4",
      "database_connections_busy 1", "database_calls_waiting 3",
    ] {
      #expect(samples.contains("restoration_gateway_\(sample)"), "\(sample)")
    }
    // Two empty lists, and what was attached.
    #expect(samples.contains { $0.hasPrefix("restoration_gateway_received_bytes_total ") && !$0.hasSuffix(" 0") })
    #expect(samples.contains { $0.hasPrefix("restoration_gateway_sent_bytes_total ") && !$0.hasSuffix(" 0") })
    #expect(!text.contains("drop") && !text.contains("user="))
    let page = try Files.text("\(Products.repository)/Protocol/gateway.md")
    let promised = page.matches(of: /\| `(restoration_gateway_\w+)` \| (\w+) \|/).map { "\($0.1) \($0.2)" }
    let given = text.matches(of: /# TYPE (\w+) (\w+)\n/).map { "\($0.1)\($0.2 == "counter" ? "_total" : "") \($0.2)" }
    #expect(promised.sorted() == given.sorted())
    await gateway.stop()
  }
}
