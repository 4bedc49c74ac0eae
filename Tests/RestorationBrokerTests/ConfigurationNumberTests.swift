// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Mutation
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Every integer of the broker's configuration, at its borders.
@Suite struct ConfigurationNumberTests {
  private static func read(_ text: String) throws -> BrokerConfiguration {
    var flags = BrokerConfiguration.Flags()
    (flags.file, flags.socket, flags.archives) = ("config.json", "/run/b.sock", "/archives")
    return try BrokerConfiguration(flags, environment: { $0 == "HOME" ? "/users/ann" : nil }, readFile: { _ in text })
  }

  @Test func anIntegerIsInsideOfItsRangeOrRefusedByItsName() throws {
    let limits = Limit.all.map { #""\#($0.name)":\#(Limits()[keyPath: $0.keyPath])"# }.joined(separator: ",")
    let text = #"{"idleExitSeconds":60,"replica":{"leaseSeconds":900},"limits":{\#(limits)}}"#
    _ = try Self.read(text)
    let variants = borders(of: Array(text.utf8))
    #expect(variants.count > 500)
    for variant in variants.map({ String(decoding: $0, as: UTF8.self) }) {
      do {
        let configuration = try Self.read(variant)
        for limit in Limit.all { #expect(limit.range.contains(configuration.limits[keyPath: limit.keyPath])) }
        #expect(3...86_400 ~= configuration.replica?.leaseSeconds ?? 0)
      } catch {
        #expect("\(error)".contains("config.json"), "\(error) in \(variant)")
      }
    }
  }
}
