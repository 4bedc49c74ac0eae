// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

@Suite struct LimitConfigurationTests {
  @Test func aConfigurationReplacesWhatItNames() throws {
    let limits = try Limits(overriding: ["stateBytesMax": 4_096, "connectionsMax": 3])
    #expect(limits.stateBytesMax == 4_096)
    #expect(limits.connectionsMax == 3)
    #expect(limits.frameBytesMax == Limits().frameBytesMax)
    #expect(try Limits(overriding: [:]) == Limits())
  }

  @Test(arguments: [
    ("stateBytesMaximum", 5 as JSONValue),
    ("stateBytesMax", "4096"),
    ("stateBytesMax", 4_096.5),
    ("stateBytesMax", nil),
    ("stateBytesMax", true),
    ("stateBytesMax", 1_023),
    ("depthMax", 65),
    ("depthMax", 15),
    ("descriptorsAccepted", 1),
    ("connectionsMax", 0),
    ("frameBytesMax", -1),
  ])
  func aConfigurationOutsideOfItsRangeNamesTheLimit(_ name: String, _ value: JSONValue) {
    #expect(fault([name: value])?.limit == name)
  }

  @Test func limitsThatContradictEachOtherAreRefused() throws {
    #expect(fault(["depthMax": 63])?.limit == "stateDepthMax")
    _ = try Limits(overriding: ["depthMax": 63, "stateDepthMax": 55])
    #expect(fault(["frameBytesMax": 65_536])?.limit == "stateBytesMax")
    _ = try Limits(overriding: ["frameBytesMax": 65_536, "stateBytesMax": 32_768])
  }

  @Test(arguments: Limit.all.map(\.name))
  func bordersOfARangeAreInsideIt(_ name: String) throws {
    let limit = try #require(Limit.all.first { $0.name == name })
    for border in [limit.range.lowerBound, limit.range.upperBound] {
      let fault = fault([name: .integer(Int64(border))])
      #expect(fault?.description.contains("is not an integer from") != true)
    }
    #expect(fault([name: .integer(Int64(limit.range.upperBound) + 1)])?.limit == name)
    #expect(fault([name: .integer(Int64(limit.range.lowerBound) - 1)])?.limit == name)
  }

  private func fault(_ members: JSONObject) -> Limits.Fault? {
    do throws(Limits.Fault) {
      _ = try Limits(overriding: members)
      return nil
    } catch {
      return error
    }
  }

  private func fault(_ members: [String: JSONValue]) -> Limits.Fault? {
    var object = JSONObject()
    for (name, value) in members {
      object[name] = value
    }
    return fault(object)
  }
}
