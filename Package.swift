// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
//
// One section a target, followed by its tests; sections go from the bottom of the dependency order to the top, one
// dependency a line. A target exists only if its allowed imports differ, it is another product or process, or it is
// test-only. Tests/TidyTests holds the imports against Sources/ARCHITECTURE.md.

import PackageDescription

let settings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .treatAllWarnings(as: .error),
]

/// What drives the whole service in memory.
let service: [Target.Dependency] = [
  "InMemory",
  "JSONRPC",
  "RestorationArchive",
  "RestorationBroker",
  "RestorationTransport",
  "RestorationWire",
  .product(name: "Logging", package: "swift-log"),
  .product(name: "NIOCore", package: "swift-nio"),
  .product(name: "NIOEmbedded", package: "swift-nio"),
]

/// What the client library works together with, each only with its trait.
let integrations: [Target.Dependency] = [
  .product(
    name: "Instrumentation",
    package: "swift-distributed-tracing",
    condition: .when(traits: ["Tracing"])
  ),
  .product(
    name: "ServiceLifecycle",
    package: "swift-service-lifecycle",
    condition: .when(traits: ["ServiceLifecycle"])
  ),
]

let package = Package(
  name: "restorationd",
  products: [
    .library(name: "RestorationClient", targets: ["RestorationClient"]),
    .library(name: "RestorationTesting", targets: ["RestorationTesting"]),
    .executable(name: "restorationd", targets: ["restorationd"]),
    .executable(name: "restorationctl", targets: ["restorationctl"]),
    .executable(name: "restoration-gateway", targets: ["restoration-gateway"]),
  ],
  traits: [
    .default(enabledTraits: ["Fleet", "Foundation"]),
    .trait(name: "Fleet", description: "Archives that follow their user from host to host."),
    .trait(name: "Foundation", description: "States of Data, Date and URL in RestorationClient."),
    .trait(name: "ServiceLifecycle", description: "A RestorationSession is a Service of swift-service-lifecycle."),
    .trait(name: "Tracing", description: "Calls of RestorationClient are in the trace of swift-distributed-tracing."),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: [
    // System libraries
    .systemLibrary(name: "CJansson", pkgConfig: "jansson", providers: [.apt(["libjansson-dev"])]),
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .systemLibrary(name: "CPostgres", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
    .systemLibrary(name: "CLinux"),
    .systemLibrary(name: "CChecksum"),

    // JSONRPC
    .target(name: "JSONRPC", dependencies: ["CJansson"], swiftSettings: settings),
    .testTarget(
      name: "JSONRPCTests",
      dependencies: [
        "CJansson",
        "JSONRPC",
        "Mutation",
        "SeededRandom",
        "TestSupport",
      ],
      swiftSettings: settings
    ),

    // RestorationWire
    .target(name: "RestorationWire", dependencies: ["JSONRPC"], swiftSettings: settings),
    .testTarget(
      name: "RestorationWireTests",
      dependencies: ["JSONRPC", "RestorationBroker", "RestorationWire"],
      swiftSettings: settings
    ),

    // RestorationTransport
    .target(
      name: "RestorationTransport",
      dependencies: [
        "CLinux",
        "JSONRPC",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: settings
    ),
    .testTarget(
      name: "RestorationTransportTests",
      dependencies: [
        "JSONRPC",
        "RestorationTransport",
        "TestSupport",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: settings
    ),

    // RestorationArchive
    .target(
      name: "RestorationArchive",
      dependencies: ["CChecksum", "CSQLite", .product(name: "DequeModule", package: "swift-collections")],
      swiftSettings: settings
    ),
    .testTarget(
      name: "RestorationArchiveTests",
      dependencies: [
        "CSQLite",
        "InMemory",
        "RestorationArchive",
        "RestorationReplica",
        "SeededRandom",
        "TestSupport",
      ],
      swiftSettings: settings
    ),

    // RestorationReplica
    .target(name: "CSodium"),
    .target(
      name: "RestorationReplica",
      dependencies: [
        "CLinux",
        "CSodium",
        "JSONRPC",
        "RestorationArchive",
        "RestorationTransport",
        "RestorationWire",
        "Spawning",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
      ],
      swiftSettings: settings
    ),

    // SystemdSupport
    .target(name: "CSystemd"),
    .target(
      name: "SystemdSupport",
      dependencies: ["CSystemd", .product(name: "Logging", package: "swift-log")],
      swiftSettings: settings
    ),
    .testTarget(name: "SystemdSupportTests", dependencies: ["SystemdSupport", "TestSupport"], swiftSettings: settings),

    // RestorationPostgres; every engine of replicas passes one suite
    .target(
      name: "RestorationPostgres",
      dependencies: [
        "CPostgres",
        "RestorationArchive",
        "RestorationReplica",
        "RestorationTransport",
        "SystemdSupport",
        .product(name: "DequeModule", package: "swift-collections"),
      ],
      swiftSettings: settings
    ),
    .testTarget(
      name: "RestorationReplicaTests",
      dependencies: [
        "InMemory",
        "JSONRPC",
        "Mutation",
        "RestorationArchive",
        "RestorationPostgres",
        "RestorationReplica",
        "RestorationTransport",
        "RestorationWire",
        "SeededRandom",
        "TestSupport",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: settings
    ),

    // RestorationBroker
    .target(
      name: "RestorationBroker",
      dependencies: [
        "JSONRPC",
        "RestorationArchive",
        "RestorationTransport",
        "RestorationWire",
        .product(name: "HeapModule", package: "swift-collections"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
      ],
      swiftSettings: settings
    ),
    .testTarget(
      name: "RestorationBrokerTests",
      dependencies: service + [
        "CSQLite",
        "Mutation",
        "SeededRandom",
        "TestSupport",
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: settings
    ),

    // RestorationClient
    .target(
      name: "RestorationClient",
      dependencies: integrations + [
        "JSONRPC",
        "RestorationTransport",
        "RestorationWire",
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: settings
    ),
    .testTarget(
      name: "RestorationClientTests",
      dependencies: integrations + [
        "JSONRPC",
        "RestorationClient",
        "RestorationTransport",
        "RestorationWire",
        "SeededRandom",
        "TestSupport",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: settings
    ),

    // RestorationTesting
    .target(name: "SeededRandom", swiftSettings: settings),
    .target(name: "Spawning", swiftSettings: settings),
    .target(
      name: "RestorationTesting",
      dependencies: ["CLinux", "JSONRPC", "RestorationClient", "SeededRandom", "Spawning"],
      swiftSettings: settings
    ),

    // restorationd
    .executableTarget(
      name: "restorationd",
      dependencies: [
        "CLinux",
        "RestorationArchive",
        "RestorationBroker",
        .target(name: "RestorationReplica", condition: .when(traits: ["Fleet"])),
        "RestorationTransport",
        "SystemdSupport",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: settings
    ),

    // restorationctl
    .executableTarget(
      name: "restorationctl",
      dependencies: [
        "JSONRPC",
        "RestorationClient",
        .target(name: "RestorationReplica", condition: .when(traits: ["Fleet"])),
        "RestorationWire",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: settings
    ),
    .testTarget(
      name: "RestorationControlTests",
      dependencies: [
        "restorationctl",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
      ],
      swiftSettings: settings
    ),

    // restoration-gateway
    .executableTarget(
      name: "restoration-gateway",
      dependencies: [
        "RestorationArchive",
        "RestorationPostgres",
        "RestorationReplica",
        "RestorationTransport",
        "RestorationWire",
        "SystemdSupport",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: settings
    ),

    // restoration-sample: the Swift half of systemd/try.sh
    .executableTarget(name: "restoration-sample", dependencies: ["RestorationClient"], swiftSettings: settings),

    // restoration-bench, and what it starts: the broker, and a server in C
    .executableTarget(
      name: "restoration-bench",
      dependencies: [
        "CLinux",
        "CSQLite",
        "JSONRPC",
        "Spawning",
        "restoration-bench-floor",
        "restorationd",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: settings
    ),
    .executableTarget(name: "restoration-bench-floor"),
    .testTarget(
      name: "RestorationBenchTests",
      dependencies: ["JSONRPC", "TestSupport", "restoration-bench"],
      swiftSettings: settings
    ),

    // tabs, smallest: examples
    .executableTarget(
      name: "smallest",
      dependencies: ["RestorationClient"],
      path: "Protocol/examples/smallest",
      swiftSettings: settings
    ),
    .executableTarget(
      name: "tabs",
      dependencies: ["RestorationClient"],
      path: "Protocol/examples/tabs",
      swiftSettings: settings
    ),

    // Tests over the whole product
    .target(
      name: "TestSupport",
      dependencies: ["CLinux", "JSONRPC", "Spawning"],
      path: "Tests/Support",
      swiftSettings: settings
    ),
    .target(name: "Mutation", dependencies: ["SeededRandom"], path: "Tests/Mutation", swiftSettings: settings),
    .target(
      name: "InMemory",
      dependencies: [
        "JSONRPC",
        "RestorationArchive",
        "RestorationBroker",
        "RestorationReplica",
        "RestorationTransport",
        "RestorationWire",
        "SeededRandom",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
      ],
      path: "Tests/InMemory",
      swiftSettings: settings
    ),
    .target(
      name: "Histories",
      dependencies: ["JSONRPC", "RestorationWire"],
      path: "Tests/Histories",
      swiftSettings: settings
    ),
    .executableTarget(
      name: "simulation",
      dependencies: service + [
        "CSQLite",
        "Histories",
        "RestorationClient",
        "RestorationReplica",
        "SeededRandom",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "Tests/Simulation",
      exclude: ["planted.py"],
      swiftSettings: settings
    ),
    .executableTarget(
      name: "fuzz",
      dependencies: service + [
        "CSQLite",
        "Mutation",
        "RestorationClient",
        "RestorationReplica",
        "SeededRandom",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "Tests/Fuzz",
      swiftSettings: settings
    ),
    .executableTarget(
      name: "benchmarks",
      dependencies: service,
      path: "Tests/Benchmarks",
      exclude: ["instructions.json"],
      swiftSettings: settings
    ),
    .executableTarget(
      name: "restoration-test-client",
      dependencies: ["JSONRPC", "RestorationClient"],
      path: "Tests/Clients/Swift",
      swiftSettings: settings
    ),
    .testTarget(
      name: "IntegrationTests",
      dependencies: [
        "Histories",
        "JSONRPC",
        "Mutation",
        "RestorationBroker",
        "RestorationClient",
        "RestorationTesting",
        "RestorationWire",
        "SeededRandom",
        "TestSupport",
        "benchmarks",
        "fuzz",
        "restoration-bench",
        "restoration-sample",
        "restoration-test-client",
        "restorationctl",
        "restorationd",
        "simulation",
        "smallest",
        "tabs",
      ],
      swiftSettings: settings
    ),
    .testTarget(
      name: "TidyTests",
      dependencies: ["JSONRPC", "RestorationBroker", "RestorationWire", "TestSupport"],
      swiftSettings: settings
    ),
  ]
)
