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
}
