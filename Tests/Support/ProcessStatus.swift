// SPDX-License-Identifier: Apache-2.0

/// What the kernel says of a running process.
package struct ProcessStatus {
  private let pid: Int32

  package init(_ pid: Int32) {
    self.pid = pid
  }

  /// Resident memory in KiB.
  package var residentKiB: Int { kilobytes("VmRSS") }

  /// The most there has been.
  package var peakKiB: Int { kilobytes("VmHWM") }

  /// Open descriptors.
  package var descriptors: Int { Files.list("/proc/\(pid)/fd").count }

  package var threads: [Int32] { Files.list("/proc/\(pid)/task").compactMap { Int32($0) } }

  /// Voluntary and other context switches of all threads together: a process that does nothing adds none.
  package var contextSwitches: Int {
    threads.reduce(0) { sum, thread in
      sum + number("voluntary_ctxt_switches", of: "task/\(thread)/status")
        + number("nonvoluntary_ctxt_switches", of: "task/\(thread)/status")
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
