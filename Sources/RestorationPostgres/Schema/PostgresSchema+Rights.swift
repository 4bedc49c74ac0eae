// SPDX-License-Identifier: Apache-2.0

extension PostgresSchema {
  /// Who may speak for whom. Administrators alone call `admit` and `erase`.
  static let rights = """
    -- A host says for whom it speaks; with which role it has logged in it cannot choose. A check speaks for nobody.
    CREATE OR REPLACE FUNCTION require_ticket(_owner text) RETURNS void LANGUAGE plpgsql STABLE AS $$
    BEGIN
      IF _owner = '' OR EXISTS (SELECT FROM ticket WHERE host = session_user AND owner = _owner) THEN RETURN; END IF;
      RAISE EXCEPTION USING ERRCODE = 'invalid_authorization_specification', MESSAGE = format(
        'this host, %1$s, has no ticket for the user %2$s; if it is to have one, the administrator runs '
        'SELECT restoration.admit(%1$L, %2$L)', session_user, _owner);
    END $$;

    -- Gives a host a ticket for a user, and a role if it has none.
    CREATE OR REPLACE FUNCTION admit(_host text, _owner text) RETURNS void
    LANGUAGE plpgsql SET search_path = restoration, pg_temp AS $$
    DECLARE _setting text;
    BEGIN
      -- As of a variable that is not set. A check has the empty name of a user, and needs no ticket.
      IF coalesce(_host, '') = '' OR coalesce(_owner, '') = '' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format(
          'a ticket needs the name of a host and that of a user, not %L and %L', _host, _owner),
          HINT = 'SELECT restoration.admit(''HOST'', ''USER'')';
      END IF;
      IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = _host) THEN
        EXECUTE format('CREATE ROLE %I LOGIN', _host);
      END IF;
      IF NOT pg_has_role(_host, 'restoration_gateway', 'USAGE') THEN
        EXECUTE format('GRANT restoration_gateway TO %I', _host);
        -- One host is not to take all connections: a gateway has up to 16, and those that it has given up. A call whose
        -- gateway has given up is not to wait for a lock for ever, and a host that has vanished in the middle of a
        -- transaction is not to hold locks for hours; and the gateway is to be warned if the wait of a commit is
        -- cancelled.
        FOREACH _setting IN ARRAY ARRAY['CONNECTION LIMIT 32', 'SET client_connection_check_interval = 2000',
          'SET client_min_messages = warning', 'SET tcp_keepalives_idle = 5', 'SET tcp_keepalives_interval = 2',
          'SET tcp_keepalives_count = 3']
        LOOP
          EXECUTE format('ALTER ROLE %I %s', _host, _setting);
        END LOOP;
      END IF;
      INSERT INTO ticket VALUES (_host, _owner) ON CONFLICT DO NOTHING;
    END $$;

    -- Everything of a user goes, and the tickets, so that no host brings it back; the number of archives.
    CREATE OR REPLACE FUNCTION erase(_owner text, OUT archives bigint)
    LANGUAGE plpgsql SET search_path = restoration, pg_temp AS $$
    DECLARE _archives bigint[];
    BEGIN
      -- No host is between the look at its ticket and its archive. All look at their tickets before they lock archives.
      LOCK TABLE ticket IN ACCESS EXCLUSIVE MODE;
      DELETE FROM ticket WHERE owner = _owner;
      -- Waits for appends; later ones find no lease.
      SELECT coalesce(array_agg(archive), '{}') INTO _archives
      FROM (SELECT archive FROM archive WHERE owner = _owner ORDER BY archive FOR UPDATE) AS locked;
      DELETE FROM batch WHERE archive = ANY (_archives);
      DELETE FROM part WHERE archive = ANY (_archives);
      DELETE FROM reign WHERE archive = ANY (_archives);
      DELETE FROM archive WHERE archive = ANY (_archives);
      DELETE FROM holder WHERE owner = _owner;
      archives := cardinality(_archives);
    END $$;

    """
}
