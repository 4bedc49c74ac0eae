// SPDX-License-Identifier: Apache-2.0

/// The limits of one peer's pending messages. A value equal to a limit passes, one more fails.
package struct ConversationLimits: Sendable, Equatable {
  /// Messages in one batch.
  package var batchMax = 256

  /// Bytes of the answers to one batch. Once there are so many, the rest of its requests is refused.
  package var batchReplyBytesMax = 2 << 20

  /// Requests awaiting their answer, parked ones not counted; beyond it further calls are held back.
  package var inFlightMax = 128

  /// Requests parked at one time.
  package var parkedMax = 1_024

  /// Answers to calls that were never made, before the conversation ends.
  package var strayResponsesMax = 64

  package init() {}
}
