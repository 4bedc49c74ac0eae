// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import RestorationClient
internal import RestorationWire

/// The broker, its socket, and what it knows of archives.
extension Finding {
  static func ofBroker(_ connection: ConnectionOptions) async -> [Finding] {
    var findings: [Finding] = []
    do {
      try await connection.run(about: nil) { broker in
        findings = [ofSocket(broker.socketPath)]
        let statistics = try await broker.call(ReportStatistics())
        let applications = try await broker.call(ListApplications()).applications
        let status = BrokerStatus(socket: broker.socketPath, statistics: statistics, applications: applications)
        findings += [ofVersion(status)] + (await ofArchives(status, broker))
        // Without a replica the call fails.
        if let replica = try? await broker.call(ReportReplica()) { findings.append(ofReplica(replica)) }
      }
    } catch {
      findings.append(ofFailure(error, connection))
    }
    return findings
  }

  private static func ofFailure(_ error: any Error, _ connection: ConnectionOptions) -> Finding {
    guard let failure = error as? Failure else { return .trouble("broker", "\(error)", run: "restorationctl status") }
    let command =
      switch failure.status {
      case ExitStatus.usage where connection.socket == nil && !connection.isUsual: "unset RESTORATIOND_SOCKET"
      case ExitStatus.usage where connection.path == nil: #"export XDG_RUNTIME_DIR="/run/user/$(id -u)""#
      case ExitStatus.notRunning where connection.isUsual: "systemctl --user start restorationd.socket"
      case ExitStatus.notRunning: "restorationd --socket \((connection.path ?? "").shellWord)"
      default: "ls -ld \((connection.path ?? "").shellWord)"
      }
    return .trouble("broker", failure.message, run: command)
  }

  /// Who can write to the directory can put another socket there.
  private static func ofSocket(_ path: String) -> Finding {
    let folder = path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    var status = stat()
    if stat(folder, &status) == 0, status.st_mode & 0o022 != 0, status.st_mode & S_ISVTX == 0 {
      return .trouble("socket", "other users can write \(folder)", run: "chmod go-w \(folder.shellWord)")
    }
    if stat(path, &status) == 0, status.st_uid != geteuid() {
      return .trouble("socket", "\(path) belongs to user \(status.st_uid), not to you", run: "ls -l \(path.shellWord)")
    }
    return .well("socket", path)
  }

  private static func ofVersion(_ status: BrokerStatus) -> Finding {
    let broker = status.statistics.broker
    guard broker.version == BrokerConnection.version else {
      let message = "it is \(broker.version), and this tool \(BrokerConnection.version)"
      return .trouble("broker", message, run: "systemctl --user restart restorationd.service")
    }
    return .well("broker", "\(broker.name) \(broker.version), up \(Quantity.span(status.statistics.uptime))")
  }

  private static func ofArchives(_ status: BrokerStatus, _ broker: BrokerConnection) async -> [Finding] {
    var findings: [Finding] = []
    for (application, what) in status.troubles {
      // What was found is told until a run ends, even if nothing is left to do.
      if let found = try? await broker.call(VerifyArchive(), of: application), found.sound {
        let message = "\(application): \(what); what it has now is sound: \(Quantity.count(found.objects, "object"))"
        findings.append(.note("archives", message, run: "restorationctl history \(application)"))
      } else {
        let command = "restorationctl verify \(application)"
        findings.append(.trouble("archives", "\(application): \(what)", run: command))
      }
    }
    if status.isReadOnly {
      findings.append(
        .trouble(
          "archives",
          "nothing more is stored: their directory is read-only",
          run: "journalctl --user -u restorationd"
        )
      )
    }
    if findings.isEmpty {
      let size = status.archives == 0 ? "none yet" : "\(status.archives), \(Quantity.bytes(status.archiveBytes))"
      findings.append(.well("archives", size))
    }
    let withheld = status.withheld.map { application, objects in
      let what = "\(Quantity.count(objects, "state")) of \(application), after failures of its program"
      return trouble("withheld", what, run: "restorationctl quarantine list \(application)")
    }
    return findings + (withheld.isEmpty ? [.well("withheld", "no state")] : withheld)
  }

  private static func ofReplica(_ replica: ReplicaStatus) -> Finding {
    let command = "restorationctl store status"
    guard replica.reachable else { return .trouble("replica", "the \(replica.silence)", run: command) }
    let behind = replica.applications.filter { $0.failure != nil }
    guard let first = behind.first, let failure = first.failure else {
      return .well("replica", "the fleet's store has everything")
    }
    let others = behind.count == 1 ? "" : " and \(behind.count - 1) more"
    return .trouble("replica", "it lacks changes of \(first.application)\(others): \(failure.message)", run: command)
  }
}
