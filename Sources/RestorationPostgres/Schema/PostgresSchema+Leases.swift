// SPDX-License-Identifier: Apache-2.0

extension PostgresSchema {
  /// Used by the functions below, which have a fixed search path; no role may call them.
  static let helpers = """
    -- Whether a commit waits for another server, and the gateway is warned if that wait is cancelled; or need not.
    CREATE OR REPLACE FUNCTION is_covered(_alone boolean) RETURNS boolean LANGUAGE sql STABLE AS $$
      SELECT _alone OR current_setting('synchronous_standby_names') <> ''
        AND current_setting('synchronous_commit') IN ('on', 'remote_apply')
        AND current_setting('client_min_messages') <> 'error'
    $$;

    CREATE OR REPLACE FUNCTION milliseconds(_time timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
      SELECT (extract(epoch FROM _time) * 1000)::bigint
    $$;

    -- Why a lease is not the newest. One that is unknown is not fenced: this server was put back to an earlier state,
    -- or lacks what the one before it had. The holder may go on if its contents continue those that are here.
    CREATE OR REPLACE FUNCTION ended(_owner text, _archive bigint, _lease uuid, OUT outcome text, OUT host text)
    LANGUAGE sql STABLE AS $$
      SELECT CASE WHEN EXISTS (SELECT FROM archive a JOIN reign r USING (archive)
          WHERE a.archive = _archive AND a.owner = _owner AND r.lease = _lease) THEN 'fenced' ELSE 'voided' END,
        (SELECT host FROM archive WHERE archive = _archive AND owner = _owner AND holder IS NOT NULL)
    $$;

    -- Where the contents end. A snapshot leaves no batch that ends before it.
    CREATE OR REPLACE FUNCTION tip(_archive bigint, OUT upto bigint, OUT change uuid)
    LANGUAGE sql STABLE AS $$
      SELECT coalesce(b.upto, a.base), CASE WHEN b.upto IS NULL THEN a.base_change ELSE b.change END
      FROM archive a LEFT JOIN LATERAL (SELECT upto, change FROM batch
        WHERE archive = _archive ORDER BY after DESC LIMIT 1) b ON true
      WHERE a.archive = _archive
    $$;

    CREATE OR REPLACE FUNCTION end_reign(_archive bigint) RETURNS void LANGUAGE sql AS $$
      INSERT INTO reign SELECT a.archive, a.number, a.lease, t.upto FROM archive a CROSS JOIN LATERAL tip(a.archive) t
      WHERE a.archive = _archive AND a.lease IS NOT NULL AND t.upto IS DISTINCT FROM (SELECT r.upto FROM reign r
        WHERE r.archive = _archive ORDER BY r.number DESC LIMIT 1)
      ON CONFLICT DO NOTHING;
      DELETE FROM reign WHERE archive = _archive
        AND number <= (SELECT number FROM archive WHERE archive = _archive) - 10000
    $$;

    -- As 'lease upto,lease upto': where the newest leases, and those that are known to a host, have left the contents.
    CREATE OR REPLACE FUNCTION reigns(_archive bigint, _known text) RETURNS text LANGUAGE sql STABLE AS $$
      SELECT coalesce(string_agg(replace(r.lease::text, '-', '') || ' ' || r.upto, ',' ORDER BY r.number), '')
      FROM reign r
      WHERE r.archive = _archive AND (r.lease = ANY (string_to_array(_known, ',')::uuid[])
        OR r.number IN (SELECT number FROM reign WHERE archive = _archive ORDER BY number DESC LIMIT 64))
    $$;

    -- What was removed long ago, and brokers that are long gone. What another call is about is left to it.
    CREATE OR REPLACE FUNCTION clean(_owner text) RETURNS void LANGUAGE sql AS $$
      WITH gone AS (
        DELETE FROM archive WHERE archive IN (SELECT archive FROM archive WHERE owner = _owner
          AND removed < clock_timestamp() - interval '90 days' FOR UPDATE SKIP LOCKED) RETURNING archive)
      DELETE FROM reign WHERE archive IN (SELECT archive FROM gone);
      DELETE FROM holder h WHERE h.owner = _owner AND h.renewed < clock_timestamp() - interval '1 day'
        AND NOT EXISTS (SELECT FROM archive a WHERE a.holder = h.holder)
    $$;

    """

