// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import SystemdSupport
internal import Testing

// Glibc hides it behind _GNU_SOURCE.
@_silgen_name("close_range") private func closeRange(_ first: UInt32, _ last: UInt32, _ flags: Int32) -> Int32

/// The manager's variables; each case in its own process, because a process has one environment.
@Suite struct ServiceEnvironmentTests {
  @Test func withoutAManagerThereIsNothing() async {
    await #expect(processExitsWith: .success) {
      for name in ["LISTEN_FDS", "LISTEN_PID", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "JOURNAL_STREAM"] {
        unsetenv(name)
      }
      let environment = ServiceEnvironment.take()
      #expect(environment.descriptors.isEmpty && environment.notifySocket == nil)
      #expect(environment.watchdogMicroseconds == nil && !environment.logsToJournal)
    }
  }

  @Test func whatIsReadIsTakenOutOfTheEnvironment() async {
    await #expect(processExitsWith: .success) {
      // Other threads open and close files too: in a table that all share, one of them would close ours for its own.
      let unshare: Int32 = 2
      precondition(closeRange(.max, .max, unshare) == 0)
      for number: Int32 in 3...4 { dup2(open("/dev/null", O_RDONLY), number) }
      let variables = [
        "LISTEN_FDS": "2", "LISTEN_PID": "\(getpid())", "LISTEN_FDNAMES": "restorationd:connection-7",
        "NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "2500000", "WATCHDOG_PID": "\(getpid())", "JOURNAL_STREAM": "1:2",
      ]
      for (name, value) in variables { setenv(name, value, 1) }
      var environment = ServiceEnvironment.take()
      // What is expected would be told through a descriptor that may have been 3 or 4.
      precondition(environment.takeDescriptor(named: "restorationd") == 3)
      precondition(environment.descriptors == [ServiceEnvironment.InheritedDescriptor(name: "connection-7", number: 4)])
      for number: Int32 in 3...4 { precondition(fcntl(number, F_GETFD) == FD_CLOEXEC) }
      precondition(environment.notifySocket == "@x" && environment.watchdogMicroseconds == 2_500_000)
      for name in variables.keys { precondition(getenv(name) == nil, name) }
    }
  }

  @Test func whatIsMeantForAnotherProcessIsNotTaken() async {
    await #expect(processExitsWith: .success) {
      setenv("LISTEN_FDS", "1", 1)
      setenv("LISTEN_PID", "1", 1)
      setenv("WATCHDOG_USEC", "2500000", 1)
      setenv("WATCHDOG_PID", "1", 1)
      let environment = ServiceEnvironment.take()
      #expect(environment.descriptors.isEmpty && environment.watchdogMicroseconds == nil)
      #expect(getenv("LISTEN_FDS") == nil && getenv("WATCHDOG_USEC") == nil)
    }
  }

  @Test func standardErrorIsTheJournalOnlyWhileItIsTheSameFile() async {
    await #expect(processExitsWith: .success) {
      var status = stat()
      fstat(STDERR_FILENO, &status)
      setenv("JOURNAL_STREAM", "\(status.st_dev):\(status.st_ino)", 1)
      #expect(ServiceEnvironment.take().logsToJournal)
      setenv("JOURNAL_STREAM", "\(status.st_dev):\(status.st_ino + 1)", 1)
      #expect(!ServiceEnvironment.take().logsToJournal)
    }
  }
}
