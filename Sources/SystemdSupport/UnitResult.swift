// SPDX-License-Identifier: Apache-2.0

/// What a service manager knows of a unit and of the process that it ran last.
package struct UnitResult: Hashable, Sendable {
  /// `active`, `inactive`, `failed`, `activating`, `deactivating`, `reloading` and what later managers add.
  package var activeState: String
  package var subState: String
  /// Why the unit is not active: `success`, `exit-code`, `signal`, `core-dump`, `oom-kill`, `watchdog`, `timeout` …
  package var result: String
  /// The main process that runs; nil where there is none.
  package var mainProcess: Int32?
  /// The main process that ran last, if its end is known already.
  package var lastProcess: Int32?
  /// How that one ended, by `si_code` of waitid(2): 1 exited, 2 killed, 3 dumped core.
  package var lastCode: Int32
  /// Its exit status, or the number of the signal.
  package var lastStatus: Int32
  /// The manager had begun to stop the unit before that process ended.
  package var wasStopped: Bool
  /// The manager had forgotten the unit, as it does with those that ended well: those that failed stay loaded.
  package var wasCollected = false

  package init(
    activeState: String,
    subState: String,
    result: String,
    mainProcess: Int32? = nil,
    lastProcess: Int32? = nil,
    lastCode: Int32 = 0,
    lastStatus: Int32 = 0,
    wasStopped: Bool = false
  ) {
    self.activeState = activeState
    self.subState = subState
    self.result = result
    self.mainProcess = mainProcess
    self.lastProcess = lastProcess
    self.lastCode = lastCode
    self.lastStatus = lastStatus
    self.wasStopped = wasStopped
  }

  /// Finds out whether the unit was stopped, or ended well and was forgotten, from what else is known and from times of
  /// the monotonic clock, 0 where there was none.
  ///
  /// - Parameters:
  ///   - isService: other kinds of units have no main process, so that nothing follows from its absence.
  ///   - left: when the unit was active last. Where nobody stops it, its main process has ended before.
  ///   - started: when the last main process began. A unit that has not become active with it has left before.
  ///   - exited: when that process ended.
  package mutating func judge(isService: Bool, left: UInt64, started: UInt64, exited: UInt64) {
    let isStop = left > 0 && started < left && left < exited
    wasStopped = isStop && !endedByItself
    wasCollected =
      isService && mainProcess == nil && lastProcess == nil && activeState == "inactive" && result == "success"
  }

  /// The main process was ended by a signal that nobody stops a unit with, and the unit has failed for it.
  private var endedByItself: Bool {
    // SIGHUP, SIGINT, SIGKILL and SIGTERM.
    let isSignalled = (lastCode == 2 || lastCode == 3) && ![1, 2, 9, 15].contains(lastStatus)
    return isSignalled && ["signal", "core-dump", "watchdog", "oom-kill"].contains(result)
  }
}
