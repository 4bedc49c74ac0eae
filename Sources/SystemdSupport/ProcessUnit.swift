// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// The unit of the user's manager that a process belongs to, derived from its control group.
enum ProcessUnit {
  static func name(ofProcess pid: Int32) -> String? {
    guard let groups = controlGroups(ofProcess: pid) else { return nil }
    // libsystemd finds units only below a user's manager; for others it is not even loaded.
    if groups.split(separator: "/").contains(where: { $0.hasPrefix("user@") || $0.hasPrefix("capsule@") }) {
      var unit: UnsafeMutablePointer<CChar>?
      if sd_pid_get_user_unit(pid, &unit) >= 0, let unit {
        defer { free(unit) }
        return String(cString: unit)
      }
    }
    // The user manager is not a unit of a system manager, as in a container.
    guard let root = ownRoot, let path = unified(groups) else { return nil }
    return name(at: path, below: root)
  }

  private static let ownRoot = controlGroups(ofProcess: getpid()).flatMap(unified).flatMap(managersRoot)

  /// The control group of the manager that started a process in `path`; `nil` if that can be the system's.
  static func managersRoot(of path: String) -> String? {
    let components = path.split(separator: "/")
    guard let slice = components.firstIndex(where: { $0.hasSuffix(".slice") }), slice > 0 else { return nil }
    return "/" + components[..<slice].joined(separator: "/")
  }

  /// The first component below the manager's control group and its slices, if that is a unit with processes.
  static func name(at path: String, below root: String) -> String? {
    guard path.hasPrefix(root + "/") else { return nil }
    let components = path.dropFirst(root.count).split(separator: "/")
    guard let unit = components.first(where: { !$0.hasSuffix(".slice") }),
      unit.hasSuffix(".service") || unit.hasSuffix(".scope")
    else { return nil }
    // Names that the kernel uses itself are escaped with an underscore.
    return String(unit.hasPrefix("_") ? unit.dropFirst() : unit)
  }

  /// The path in the unified hierarchy.
  private static func unified(_ groups: String) -> String? {
    groups.split(separator: "\n").first { $0.hasPrefix("0::") }.map { String($0.dropFirst(3)) }
  }

  /// A line for each hierarchy; `nil` if the process does not exist.
  private static func controlGroups(ofProcess pid: Int32) -> String? {
    let descriptor = open("/proc/\(pid)/cgroup", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 4_096)
    let count = read(descriptor, &bytes, bytes.count)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
  }
}
