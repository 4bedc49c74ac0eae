// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import NIOPosix

/// Looks up names of users on threads that may wait, because the directory may be on the network. At most one question
/// a user is in progress, and a name is valid for a minute.
actor Users {
  private static let validity = Duration.seconds(60)

  private let threads = NIOThreadPool(numberOfThreads: 4)
  private var questions: [UInt32: Task<String?, Never>] = [:]
  private var names: [UInt32: (name: String, since: ContinuousClock.Instant)] = [:]

  init() { threads.start() }

  /// `nil` if the user does not exist or the name is unknown.
  func name(of uid: UInt32) async -> String? {
    if let known = names[uid], known.since.duration(to: .now) < Self.validity { return known.name }
    if let question = questions[uid] { return await question.value }
    let question = Task { [threads] in try? await threads.runIfActive { Self.look(uid) } }
    questions[uid] = question
    let name = await question.value
    questions[uid] = nil
    names[uid] = name.map { ($0, .now) }
    return name
  }

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
