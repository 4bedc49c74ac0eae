// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
internal import RestorationTransport

/// Constants shared by both ends of the gateway's socket (`Protocol/gateway.md`).
package enum GatewayProtocol {
  package static let version = 1

  /// The gateway's time for a call from its arrival on; the broker waits a second longer.
  package static let callMilliseconds: Int64 = 5_000
  /// The same for an append and a new connection.
  package static let briefMilliseconds: Int64 = 1_500

  /// Bytes of a part of a snapshot: 256 KiB, and the overhead of sealing.
  package static let partBytesMax = 257 << 10

  /// The most bytes of a page, unless it is one part or batch.
  package static let pageBytesMax = 1 << 20

  /// A batch has at most 4 MiB of changes, and if it has more than 1 MiB, at most 16,384 transactions
  /// (`ShippingQueue`), each of which takes 16 bytes besides: 6 MB of base 64. A page has 1 MiB. In batches of one
  /// transaction, of 21 bytes at least, that is 50,000 objects of 5 values and 130 bytes, which is 6.5 MB.
  package static let frame = FrameLimits(
    frameBytesMax: 8 << 20,
    depthMax: 16,
    valuesPerFrameMax: 1 << 18 + 64,
    keysPerObjectMax: 64
  )

  /// No part of it is a state: no member is special.
  static let vocabulary = ScanVocabulary(referenceKey: "$restorable", literalKey: "$literal")

  /// The broker's end sends its own calls only, each of which has a deadline.
  static var linkSettings: ConnectionSettings {
    var limits = TransportLimits()
    limits.frame = frame
    limits.outQueueBytesMax = .max
    limits.connectSeconds = 0
    // An error without an id answers one of our calls, but it is unknown which; that call gets no other answer.
    limits.conversation.strayResponsesMax = 0
    return ConnectionSettings(limits: limits, vocabulary: vocabulary)
  }
}

/// Another host has begun to wait for a lease of the broker, which renews at once to learn for which one.
package enum Attention {
  package static let method = "attention"
}
