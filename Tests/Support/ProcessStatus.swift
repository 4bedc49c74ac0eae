// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The kernel's report about a running process.
package struct ProcessStatus {
  private let pid: Int32

  package init(_ pid: Int32) { self.pid = pid }

  /// Resident memory in KiB.
  package var residentKiB: Int { kilobytes("VmRSS") }

  /// The most there has been.
  package var peakKiB: Int { kilobytes("VmHWM") }

  /// Open descriptors.
  package var descriptors: Int { Files.list("/proc/\(pid)/fd").count }

  /// The descriptors that a child program would inherit besides the standard streams.
  package var inheritable: [String] {
    Files.list("/proc/\(pid)/fd").filter { name in
      guard let number = Int(name), number > 2, let info = try? Files.text("/proc/\(pid)/fdinfo/\(name)") else {
        return false
      }
      let flags = info.split(separator: "\n").first { $0.hasPrefix("flags:") }?.split(separator: "\t").last ?? ""
      return (Int(flags, radix: 8) ?? 0) & Int(O_CLOEXEC) == 0
    }.map { Files.target("/proc/\(pid)/fd/\($0)") }
  }

  package var threads: [Int32] { Files.list("/proc/\(pid)/task").compactMap { Int32($0) } }

  /// Voluntary and other context switches of all threads together: a process that does nothing adds none.
  package var contextSwitches: Int {
    threads.reduce(0) { sum, thread in
      sum + number("voluntary_ctxt_switches", of: "task/\(thread)/status")
        + number("nonvoluntary_ctxt_switches", of: "task/\(thread)/status")
    }
  }

  /// Time that processors have spent on its present threads.
  package var processorNanoseconds: Int {
    get throws {
      try threads.reduce(0) { sum, thread in
        let text = try Files.text("/proc/\(pid)/task/\(thread)/schedstat")
        return sum + (text.split(separator: " ").first.flatMap { Int($0) } ?? 0)
      }
    }
  }

  /// Whether SIGSTOP has come to all threads.
  package var isStopped: Bool {
    threads.allSatisfy { thread in
      (try? Files.text("/proc/\(pid)/task/\(thread)/status"))?.contains("\nState:\tT") == true
    }
  }

  private func kilobytes(_ name: String) -> Int { number(name, of: "status") }

  private func number(_ name: String, of file: String) -> Int {
    guard let text = try? Files.text("/proc/\(pid)/\(file)") else { return 0 }
    for line in text.split(separator: "\n") where line.hasPrefix(name + ":") {
      return Int(line.dropFirst(name.count + 1).filter(\.isNumber)) ?? 0
    }
    return 0
  }
}
