// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Logging
internal import NIOCore
internal import RestorationArchive
internal import RestorationWire

/// Has the core forget applications that were not used for long: keeps the days for `Retention`, which decides. Used on
/// the event loop only.
final class RetentionUpkeep {
  /// Applications that start together with the broker open their archives first.
  private static let delay = TimeAmount.minutes(1)
  /// A timer stands still while the computer sleeps, and the calendar may be set: midnight cannot be waited for.
  private static let interval = TimeAmount.hours(1)
  /// From one application to the next: an archive is opened to be forgotten, and others wait for the disk meanwhile.
  private static let pause = TimeAmount.seconds(10)

  private let eventLoop: any EventLoop
  /// `nil` if the store keeps no files.
  private let store: (any ArchiveAging)?
  private let logger: Logger
  /// Days; 0 for never.
  private var limit = 0
  /// `nil` until the days are read.
  private var retention: Retention?
  /// Today's search has not ended; it continues after this name.
  private var isDue = false
  private var last = ""
  private var timer: Scheduled<Void>?
  private var looksUnderWay = 0

  init(on eventLoop: any EventLoop, store: (any ArchiveAging)?, logger: Logger) {
    (self.eventLoop, self.store, self.logger) = (eventLoop, store, logger)
  }

  var isLooking: Bool { looksUnderWay > 0 }

  /// - Parameter days: 0 for never; then nothing is read, written or waited for.
  func begin(days: Int, _ service: isolated BrokerService) {
    guard days != limit else { return }
    cancel()
    (limit, retention, isDue, last) = (days, nil, true, "")
    guard days > 0 else { return }
    look(service, isForgetting: false)
    schedule(in: Self.delay, service)
  }

  func cancel() {
    timer?.cancel()
    timer = nil
  }

  private func schedule(in delay: TimeAmount, _ service: isolated BrokerService) {
    cancel()
    timer = eventLoop.scheduleTask(in: delay) {
      service.assumeIsolated { $0.retention.timerFired($0) }
    }
  }

  private func timerFired(_ service: isolated BrokerService) {
    guard !service.isStopping else { return }
    look(service, isForgetting: true)
    schedule(in: Self.interval, service)
  }

  /// Notes the day if it is new, and looks for an unused application if that is due.
  private func look(_ service: isolated BrokerService, isForgetting: Bool) {
    guard let store else { return }
    let (limit, now) = (limit, service.now.wall)
    looksUnderWay += 1
    Task {
      defer { looksUnderWay -= 1 }
      var retention = await days(limit, store)
      // Meanwhile the setting may have changed.
      guard limit == self.limit, !service.isStopping else { return }
      let isNew = retention.note(now)
      self.retention = retention
      do throws(ArchiveError) {
        if isNew {
          (isDue, last) = (true, "")
          try await store.keepDays(retention.text)
        }
        // The one before may still be opened.
        guard isForgetting, isDue, let cutoff = retention.cutoff, service.core.isDone(with: Caller.nobody.client)
        else { return }
        let found = try await firstUnused(since: cutoff, store).get()
        guard limit == self.limit, !service.isStopping else { return }
        (isDue, last) = (found != nil, found ?? "")
        guard let name = found.flatMap({ ApplicationName($0) }) else { return }
        forget(name, service)
        schedule(in: Self.pause, service)
      } catch {
        logger.warning("unused applications are looked for later: \(error.message)")
        self.retention = nil
      }
    }
  }

  /// The first application after `last` that was not used since this time.
  ///
  /// Its files say when they were written by the computer's clock, what is in them by the broker's. They differ if a
  /// clock was set, as a test does; the later time counts.
  nonisolated(nonsending) private func firstUnused(
    since time: Int64,
    _ store: any ArchiveAging
  ) async -> Result<String?, ArchiveError> {
    do throws(ArchiveError) {
      var name = last
      while let summary = try await store.unwritten(since: time, after: name) {
        name = summary.application
        let used = summary.run.map { RunFacts(stored: $0.facts).used } ?? 0
        if max(summary.modified, used) < time { return .success(name) }
      }
      return .success(nil)
    } catch {
      return .failure(error)
    }
  }

  /// The days on which this broker and earlier ones ran; if they are not known, none, so that nothing goes too early.
  nonisolated(nonsending) private func days(_ limit: Int, _ store: any ArchiveAging) async -> Retention {
    if let retention { return retention }
    let problem: String
    do throws(ArchiveError) {
      let text = try await store.days()
      if let text, let retention = Retention(limit: limit, text) { return retention }
      problem = text == nil ? "there is no list of them" : "their list is damaged"
    } catch {
      problem = error.message
    }
    logger.warning("the days on which the broker ran are counted from today, because \(problem)")
    return Retention(limit: limit)
  }

  /// As if somebody called `forgetApplication` and left: what lives stays, and what turns out to be damaged. An archive
  /// that is open may be in use.
  private func forget(_ name: ApplicationName, _ service: isolated BrokerService) {
    let text = Array(#"{"application":"\#(name)"}"#.utf8)
    guard let members = try? JSONSlice.scan(text, vocabulary: EncodedState.vocabulary) else { return }
    let (caller, method) = (Caller.nobody, ForgetApplication.method)
    let message = IncomingMessage(caller: caller, method: method, parameters: .named(members))
    service.handle { core, now in
      guard core.isDone(with: caller.client), core.applicationIDs[name] == nil else { return }
      let why = "it was not used on the last \(limit) days on which the broker ran"
      logger.info("forgetting an application: \(why)", metadata: ["application": "\(name)"])
      core.connected(caller.client, process: nil, at: now)
      core.received(message, at: now)
      core.disconnected(caller.client, at: now)
    }
  }
}

extension BrokerService {
  /// - Parameter days: on how many days on which a broker ran an application may be unused; 0 for never.
  package func forgetUnused(days: Int) {
    retention.begin(days: core.context.settings.isDeveloperMode ? 0 : days, self)
  }
}

extension Broker {
  /// - Parameter days: on how many days on which a broker ran an application may be unused; 0 for never.
  package func forgetUnused(days: Int) {
    let service = service
    service.eventLoop.execute { service.assumeIsolated { $0.forgetUnused(days: days) } }
  }
}
