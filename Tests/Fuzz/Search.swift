// SPDX-License-Identifier: Apache-2.0

#if FUZZING
internal import Glibc
internal import Synchronization

/// libFuzzer, which is linked if the program is built by `Tests/fuzz.sh`.
enum Search {
  private typealias Words = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>

  /// The target of this process: the driver's callback has no context.
  fileprivate static let chosen = Mutex<FuzzTarget?>(nil)

  /// Searches until an option of libFuzzer says that it is enough, or an input fails.
  static func run(_ target: FuzzTarget, _ arguments: [String]) -> Never {
    chosen.withLock { $0 = target }
    let given = ["fuzz"] + arguments
    var words: Words? = .allocate(capacity: given.count + 1)
    for (index, word) in given.enumerated() { words?[index] = strdup(word) }
    words?[given.count] = nil
    var count = CInt(given.count)
    exit(drive(&count, &words, takeInput))
  }

  @_silgen_name("LLVMFuzzerRunDriver")
  private static func drive(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<Words?>,
    _ callback: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
  ) -> CInt
}

/// The name is that which libFuzzer's own main program refers to, although this program has another one.
@_cdecl("LLVMFuzzerTestOneInput")
package func takeInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  Search.chosen.withLock { $0 }?.run(Array(UnsafeBufferPointer(start: bytes, count: count)))
  return 0
}
#endif
