// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// A client does its worst, in each of many shapes (`Tests/Clients/flood`). Beside it others are served, the broker holds
/// little, and gives it back when the client has gone.
///
/// Memory is measured if the broker is a release build. The default form plays every other shape, and sends little; the
/// long form sends many times as much.
@Suite struct FloodBatteryTests {
  private static let mebibyte = 1 << 20
  /// Hundredths of what a shape does at most.
  private static var volume: Int { Environment.isLong ? 100 : 2 }
  private static let program = "\(Products.repository)/Tests/Clients/flood/flood.py"

  static let shapes: [String] = {
    let list = try? ChildProcess.run(["python3", program, "--list"]).output
    let all = (list ?? "").split(separator: "\n").map(String.init)
    return Environment.isLong ? all : all.enumerated().filter { $0.offset % 2 == 0 }.map(\.element)
  }()

  @Test func thereAreManyShapes() { #expect(Self.shapes.count >= 20) }

  @Test(.broker(alone: Environment.isLong), arguments: shapes)
  func aFloodIsBoundedAndHurtsNobodyElse(_ shape: String) throws {
    var measured = Measured()
    let neighbour = try broker.session("org.example.Neighbour")
    try neighbour.encode("A", state: [:])
    let before = try broker.status.residentKiB
    let command = ["python3", Self.program, broker.socket, shape, "\(Self.volume)"]
    let flood = try ChildProcess(command, errors: broker.directory.file("flood"))
    var report: String?
    repeat {
      measured.count += 1
      let state: JSONValue = ["n": .integer(measured.count)]
      try neighbour.encode("A", state: state)
      #expect(try neighbour.decode("A")["state"] == state)
      measured.fileBytes = max(measured.fileBytes, try bytesOfLargestArchive())
      report = (try? flood.output?.next(Deadline(.milliseconds(5)))) ?? nil
    } while report == nil && flood.isRunning
    let fault = (try? Files.text(broker.directory.file("flood"))) ?? ""
    #expect(report != nil && fault.isEmpty, "\(shape): \(fault)")
    measured.heldKiB = try broker.status.residentKiB
    try flood.kill()
    let mostKiB = before + before / 5 + Self.warmKiB
    if Products.isOptimised {
      try Wait.until("\(shape): the memory is given back", Deadline(.seconds(10))) {
        try broker.status.residentKiB <= mostKiB
      }
    }
    measured.afterKiB = try broker.status.residentKiB
    measured.peakKiB = try broker.status.peakKiB
    measured.turn = try neighbour.call("statistics")["counters"]?["longestTurnMilliseconds"]?.integer ?? 0
    try neighbour.call("ping", [:])
    #expect(measured.fileBytes < 160 * Self.mebibyte, "\(shape): \(measured.fileBytes) bytes of one archive")
    if Products.isOptimised { #expect(measured.peakKiB < 256 << 10, "\(shape): \(measured.peakKiB) KiB at the peak") }
    #expect(try broker.terminate() == .exit(0))
    print("\(shape): \(measured)")
  }

  /// What an archive of no client has in memory: the states that were read last.
  private static let warmKiB = 12 << 10

  private struct Measured: CustomStringConvertible {
    /// What the neighbour did meanwhile.
    var count: Int64 = 0
    var (heldKiB, peakKiB, afterKiB, fileBytes, turn) = (0, 0, 0, 0, Int64(0))

    var description: String {
      "\(heldKiB) KiB held, \(peakKiB) at the peak, \(afterKiB) afterwards; \(fileBytes >> 10) KiB of one archive; "
        + "\(count) encodes beside it, longest turn \(turn) ms"
    }
  }

  /// Its log included, its backup copy not.
  private func bytesOfLargestArchive() throws -> Int {
    var bytes: [Substring: Int] = [:]
    for file in Files.list(broker.archives) {
      guard let name = file.split(separator: ".sqlite").first, file.contains(".sqlite"), !file.contains("+") else {
        continue
      }
      bytes[name, default: 0] += Files.size("\(broker.archives)/\(file)")
    }
    return bytes.values.max() ?? 0
  }
}
