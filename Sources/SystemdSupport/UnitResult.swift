// SPDX-License-Identifier: Apache-2.0

/// A service manager's report about a unit and its last process.
package struct UnitResult: Hashable, Sendable {
  /// `active`, `inactive`, `failed`, `activating`, `deactivating`, `reloading`, or a later manager's word.
  package var activeState: String
  package var subState: String
  /// Why the unit is not active: `success`, `exit-code`, `signal`, `core-dump`, `oom-kill`, `watchdog`, `timeout` …
  package var result: String
  package var mainProcess: Int32?
  /// The main process that ran last, if its end is known.
  package var lastProcess: Int32?
  /// Its end by `si_code` of waitid(2): 1 exited, 2 killed, 3 dumped core.
  package var lastCode: Int32
  /// Its exit status, or the number of the signal.
  package var lastStatus: Int32
  /// The manager had begun to stop the unit before that process ended.
  package var wasStopped: Bool
  /// The manager has unloaded the unit, as it does with units that ended normally; failed units stay loaded.
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
    (self.activeState, self.subState, self.result) = (activeState, subState, result)
    (self.mainProcess, self.lastProcess, self.lastCode) = (mainProcess, lastProcess, lastCode)
    (self.lastStatus, self.wasStopped) = (lastStatus, wasStopped)
  }

  /// Decides whether the unit was stopped, or ended normally and was unloaded, from other properties and from times of
  /// the monotonic clock, 0 if unset.
  ///
  /// - Parameters:
  ///   - isService: other kinds of units have no main process, so its absence means nothing.
  ///   - left: when the unit was last active. Unless the unit is stopped, its main process has ended before.
  ///   - started: when the last main process began. A unit that never became active with it stopped being active
  ///     before.
  ///   - exited: when that process ended.
  package mutating func judge(isService: Bool, left: UInt64, started: UInt64, exited: UInt64) {
    let isStop = left > 0 && started < left && left < exited
    wasStopped = isStop && !endedByItself
    wasCollected =
      isService && mainProcess == nil && lastProcess == nil && activeState == "inactive" && result == "success"
  }

  /// The main process was ended by a signal that is not used to stop units, and the unit has failed because of it.
  private var endedByItself: Bool {
    // SIGHUP, SIGINT, SIGKILL and SIGTERM.
    let isSignalled = (lastCode == 2 || lastCode == 3) && ![1, 2, 9, 15].contains(lastStatus)
    return isSignalled && ["signal", "core-dump", "watchdog", "oom-kill"].contains(result)
  }
}