  static let leases = """
    -- Which server it is, and how many commits of this host have waited for another one for longer than this: their
    -- programs have given up, and nothing ends them. With the rights of the caller, who sees sessions of the same role.
    CREATE OR REPLACE FUNCTION server_1(_milliseconds bigint, OUT system bigint, OUT timeline bigint, OUT stuck bigint,
      OUT version bigint)
    LANGUAGE sql STABLE SET search_path = restoration, pg_temp AS $$
      SELECT (pg_control_system()).system_identifier,
        ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint,
        (SELECT count(*) FROM pg_stat_activity WHERE usename = current_user AND wait_event = 'SyncRep'
          AND query_start < clock_timestamp() - make_interval(secs => _milliseconds / 1000.0)),
        \(version)::bigint
    $$;

    -- What decides who may have a lease; one row, also if there is no such archive.
    CREATE OR REPLACE FUNCTION look_1(_owner text, _application text, _alone boolean,
      OUT covered boolean, OUT archive bigint, OUT lease uuid, OUT holder text, OUT host text, OUT since bigint,
      OUT wanted text, OUT renewal uuid, OUT term bigint, OUT silence bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = restoration, pg_temp AS $$
      SELECT require_ticket(_owner);
      SELECT is_covered(_alone), a.archive, a.lease, a.holder, a.host, milliseconds(a.since), a.wanted, h.renewal,
        h.term, milliseconds(clock_timestamp())
          - milliseconds(greatest(h.renewed, pg_postmaster_start_time()))
      FROM (SELECT) AS one
      LEFT JOIN archive a ON a.owner = _owner AND a.application = _application
      LEFT JOIN holder h ON h.holder = a.holder
    $$;

    -- Gives a lease, if what was seen when that was decided still holds.
    CREATE OR REPLACE FUNCTION take_1(_owner text, _application text, _holder text, _host text, _term bigint,
      _history text, _reader bigint, _known text, _seen uuid, _seen_holder text, _seen_renewal uuid, _alone boolean,
      OUT outcome text, OUT archive bigint, OUT lease uuid, OUT history text, OUT base bigint, OUT tip bigint,
      OUT tip_change uuid, OUT reigns text, OUT former text, OUT former_since bigint, OUT reader bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = restoration, pg_temp AS $$
    #variable_conflict use_column
    DECLARE _row archive;
    BEGIN
      PERFORM require_ticket(_owner);
      IF NOT is_covered(_alone) THEN outcome := 'uncovered'; RETURN; END IF;
      IF _seen IS NULL THEN
        -- As many as a user may have; those that were removed count.
        INSERT INTO archive (owner, application, history)
        SELECT _owner, _application, coalesce(_history, gen_random_uuid()::text)
        WHERE (SELECT count(*) FROM archive WHERE owner = _owner) < 1000 ON CONFLICT DO NOTHING;
      END IF;
      -- Waits for an append under the former lease.
      SELECT * INTO _row FROM archive WHERE owner = _owner AND application = _application FOR NO KEY UPDATE;
      IF _row.archive IS NULL AND _seen IS NULL THEN outcome := 'quota'; RETURN; END IF;
      IF _row.archive IS NULL OR _row.lease IS DISTINCT FROM _seen OR _row.holder IS DISTINCT FROM _seen_holder THEN
        outcome := 'changed'; RETURN;
      END IF;
      IF _seen_renewal IS NOT NULL THEN
        PERFORM FROM holder WHERE holder = _row.holder AND renewal = _seen_renewal FOR SHARE;
        IF NOT FOUND THEN outcome := 'changed'; RETURN; END IF;
      END IF;
      reader := _row.reader;
      IF _row.reader > _reader THEN outcome := 'tooNew'; RETURN; END IF;
      INSERT INTO holder AS h (holder, owner, host, term) VALUES (_holder, _owner, _host, _term)
      ON CONFLICT (holder) DO UPDATE SET host = excluded.host, term = excluded.term, renewal = gen_random_uuid(),
        renewed = clock_timestamp()
      WHERE h.owner = excluded.owner;
      IF NOT FOUND THEN RAISE EXCEPTION 'holder % is of another owner', _holder; END IF;
      archive := _row.archive; base := _row.base;
      SELECT t.upto, t.change INTO tip, tip_change FROM tip(_row.archive) t;
      -- Of an archive that was removed it was ended with what there was before.
      IF _row.removed IS NULL THEN PERFORM end_reign(_row.archive); END IF;
      reigns := reigns(_row.archive, _known);
      DELETE FROM part WHERE archive = _row.archive AND attempt IS DISTINCT FROM _row.base_attempt;
      IF _row.holder IS NOT NULL THEN former := _row.host; former_since := milliseconds(_row.since); END IF;
      UPDATE archive a SET lease = gen_random_uuid(), number = _row.number + 1, holder = _holder, host = _host,
        since = clock_timestamp(), wanted = NULL, removed = NULL,
        history = CASE WHEN _row.removed IS NULL THEN _row.history ELSE gen_random_uuid()::text END
      WHERE a.archive = _row.archive RETURNING a.lease, a.history INTO lease, history;
      outcome := 'taken';
      PERFORM clean(_owner);
    END $$;

    -- Another host waits for the archive. The first one is told.
    CREATE OR REPLACE FUNCTION want_1(_owner text, _archive bigint, _lease uuid, _host text, OUT told boolean)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = restoration, pg_temp AS $$
    BEGIN
      PERFORM require_ticket(_owner);
      UPDATE archive SET wanted = _host WHERE archive = _archive AND owner = _owner AND lease = _lease
        AND holder IS NOT NULL AND wanted IS NULL;
      told := FOUND;
    END $$;

    -- A broker is alive. The first row says the outcome, the others are its leases.
    CREATE OR REPLACE FUNCTION renew_1(_owner text, _holder text, _alone boolean)
    RETURNS TABLE (outcome text, archive bigint, application text, lease uuid, wanted text, sequence bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = restoration, pg_temp AS $$
    #variable_conflict use_column
    BEGIN
      PERFORM require_ticket(_owner);
      IF NOT is_covered(_alone) THEN outcome := 'uncovered'; RETURN NEXT; RETURN; END IF;
      UPDATE holder SET renewal = gen_random_uuid(), renewed = clock_timestamp()
      WHERE holder = _holder AND owner = _owner;
      IF NOT FOUND THEN outcome := 'voided'; RETURN NEXT; RETURN; END IF;
      outcome := 'renewed'; RETURN NEXT;
      RETURN QUERY SELECT NULL, a.archive, a.application, a.lease, a.wanted, t.upto
        FROM archive a CROSS JOIN LATERAL tip(a.archive) t
        WHERE a.holder = _holder AND a.owner = _owner;
    END $$;

    -- For which archives of these brokers somebody waits; names of brokers, separated by commas.
    CREATE OR REPLACE FUNCTION wanted_1(_holders text) RETURNS TABLE (holder text, archive bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = restoration, pg_temp AS $$
      SELECT holder, archive FROM archive JOIN ticket t USING (owner)
      WHERE holder = ANY (string_to_array(_holders, ',')) AND wanted IS NOT NULL AND t.host = session_user
    $$;

    -- Gives a lease back, or removes the archive. With `_upto` everything is here: if not, this server was put back.
    CREATE OR REPLACE FUNCTION release_1(_owner text, _archive bigint, _lease uuid, _removed boolean,
      _upto bigint, _summary bytea, OUT outcome text, OUT host text, OUT tip bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = restoration, pg_temp AS $$
    #variable_conflict use_column
    BEGIN
      PERFORM require_ticket(_owner);
      PERFORM FROM archive WHERE archive = _archive AND owner = _owner AND lease = _lease AND removed IS NULL
        FOR NO KEY UPDATE;
      IF NOT FOUND THEN SELECT * INTO outcome, host FROM ended(_owner, _archive, _lease); RETURN; END IF;
      IF NOT _removed THEN
        SELECT t.upto INTO tip FROM tip(_archive) t;
        IF _upto <> tip THEN outcome := 'gap'; RETURN; END IF;
        outcome := 'released';
        UPDATE archive SET holder = NULL, wanted = NULL,
          summary = CASE WHEN _summary = '' THEN summary ELSE _summary END
        WHERE archive = _archive;
        RETURN;
      END IF;
      outcome := 'released';
      PERFORM end_reign(_archive);
      -- Of what comes next nobody has anything.
      UPDATE reign SET upto = 0 WHERE archive = _archive;
      UPDATE archive SET holder = NULL, wanted = NULL, summary = '', removed = clock_timestamp(),
        base = 0, base_change = NULL, base_attempt = NULL, parts = 0, base_bytes = 0,
        reader = 1
      WHERE archive = _archive;
      DELETE FROM batch WHERE archive = _archive;
      DELETE FROM part WHERE archive = _archive;
    END $$;

    -- Archives behind an application, as many as have room.
    CREATE OR REPLACE FUNCTION list_1(_owner text, _after text, _count bigint)
    RETURNS TABLE (application text, host text, since bigint, sequence bigint, summary bytea)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = restoration, pg_temp AS $$
      SELECT require_ticket(_owner);
      SELECT a.application, CASE WHEN a.holder IS NOT NULL THEN a.host END, milliseconds(a.since), t.upto, a.summary
      FROM archive a CROSS JOIN LATERAL tip(a.archive) t
      WHERE a.owner = _owner AND a.removed IS NULL AND a.lease IS NOT NULL
        AND (_after IS NULL OR a.application COLLATE "C" > _after)
      ORDER BY a.application COLLATE "C" LIMIT _count
    $$;

    """
}
