// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import SystemdSupport
internal import TestSupport
internal import Testing

/// The queue for a manager that does not read; each case in its own process, whose descriptors are counted.
@Suite struct NotifierTests {
  @Test func aDescriptorThatIsRemovedBeforeItIsToldIsNeverTold() async {
    await #expect(processExitsWith: .success) {
      let manager = try SilentManager()
      defer { manager.end() }
      let notifier = Notifier(socket: manager.path)
      manager.block(notifier)
      let before = try SilentManager.openDescriptors()
      for number in 1...500 {
        #expect(notifier.send(.store(name: "connection-\(number)", descriptor: 0)))
        #expect(notifier.send(.removeStored(name: "connection-\(number)")))
      }
      #expect(try SilentManager.openDescriptors() == before)
      #expect(notifier.send(.store(name: "connection-501", descriptor: 0)))
      #expect(try SilentManager.openDescriptors() == before + 1)
      let told = try manager.messages(of: notifier).filter { $0.contains("FDNAME") }
      #expect(told == ["FDSTORE=1\nFDNAME=connection-501"])
      #expect(try SilentManager.openDescriptors() == before)
      notifier.send(.removeStored(name: "connection-501"))
      let later = try manager.messages(of: notifier).filter { $0.contains("FDNAME") }
      #expect(later == ["FDSTOREREMOVE=1\nFDNAME=connection-501"])
    }
  }

  @Test func onlySoManyDescriptorsWait() async {
    await #expect(processExitsWith: .success) {
      var limit = rlimit()
      getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      limit.rlim_cur = limit.rlim_max
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      let manager = try SilentManager()
      defer { manager.end() }
      let notifier = Notifier(socket: manager.path)
      manager.block(notifier)
      let before = try SilentManager.openDescriptors()
      for number in 1...Notifier.waitingDescriptorsMax {
        #expect(notifier.send(.store(name: "connection-\(number)", descriptor: 0)))
      }
      #expect(!notifier.send(.store(name: "late", descriptor: 0)))
      #expect(try SilentManager.openDescriptors() == before + Notifier.waitingDescriptorsMax)
      // A descriptor that was not sent is not removed either.
      notifier.send(.removeStored(name: "late"))
      let told = try manager.messages(of: notifier).filter { $0.contains("FDNAME") }
      #expect(told.count == Notifier.waitingDescriptorsMax && !told.contains { $0.contains("late") })
    }
  }
}

/// A manager's socket that is not read until the test asks.
private struct SilentManager {
  let path: String
  private let scratch: ScratchDirectory
  private let descriptor: Int32

  init() throws {
    scratch = try ScratchDirectory()
    path = scratch.file("notify")
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard result == 0 else { throw TestFailure("bind: \(SystemError.current)") }
  }

  func end() {
    close(descriptor)
    scratch.remove()
  }

  /// Fills the socket, so that later messages wait in the notifier.
  func block(_ notifier: Notifier) { for number in 0..<4_000 { notifier.send(.errno(Int32(number))) } }

  /// All messages that were sent until now, in order.
  func messages(of notifier: Notifier) throws -> [String] {
    let last = NotifyMessage.errno(.max)
    notifier.send(last)
    var messages: [String] = []
    var buffer = [UInt8](repeating: 0, count: 4_096)
    while messages.last != "ERRNO=\(Int32.max)" {
      let count = recv(descriptor, &buffer, buffer.count, 0)
      guard count > 0 else { throw TestFailure("recv: \(SystemError.current)") }
      messages.append(String(decoding: buffer[..<count], as: UTF8.self))
    }
    return messages
  }

  static func openDescriptors() throws -> Int {
    guard let directory = opendir("/proc/self/fd") else { throw TestFailure("opendir: \(SystemError.current)") }
    defer { closedir(directory) }
    var count = 0
    while readdir(directory) != nil { count += 1 }
    return count
  }
}
