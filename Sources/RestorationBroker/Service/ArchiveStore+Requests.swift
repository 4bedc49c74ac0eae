// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// The core's requests as calls of the store. Errors are values, because of a trap of Swift 6.3
/// (`Sources/ARCHITECTURE.md`).
extension ArchiveStore {
  /// Opens an archive and builds the tree of its head off the event loop: many objects take long.
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

  /// Reads the rows of all requests, by one call if nothing was written between them.
  nonisolated(nonsending) func readings(of requests: [StateRequest], _ lease: ArchiveLease) async -> [Reading] {
    switch await states(in: requests.flatMap(\.rows), lease) {
    case .success(let readings):
      var rest = readings[...]
      return requests.map { request in
        defer { rest = rest.dropFirst(request.rows.count) }
        return (request, .success(Array(rest.prefix(request.rows.count))))
      }
    case .failure(let error): return requests.map { ($0, .failure(error)) }
    }
  }

  nonisolated(nonsending) func states(
    in rows: [StateRequest.Row],
    _ lease: ArchiveLease
  ) async -> Result<[StateReading?], ArchiveError> {
    do throws(ArchiveError) {
      let newest = rows.map(\.sequence).max() ?? 0
      var readings = try await read(rows.map(\.node), at: .sequence(newest), lease: lease)
      for (index, row) in rows.enumerated() where readings[index]?.sequence != row.sequence {
        // A row of the lot is younger than this one.
        readings[index] = try await read([row.node], at: .sequence(row.sequence), lease: lease).first ?? nil
      }
      return .success(readings)
    } catch {
      return .failure(error)
    }
  }

  /// Copies an archive, to a file or as its own backup copy.
  nonisolated(nonsending) func copied(_ lease: ArchiveLease, to path: String?) async -> Result<Int, ArchiveCopyError> {
    do throws(ArchiveCopyError) {
      if let path {
        guard let store = self as? any ArchiveCopying else {
          return .failure(.archive(ArchiveError(.definite, "this store keeps no files to copy")))
        }
        return .success(try await store.copy(lease, to: path))
      }
    } catch {
      return .failure(error)
    }
    do throws(ArchiveError) {
      return .success(try await backUp(lease, replacingFormer: false))
    } catch {
      return .failure(.archive(error))
    }
  }
}

extension ListingPurpose {
  /// Whether archives of other hosts count.
  fileprivate var isOfFleet: Bool { if case .metrics = self { false } else { true } }

  /// In milliseconds. A person who waits for a list prefers what is known.
  fileprivate var patience: Int64? { if case .listApplications = self { 1_000 } else { nil } }
}

extension StateReading {
  fileprivate var sequence: SequenceNumber {
    switch self {
    case .state(_, let sequence), .unreadable(let sequence): sequence
    }
  }
}
