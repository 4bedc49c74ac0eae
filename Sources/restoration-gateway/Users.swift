// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import NIOPosix

/// The names of users, asked by threads that may wait: who knows them may be behind a network.
struct Users: Sendable {
  private let threads = NIOThreadPool(numberOfThreads: 4)

  init() { threads.start() }

  /// `nil` if there is no such user, or nobody can tell.
  func name(of uid: UInt32) async -> String? { try? await threads.runIfActive { Self.look(uid) } }

  private static func look(_ uid: UInt32) -> String? {
    var (entry, found) = (passwd(), UnsafeMutablePointer<passwd>?.none)
    var room = [CChar](repeating: 0, count: 16 << 10)
    while true {
      switch getpwuid_r(uid, &entry, &room, room.count, &found) {
      case 0: return found.map { String(cString: $0.pointee.pw_name) }
      case EINTR: continue
      case ERANGE where room.count < 1 << 20: room = [CChar](repeating: 0, count: 2 * room.count)
      default: return nil
      }
    }
  }
}
