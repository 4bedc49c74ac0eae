// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// A directory in memory, if there is one, which its owner removes.
struct FuzzFolder {
  private static let place = FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory()
  let path: String

  init(_ files: [String: Data] = [:]) {
    path = "\(Self.place)/restoration-fuzz-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
    mkdir(path, 0o700)
    for (name, data) in files {
      do { try data.write(to: URL(fileURLWithPath: "\(path)/\(name)")) } catch { preconditionFailure("\(error)") }
    }
  }

  func remove() { try? FileManager.default.removeItem(atPath: path) }

  var files: [String: Data] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    return Dictionary(
      uniqueKeysWithValues: names.map { ($0, FileManager.default.contents(atPath: "\(path)/\($0)") ?? Data()) }
    )
  }
}
