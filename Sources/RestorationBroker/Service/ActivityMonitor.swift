// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import RestorationTransport

package struct BrokerActivity: Hashable, Sendable, CustomStringConvertible {
  package var applications: Int
  package var sessions: Int
  package var objects: Int
  package var connections: Int

  init(_ core: BrokerCore, connections: Int) {
    applications = core.applications.values.count { !$0.sessions.isEmpty }
    (sessions, objects, self.connections) = (core.sessionCount, core.objectCount, connections)
  }

  package var description: String {
    func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }
    return [
      count(applications, "application"), count(sessions, "session"), count(objects, "object"),
      count(connections, "connection"),
    ].joined(separator: ", ")
  }
}

/// Reports the broker's activity, and ends an idle broker. Used on the event loop only. While nothing happens, no timer
/// runs but the one that ends the idle broker.
final class ActivityMonitor {
  private let eventLoop: any EventLoop
  private var report: (@Sendable (BrokerActivity) -> Void)?
  private var reported: BrokerActivity?
  private var nextReport: NIODeadline
  private var isReportDue = false
  private var idleLimit: TimeAmount?
  /// Ends the broker; false if it is in use after all.
  private var endIfUnused: (@Sendable () -> Bool)?
  private var idleTimer: Scheduled<Void>?

  init(eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
    nextReport = eventLoop.now
  }

  /// Reports are at least a second apart.
  func begin(reporting report: @escaping @Sendable (BrokerActivity) -> Void, _ service: isolated BrokerService) {
    self.report = report
    noteEvent(of: service)
  }

  func begin(
    endingAfter limit: TimeAmount?,
    _ endIfUnused: @escaping @Sendable () -> Bool,
    _ service: isolated BrokerService
  ) {
    idleTimer?.cancel()
    idleTimer = nil
    idleLimit = limit
    self.endIfUnused = endIfUnused
    noteEvent(of: service)
  }

  func noteEvent(of service: isolated BrokerService) {
    if report != nil, !isReportDue {
      isReportDue = true
      eventLoop.assumeIsolated().scheduleTask(deadline: max(nextReport, eventLoop.now)) {
        service.assumeIsolated { $0.activity.sendReport(of: $0) }
      }
    }
    if idleLimit != nil { noteWhetherIdle(service) }
  }

  private func sendReport(of service: isolated BrokerService) {
    isReportDue = false
    let activity = service.currentActivity
    guard activity != reported else { return }
    reported = activity
    nextReport = eventLoop.now + .seconds(1)
    report?(activity)
  }

  private func noteWhetherIdle(_ service: isolated BrokerService) {
    guard service.isUnused else {
      idleTimer?.cancel()
      idleTimer = nil
      return
    }
    guard idleTimer == nil, let idleLimit else { return }
    idleTimer = eventLoop.assumeIsolated().scheduleTask(in: idleLimit) {
      service.assumeIsolated { $0.activity.idleTimeIsOver($0) }
    }
  }

  private func idleTimeIsOver(_ service: isolated BrokerService) {
    idleTimer = nil
    guard !service.isStopping else { return }
    if service.isUnused, !service.isAtWork, endIfUnused?() == true { return }
    noteWhetherIdle(service)
  }
}

extension Broker {
  /// Calls `report` on the event loop: soon after each change, at most once a second.
  package func reportActivity(_ report: @escaping @Sendable (BrokerActivity) -> Void) {
    let service = service
    service.eventLoop.execute { service.assumeIsolated { $0.activity.begin(reporting: report, $0) } }
  }

  /// After `seconds` without clients, sessions and work (0: never), stops accepting and calls `end` once. Later clients
  /// wait in the queue of the listening socket, which another process must hold open.
  package func endWhenIdle(seconds: Int, _ end: @escaping @Sendable () -> Void) {
    let (service, listener) = (service, listener)
    let limit = seconds > 0 ? TimeAmount.seconds(Int64(seconds)) : nil
    service.eventLoop.execute {
      service.assumeIsolated { service in
        let endIfUnused: @Sendable () -> Bool = {
          guard listener.stopIfUnused() else { return false }
          end()
          return true
        }
        service.activity.begin(endingAfter: limit, endIfUnused, service)
      }
    }
  }
}
