// SPDX-License-Identifier: Apache-2.0

/// The limits of one peer's pending messages. A value equal to a limit passes, one more fails.
package struct ConversationLimits: Sendable, Equatable {
  package var batchMax = 256

  /// Bytes of the answers to one batch. Beyond it the rest of its requests is refused.
  package var batchReplyBytesMax = 2 << 20

  /// Unanswered requests, without parked ones; beyond it further calls are held back.
  package var inFlightMax = 128

  package var parkedMax = 1_024

  /// Answers to calls that were never made, before the conversation ends.
  package var strayResponsesMax = 64

  package init() {}
}
