// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// What the core asks of a store, in calls of the store. Errors are values, by a trap of Swift 6.3
/// (`Sources/ARCHITECTURE.md`).
extension ArchiveStore {
  /// Opens an archive, and makes the tree of its head before the loop has to take it: of many objects that takes long.
  nonisolated(nonsending) func opened(
    _ name: ApplicationName,
    for purpose: ArchivePurpose
  ) async -> Result<OpenedArchive, ArchiveError> {
    do throws(ArchiveError) {
      let opening = try await open(name.description, for: purpose)
      return .success(await compute(for: name.description) { OpenedArchive(opening) })
    } catch {
      return .failure(error)
    }
  }

  nonisolated(nonsending) func listing(for purpose: ListingPurpose) async -> Result<ArchiveListing, ArchiveError> {
    do throws(ArchiveError) {
      var listing = ArchiveListing(summaries: try await list())
      if purpose.isOfFleet, let roaming = self as? any ArchiveRoaming {
        let (others, isComplete) = await roaming.others(within: purpose.patience)
        listing.summaries.merge(others)
        listing.isIncomplete = !isComplete
      }
      return .success(listing)
    } catch {
      return .failure(error)
    }
  }

  typealias Reading = (request: StateRequest, result: Result<[StateReading?], ArchiveError>)

  /// Brings what all the requests ask for, in one call if nothing was written between their rows.
  nonisolated(nonsending) func readings(of requests: [StateRequest], _ lease: ArchiveLease) async -> [Reading] {
    let rows = requests.flatMap(\.rows)
    let newest = rows.map(\.sequence).max() ?? 0
    var results: [Reading] = []
    do throws(ArchiveError) {
      var readings = try await read(rows.map(\.node), at: .sequence(newest), lease: lease)[...]
      for request in requests {
        var own = Array(readings.prefix(request.rows.count))
        readings = readings.dropFirst(request.rows.count)
        for (index, row) in request.rows.enumerated() where own[index]?.sequence != row.sequence {
          // Another request of the lot was younger than this one's row.
          own[index] = try await read([row.node], at: .sequence(row.sequence), lease: lease).first ?? nil
        }
        results.append((request, .success(own)))
      }
    } catch {
      return requests.map { ($0, .failure(error)) }
    }
    return results
  }

  nonisolated(nonsending) func outcome(
    of job: StoreJob,
    _ lease: ArchiveLease
  ) async -> Result<StoreJob.Outcome, ArchiveCopyError> {
    do throws(ArchiveCopyError) {
      if case .backUp(let path?) = job.step {
        guard let store = self as? any ArchiveCopying else {
          return .failure(.archive(ArchiveError(.definite, "this store keeps no files to copy")))
        }
        return .success(.copied(bytes: try await store.copy(lease, to: path)))
      }
    } catch {
      return .failure(error)
    }
    do throws(ArchiveError) {
      switch job.step {
      case .nodes(let node, let sequence):
        let max = StoreJob.nodesMax
        return .success(.nodes(try await scan(after: node, limit: max, at: .sequence(sequence), lease: lease)))
      case .states(let nodes, let sequence):
        return .success(.states(try await read(nodes, at: .sequence(sequence), lease: lease)))
      case .check(let position): return .success(.checked(try await verify(lease, from: position)))
      case .backUp: return .success(.copied(bytes: try await backUp(lease, replacingFormer: false)))
      }
    } catch {
      return .failure(.archive(error))
    }
  }
}

extension ListingPurpose {
  /// What only other hosts have counts as well.
  fileprivate var isOfFleet: Bool { if case .metrics = self { false } else { true } }

  /// Milliseconds. A person who waits for a list wants what is known.
  fileprivate var patience: Int64? { if case .listApplications = self { 1_000 } else { nil } }
}

extension StateReading {
  fileprivate var sequence: SequenceNumber {
    switch self {
    case .state(_, let sequence), .unreadable(let sequence): sequence
    }
  }
}
