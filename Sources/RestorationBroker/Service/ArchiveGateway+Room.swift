// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationTransport
internal import RestorationWire

/// Space for an archive beside all others.
extension ArchiveGateway {
  /// Why an archive may not grow or be made; `nil` if it may. The store itself limits the number of archives.
  /// `growth` is in bytes; `nil` opens the archive, and makes it if it does not exist.
  func refusal(
    to name: ApplicationName,
    growingBy growth: Int?,
    isConfined: Bool,
    _ limits: Limits
  ) -> ErrorObject? {
    let limit = "allArchivesBytesMax"
    guard isConfined else {
      guard let growth, growth > 0 else { return nil }
      let bytes = store.sizes.all.bytes + sessions.values.reduce(growth) { $0 + $1.queue.pendingBytes }
      guard bytes > limits.allArchivesBytesMax else { return nil }
      return .storeError(
        ArchiveError(.limit(name: limit, max: limits.allArchivesBytesMax, value: bytes), "no further byte is allowed")
      )
    }
    // Giving up space is always allowed.
    if let growth, growth < 0 { return nil }
    let (base, known) = (name.base, store.sizes)
    let own = sessions.values.filter { $0.base == base }
    let (stored, all) = (known.of(base), known.all)
    if growth == nil {
      guard !known.has(name.description) else { return nil }
      let archives = stored.archives + own.count { !known.has($0.name.description) }
      let others = all.archives - stored.archives
      let refusal = Share.refusal(of: "applicationsMax", max: limits.applicationsMax, own: archives, others: others)
      if let refusal { return refusal }
    }
    return Share.refusal(
      of: limit,
      max: limits.allArchivesBytesMax,
      own: own.reduce(stored.bytes) { $0 + $1.queue.pendingBytes },
      others: all.bytes - stored.bytes,
      adding: growth ?? 0
    )
  }
}
