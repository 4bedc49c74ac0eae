// SPDX-License-Identifier: Apache-2.0

/// The statements that an administrator applies to a database as its owner's role, again at each upgrade.
///
/// Hosts log in with roles that are members of `restoration_gateway`, which may only call the functions for programs.
/// The names of these contain a version, so that gateways of two versions can share a database; the parameters of a
/// version never change.
package enum PostgresSchema {
  /// Of the tables: another one cannot be upgraded.
  static let version: Int64 = 2

  package static var text: String { [begin, tables, rights, helpers, leases, contents, end].joined(separator: "\n") }

  private static let begin = """
    \\set ON_ERROR_STOP 1
    BEGIN;
    SET LOCAL client_min_messages = warning;
    CREATE SCHEMA IF NOT EXISTS restoration;
    DO $$ BEGIN
      IF to_regclass('restoration.archive') IS NOT NULL
        AND obj_description('restoration'::regnamespace, 'pg_namespace') IS DISTINCT FROM 'restorationd \(version)'
      THEN
        RAISE EXCEPTION 'the schema restoration is of another version, and cannot be upgraded to version \(version)'
        USING HINT = 'DROP SCHEMA restoration CASCADE removes it, all archives and tickets; then apply this again.';
      END IF;
    END $$;
    COMMENT ON SCHEMA restoration IS 'restorationd \(version)';
    SET LOCAL search_path = restoration, pg_temp;

    """

  private static let end = """
    REVOKE ALL ON SCHEMA restoration FROM PUBLIC;
    REVOKE ALL ON ALL TABLES IN SCHEMA restoration FROM PUBLIC;
    REVOKE ALL ON ALL FUNCTIONS IN SCHEMA restoration FROM PUBLIC;
    DO $$ BEGIN
      IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'restoration_gateway') THEN
        CREATE ROLE restoration_gateway NOLOGIN;
      ELSIF EXISTS (SELECT FROM pg_roles WHERE rolname = 'restoration_gateway' AND rolcanlogin) THEN
        -- Of a schema in which all hosts had one role.
        ALTER ROLE restoration_gateway NOLOGIN;
      END IF;
    END $$;
    GRANT USAGE ON SCHEMA restoration TO restoration_gateway;
    GRANT EXECUTE ON FUNCTION server_1, look_1, take_1, want_1, renew_1, wanted_1, append_1, load_1, snapshot_1,
      release_1, list_1, usage_1 TO restoration_gateway;
    COMMIT;

    """

  private static let tables = """
    -- For which users a host may speak.
    CREATE TABLE IF NOT EXISTS ticket (
      host  name,                               -- the role with which it logs in
      owner text,
      PRIMARY KEY (host, owner)
    );

    -- One row a broker: who is alive. A renewal is one row, however many archives a broker holds.
    CREATE TABLE IF NOT EXISTS holder (
      holder   text PRIMARY KEY,                -- made up by the gateway at random
      owner    text NOT NULL,
      host     text NOT NULL,
      term     bigint NOT NULL,                 -- milliseconds without a renewal until others may take its leases
      renewal  uuid NOT NULL DEFAULT gen_random_uuid(),  -- another one after each renewal
      renewed  timestamptz NOT NULL DEFAULT clock_timestamp()
    ) WITH (fillfactor = 50);
    CREATE INDEX IF NOT EXISTS holder_owner ON holder (owner);

    CREATE TABLE IF NOT EXISTS archive (
      archive     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      owner       text NOT NULL,
      application text NOT NULL,
      history     text NOT NULL,                -- another one: the contents do not continue the former ones
      lease       uuid,                         -- the newest one; null: there was none
      number      bigint NOT NULL DEFAULT 0,    -- how many there were
      holder      text REFERENCES holder ON DELETE SET NULL,  -- null: given back
      host        text,                         -- who has the newest lease, or had it
      since       timestamptz,
      wanted      text,                         -- the host that waits
      base        bigint NOT NULL DEFAULT 0,    -- where the snapshot ends
      base_change uuid,
      base_attempt bigint,                      -- whose parts it has; null: there is none
      parts       bigint NOT NULL DEFAULT 0,    -- how many it has; 0: there is none
      base_bytes  bigint NOT NULL DEFAULT 0,    -- how long they are together
      reader      bigint NOT NULL DEFAULT 1,    -- the version of a reader that the contents need
      removed     timestamptz,                  -- the row stays, so that no old copy brings the contents back: 90 days
      summary     bytea NOT NULL DEFAULT '',
      UNIQUE (owner, application)
    ) WITH (fillfactor = 70);
    CREATE INDEX IF NOT EXISTS archive_holder ON archive (holder);
    CREATE INDEX IF NOT EXISTS archive_wanted ON archive (holder) WHERE wanted IS NOT NULL;

    -- Where each of the last 10,000 leases has left the contents, unless that is where the one before it has. Only its
    -- holder writes under a lease: whoever knows how far it has the changes of one, knows what it shares with others.
    CREATE TABLE IF NOT EXISTS reign (
      archive bigint NOT NULL,
      number  bigint NOT NULL,
      lease   uuid NOT NULL,
      upto    bigint NOT NULL,
      PRIMARY KEY (archive, number)
    );

    -- What transactions have changed: after + 1 … upto. No foreign key: its trigger would cost each append, and the
    -- row of the archive is locked anyway.
    CREATE TABLE IF NOT EXISTS batch (
      archive bigint NOT NULL,
      after   bigint NOT NULL,
      upto    bigint NOT NULL CHECK (upto > after),
      change  uuid NOT NULL,
      key     bytea NOT NULL,                   -- what it is encrypted with; empty if the body says that
      body    bytea NOT NULL,
      total   bigint NOT NULL,                  -- bytes of the bodies up to this one; some of them may be gone
      PRIMARY KEY (archive, after)
    ) PARTITION BY HASH (archive);
    ALTER TABLE batch ALTER body SET STORAGE EXTERNAL;

    -- The snapshot, and one that is not complete.
    CREATE TABLE IF NOT EXISTS part (
      archive bigint NOT NULL,
      attempt bigint NOT NULL,                  -- to store a snapshot; at random
      number  bigint NOT NULL,
      body    bytea NOT NULL,
      PRIMARY KEY (archive, attempt, number)
    ) PARTITION BY HASH (archive);
    ALTER TABLE part ALTER body SET STORAGE EXTERNAL;

    -- What is appended is deleted later, and each append takes a transaction number. On one table only one worker of
    -- autovacuum can be at work: partitions have one each, as fast as if it were alone. It freezes what it finds, so
    -- that there is little left to do when numbers become scarce.
    DO $$
    DECLARE _table text;
    BEGIN
      FOREACH _table IN ARRAY ARRAY['batch', 'part'] LOOP
        FOR _number IN 0..15 LOOP
          EXECUTE format('CREATE TABLE IF NOT EXISTS %1$s_%2$s PARTITION OF %1$s
            FOR VALUES WITH (MODULUS 16, REMAINDER %2$s) WITH (
              autovacuum_freeze_min_age = 0, autovacuum_vacuum_cost_limit = 2000,
              toast.autovacuum_freeze_min_age = 0, toast.autovacuum_vacuum_cost_limit = 2000)', _table, _number);
        END LOOP;
      END LOOP;
    END $$;

    """
}
