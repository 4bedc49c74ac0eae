// SPDX-License-Identifier: Apache-2.0

/// How much all archives of a store may take up together; an archive that exists is always opened.
package struct ArchiveQuota: Hashable, Sendable {
  /// Archives at most.
  package var applicationsMax: Int
  /// Bytes of all archives at rest at most.
  package var allArchivesBytesMax: Int

  package init(applicationsMax: Int = 1_024, allArchivesBytesMax: Int = 1 << 30) {
    self.applicationsMax = applicationsMax
    self.allArchivesBytesMax = allArchivesBytesMax
  }
}
