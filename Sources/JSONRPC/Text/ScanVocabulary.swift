// SPDX-License-Identifier: Apache-2.0

/// The member names by which the scan knows references inside payloads (R14).
package struct ScanVocabulary: Sendable, Equatable {
  /// An object with this member is a reference; the member's value is its target.
  package let referenceKey: String

  /// An object with this member, and everything below it, holds no references.
  package let literalKey: String

  package init(referenceKey: String, literalKey: String) {
    self.referenceKey = referenceKey
    self.literalKey = literalKey
  }
}
