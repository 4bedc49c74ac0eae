// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import RestorationTransport

extension FuzzTarget {
  /// What a former broker left of its connections, with any of its words changed. The input is a list of changes: two
  /// bytes say which word, eight give its value. That of the last possible word is the length of the file.
  static let ledger = FuzzTarget(
    name: "ledger",
    seeds: {
      // The numbers of the first page, and those of the page of a connection that was handed over.
      let words = Array(0..<4) + Array(512..<521) + Array(1_024..<1_033) + [65_535]
      return words.map { [UInt8($0 & 255), UInt8($0 >> 8), 3, 0, 0, 0, 0, 0, 0, 0] }
    },
    run: { input in
      do {
        let ledger = try ConnectionLedger.make(connectionsMax: 3)
        let pages = (0..<2).compactMap { _ in ledger.claim(ledger.nextKey()) }
        pages[0].setContext(Array(#"{"session":null}"#.utf8))
        pages[0].markIdle(framing: .jsonStream, callsMade: CallsMade(lastID: 7, unanswered: 2))
        var snapshot = ConnectionSnapshot(framing: .contentLength)
        (snapshot.context, snapshot.input, snapshot.output) = ([1, 2], [3, 4, 5], [6])
        try pages[1].handOver(snapshot)
        let size = Int(lseek(ledger.descriptor, 0, SEEK_END))
        for start in stride(from: 0, to: input.count - 9, by: 10) {
          let word = Int(input[start]) | Int(input[start + 1]) << 8
          let value = input[start + 2..<start + 10]
          if word == 65_535 {
            let length = value.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) } % UInt64(size + 1)
            demand(ftruncate(ledger.descriptor, off_t(length)) == 0, "no change of the length")
          } else {
            demand(pwrite(ledger.descriptor, Array(value), 8, off_t(word * 8 % (size - 8))) == 8, "no write")
          }
        }
        let (next, records) = try ConnectionLedger.inherit(dup(ledger.descriptor), connectionsMax: 3)
        for record in records.values { demand(record.context.count + record.input.count <= size, "\(record)") }
        next.endAdoption()
        for _ in 0..<3 { demand(next.claim(next.nextKey()) != nil, "too few pages") }
      } catch is TransportError {
        // It is refused as a whole.
      } catch {
        preconditionFailure("\(error)")
      }
    }
  )
}
