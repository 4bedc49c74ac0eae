// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive

/// Names a lease: a random UUID that the replica makes. No two leases have the same, also if the replica is put back to
/// an earlier state, or another server takes over that lacks the newest leases.
package struct LeaseID: Hashable, Sendable {
  package let uuid: ChangeID

  package init(_ uuid: ChangeID) { self.uuid = uuid }

  /// 32 hexadecimal digits.
  package var text: String { uuid.text }

  package init?(_ text: some StringProtocol) {
    guard let uuid = ChangeID(text) else { return nil }
    self.uuid = uuid
  }
}

extension ChangeID {
  /// 32 hexadecimal digits.
  package var text: String {
    [high, low].map { number in
      let digits = String(number, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }

  package init?(_ text: some StringProtocol) {
    let digits = text.utf8
    guard digits.count == 32, digits.allSatisfy({ UInt8(ascii: "-") < $0 }),
      let high = UInt64(String(text.prefix(16)), radix: 16), let low = UInt64(String(text.suffix(16)), radix: 16)
    else { return nil }
    self.init(high: high, low: low)
  }
}
