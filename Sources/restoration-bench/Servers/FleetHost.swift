// SPDX-License-Identifier: Apache-2.0

/// A host of a fleet: a gateway and a broker. Both end with this value.
struct FleetHost {
  let broker: BrokerUnderLoad
  private let gateway: Server

  /// - Parameter acknowledge: `disk` or `replica`.
  init(_ stage: Stage, _ name: String, _ database: Database, broker: String, gateway: String, acknowledge: String)
    throws
  {
    let folder = try stage.folder("gateway")
    let configuration = "\(folder)/gateway.json"
    try Output.write(#"{"conninfo":"\#(database.conninfo)","userBytesMax":1099511627776}"#, toFile: configuration)
    let socket = "\(folder).sock"
    self.gateway = try Server(
      stage,
      in: folder,
      socket: socket,
      [gateway, "--config", configuration, "--socket", socket]
    )
    let replica = #"{"socket":"\#(socket)","host":"\#(name)","encryption":"none","acknowledge":"\#(acknowledge)"}"#
    self.broker = BrokerUnderLoad(try Server.broker(broker, stage, in: try stage.folder("broker"), replica: replica))
  }
}
