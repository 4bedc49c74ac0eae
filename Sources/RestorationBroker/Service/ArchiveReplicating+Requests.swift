// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Requests of people who manage archives, in the protocol's words.
extension ArchiveReplicating {
  nonisolated(nonsending) func answer(_ request: ReplicaRequest) async -> Answer {
    switch request {
    case .report(let application):
      let (states, failure) = await states(of: application?.description)
      return .result(
        ReplicaStatus().with {
          ($0.host, $0.key, $0.reachable) = (host, keyID, failure == nil)
          $0.failure = failure.map(ReplicatedApplication.Failure.init)
          $0.acknowledge = promise == .disk ? .disk : .replica
          $0.applications = states.compactMap(ReplicatedApplication.init)
        }
      )
    case .flush(let application, let milliseconds):
      let unsent = await flush(application?.description, milliseconds: milliseconds)
      return .result(
        FlushReplica.Reply().with {
          $0.unsent = unsent.sorted { $0.key < $1.key }.compactMap { application, changes in
            ApplicationName(application).map { name in
              UnsentChanges().with { ($0.application, $0.changes) = (name, changes) }
            }
          }
        }
      )
    case .migrate(let application, let milliseconds):
      switch await migrate(application.description, milliseconds: milliseconds) {
      case .success: return .result(EmptyResult())
      case .failure(let error): return .error(.storeError(error))
      }
    }
  }
}

extension ReplicatedApplication {
  fileprivate init?(_ state: ReplicaState) {
    guard let application = ApplicationName(state.application), !application.isSetAside else { return nil }
    self = ReplicatedApplication().with {
      $0.application = application
      $0.lease = Lease(rawValue: state.lease.rawValue) ?? .unknown
      ($0.host, $0.since) = (state.holder?.host, state.holder.map { Timestamp(milliseconds: $0.since) })
      ($0.sequence, $0.stored, $0.changes) = (state.sequence, state.stored, state.changes)
      ($0.bytes, $0.milliseconds) = (Int64(state.bytes), state.milliseconds)
      $0.snapshot = state.isSnapshotDue
      $0.conflicts = state.conflicts.sorted { $0.value < $1.value }.compactMap { copy, since in
        ApplicationName(copy).map { name in
          SetAsideCopy().with { ($0.application, $0.since) = (name, Timestamp(milliseconds: since)) }
        }
      }
      $0.failure = state.failure.map(Failure.init)
    }
  }
}

extension ReplicatedApplication.Failure {
  fileprivate init(_ failure: ReplicaFailure) {
    self = Self().with { ($0.cause, $0.message) = (failure.cause.rawValue, failure.message) }
  }
}

extension ReplicaRequest {
  /// If archives stay on this host, nothing is left to send and the other requests are impossible.
  var answerWithoutReplica: Answer {
    if case .flush = self { return .result(FlushReplica.Reply()) }
    return .error(
      .restoration(
        .forbidden,
        "archives stay on this host: nothing is sent to a fleet's store",
        hint: "Set replica in config.json, have a key, and start the broker again; its log names what is missing."
      )
    )
  }
}
