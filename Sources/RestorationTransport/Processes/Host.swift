// SPDX-License-Identifier: Apache-2.0

package enum Host {
  package static var processID: Int64 { Int64(SystemCalls.processID) }

  /// Milliseconds since 1970, UTC, by a clock that people may set.
  package static var wallMilliseconds: Int64 { SystemCalls.wallMilliseconds }

  /// Milliseconds of a clock that never goes back.
  package static var monotonicMilliseconds: Int64 { SystemCalls.monotonicMilliseconds }

  /// Milliseconds since the machine was started, by a clock that never goes back and counts sleep.
  package static var bootMilliseconds: Int64 { SystemCalls.bootMilliseconds }

  package static var name: String {
    let text = (try? readFile("/proc/sys/kernel/hostname")) ?? nil
    return text?.split(separator: "\n").first.map(String.init) ?? "localhost"
  }

  /// Returns the allocator's free memory to the kernel.
  package static func giveMemoryBack() { SystemCalls.trimMemory() }

  /// Limits the allocator's unused memory. Call once, early.
  package static func keepLittleMemory() { SystemCalls.keepLittleMemory() }

  /// `nil` if the variable is not set.
  package static func environment(_ name: String) -> String? { SystemCalls.environment(name) }

  /// The directory of the user's configuration of ours; `nil` if no variable tells where it is.
  ///
  /// - Parameter variable: returns the value of a variable of the environment.
  package static func configurationDirectory(_ variable: (String) -> String?) -> String? {
    // XDG variables with relative values must be ignored.
    if let home = variable("XDG_CONFIG_HOME"), home.hasPrefix("/") { return "\(home)/restorationd" }
    return variable("HOME").map { "\($0)/.config/restorationd" }
  }

  /// The default directory of the keys by which archives are sealed that follow their user, as
  /// `configurationDirectory`.
  package static func keyDirectory(_ variable: (String) -> String?) -> String? {
    configurationDirectory(variable).map { "\($0)/keys" }
  }

  /// Lets this process open at least `count` descriptors, within the hard limit. Returns how many it may open now; 0 if
  /// unknown. Call once, early.
  @discardableResult
  package static func raiseDescriptorLimit(to count: Int) -> Int {
    (try? SystemCalls.raiseDescriptorLimit(to: count)) ?? 0
  }

  /// `VERSION_ID` of os-release; `nil` if there is none, as on rolling releases. Part of a state's coder (R10).
  package static var systemVersion: String? {
    for path in ["/etc/os-release", "/usr/lib/os-release"] {
      if let text = try? readFile(path) { return systemVersion(inRelease: text) }
    }
    return nil
  }

  package static func systemVersion(inRelease text: String) -> String? {
    guard let line = text.split(separator: "\n").last(where: { $0.hasPrefix("VERSION_ID=") }) else { return nil }
    let value = line.dropFirst("VERSION_ID=".count).filter { $0 != "\"" && $0 != "'" }
    return value.isEmpty ? nil : value
  }

  /// Follows symbolic links.
  package static func isDirectory(_ path: String) -> Bool {
    (try? SystemCalls.status(ofTarget: path))?.kind == .directory
  }

  /// The first `bytesMax` bytes of a file as text; `nil` if the file does not exist. Fails if they are not UTF-8,
  /// because a replaced character could make another name.
  package static func readFile(_ path: String, bytesMax: Int = 1 << 20) throws(TransportError) -> String? {
    let bytes = try TransportError.reporting("cannot read \(path)") { () throws(SystemCallError) -> [UInt8]? in
      do throws(SystemCallError) {
        return try SystemCalls.contents(of: path, bytesMax: bytesMax)
      } catch {
        if error.number == SystemCallError.notFound { return nil }
        throw error
      }
    }
    return try bytes.map { bytes throws(TransportError) in
      if let text = String(validating: bytes, as: UTF8.self) { return text }
      let fault = "\(path) is not UTF-8 at byte \(soundBytes(bytes))"
      throw TransportError(.damaged, "\(fault); write it in UTF-8")
    }
  }

  /// The number of bytes before the first that is not UTF-8.
  private static func soundBytes(_ bytes: [UInt8]) -> Int {
    var (codec, input, count) = (UTF8(), bytes.makeIterator(), 0)
    while case .scalarValue(let scalar) = codec.decode(&input) { count += UTF8.width(scalar) }
    return count
  }
}
