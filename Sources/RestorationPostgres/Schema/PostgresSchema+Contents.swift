// SPDX-License-Identifier: Apache-2.0

extension PostgresSchema {
  static let contents = """
    -- Stores a batch behind the contents. No exception block, which would be a subtransaction: of two appends at one
    -- place the second waits for the first, and the key refuses it. It waits no longer than that for locks, because
    -- appends of others may share its transaction.
    CREATE OR REPLACE FUNCTION append_1(_owner text, _archive bigint, _lease uuid, _after bigint, _upto bigint,
      _change uuid, _key bytea, _body bytea, _alone boolean, OUT outcome text, OUT tip bigint, OUT host text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = restoration, pg_temp SET lock_timeout = '300ms' AS $$
    #variable_conflict use_column
    DECLARE _base bigint; _total bigint;
    BEGIN
      PERFORM require_ticket(_owner);
      -- The lock also gives the transaction a number: so a repetition, too, waits until another server has the batch.
      SELECT base INTO _base FROM archive
      WHERE archive = _archive AND owner = _owner AND lease = _lease AND removed IS NULL FOR SHARE;
      IF NOT FOUND THEN SELECT * INTO outcome, host FROM ended(_owner, _archive, _lease); RETURN; END IF;
      IF NOT is_covered(_alone) THEN outcome := 'uncovered'; RETURN; END IF;
      SELECT upto, total INTO tip, _total FROM batch WHERE archive = _archive ORDER BY after DESC LIMIT 1;
      tip := coalesce(tip, _base);
      IF tip = _after THEN
        INSERT INTO batch
        VALUES (_archive, _after, _upto, _change, _key, _body, coalesce(_total, 0) + octet_length(_body));
        outcome := 'stored';
      ELSIF EXISTS (SELECT FROM batch WHERE archive = _archive AND after = _after AND change = _change) THEN
        outcome := 'stored';
      ELSE
        outcome := 'gap';
      END IF;
    END $$;

    -- A piece of the contents: batches that end behind a sequence, or parts of the snapshot from a number on. The first
    -- row says the outcome and what the contents are, the others are the pieces.
    CREATE OR REPLACE FUNCTION load_1(_owner text, _archive bigint, _lease uuid, _parts boolean, _from bigint,
      _bytes bigint)
    RETURNS TABLE (outcome text, host text, base bigint, base_change uuid, reader bigint, parts bigint, tip bigint,
      number bigint, upto bigint, body bytea, attempt bigint, change uuid)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = restoration, pg_temp AS $$
    #variable_conflict use_column
    DECLARE _row archive;
    BEGIN
      PERFORM require_ticket(_owner);
      SELECT * INTO _row FROM archive
      WHERE archive = _archive AND owner = _owner AND lease = _lease AND removed IS NULL;
      IF NOT FOUND THEN
        SELECT * INTO outcome, host FROM ended(_owner, _archive, _lease); RETURN NEXT; RETURN;
      END IF;
      outcome := CASE
        WHEN NOT _parts AND _from < _row.base THEN 'gap' ELSE 'loaded' END;
      base := _row.base; base_change := _row.base_change; reader := _row.reader; parts := _row.parts;
      attempt := _row.base_attempt;
      SELECT t.upto INTO tip FROM tip(_archive) t;
      RETURN NEXT;
      IF outcome <> 'loaded' THEN RETURN; END IF;
      -- As many as have room, and one in any case.
      IF _parts THEN
        RETURN QUERY SELECT NULL, NULL, NULL::bigint, NULL::uuid, NULL::bigint, NULL::bigint, NULL::bigint, p.number,
          NULL::bigint, p.body, NULL::bigint, NULL::uuid
        FROM (SELECT number, body, sum(octet_length(body)) OVER (ORDER BY number) - octet_length(body) AS before
          FROM part WHERE archive = _archive AND attempt = _row.base_attempt AND number >= _from
          ORDER BY number LIMIT 64) p
        WHERE p.before < _bytes ORDER BY p.number;
      ELSE
        RETURN QUERY SELECT NULL, NULL, NULL::bigint, NULL::uuid, NULL::bigint, NULL::bigint, NULL::bigint, b.after,
          b.upto, b.body, NULL::bigint, b.change
        FROM (SELECT after, upto, change, body,
            sum(octet_length(body)) OVER (ORDER BY after) - octet_length(body) AS before
          FROM batch WHERE archive = _archive AND upto > _from AND after >= coalesce((SELECT max(after) FROM batch
            WHERE archive = _archive AND after <= _from), 0)
          ORDER BY after LIMIT 256) b
        WHERE b.before < _bytes ORDER BY b.after;
      END IF;
    END $$;

    -- Stores a part of a snapshot, and puts the snapshot in the place of what it covers when all parts are there. They
    -- come in their order; the first one of an attempt ends the attempt before it, of which a part that was late is
    -- refused: a file that is copied twice need not be the same.
    CREATE OR REPLACE FUNCTION snapshot_1(_owner text, _archive bigint, _lease uuid, _attempt bigint,
      _sequence bigint, _change uuid, _reader bigint, _number bigint, _count bigint, _body bytea, _alone boolean,
      OUT outcome text, OUT tip bigint, OUT host text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = restoration, pg_temp AS $$
    #variable_conflict use_column
    DECLARE _row archive;
    BEGIN
      PERFORM require_ticket(_owner);
      SELECT * INTO _row FROM archive
      WHERE archive = _archive AND owner = _owner AND lease = _lease AND removed IS NULL FOR NO KEY UPDATE;
      IF NOT FOUND THEN SELECT * INTO outcome, host FROM ended(_owner, _archive, _lease); RETURN; END IF;
      IF NOT is_covered(_alone) THEN outcome := 'uncovered'; RETURN; END IF;
      outcome := 'stored';
      -- A part that comes once more.
      IF _row.parts > 0 AND _row.base = _sequence AND _row.base_change IS NOT DISTINCT FROM _change THEN
        RETURN;
      END IF;
      SELECT t.upto INTO tip FROM tip(_archive) t;
      IF _sequence < tip AND NOT EXISTS (SELECT FROM batch WHERE archive = _archive AND upto = _sequence) THEN
        outcome := 'gap'; RETURN;
      END IF;
      IF _attempt = _row.base_attempt OR _number > 0 AND NOT EXISTS (
        SELECT FROM part WHERE archive = _archive AND attempt = _attempt AND number = 0)
      THEN
        outcome := 'gap'; RETURN;
      END IF;
      DELETE FROM part WHERE archive = _archive AND attempt <> _attempt AND attempt IS DISTINCT FROM _row.base_attempt;
      INSERT INTO part VALUES (_archive, _attempt, _number, _body)
      ON CONFLICT (archive, attempt, number) DO UPDATE SET body = excluded.body;
      IF (SELECT count(*) FROM part WHERE archive = _archive AND attempt = _attempt AND number < _count) < _count THEN
        IF _number = _count - 1 THEN outcome := 'gap'; END IF;
        RETURN;
      END IF;
      UPDATE archive SET base = _sequence, base_change = _change, base_attempt = _attempt, parts = _count,
        reader = _reader,
        base_bytes = (SELECT sum(octet_length(body)) FROM part WHERE archive = _archive AND attempt = _attempt)
      WHERE archive = _archive;
      DELETE FROM batch WHERE archive = _archive AND upto <= _sequence;
      DELETE FROM part WHERE archive = _archive AND attempt <> _attempt;
    END $$;

    -- How many bytes of contents a user has, from two batches of each archive.
    CREATE OR REPLACE FUNCTION usage_1(_owner text, OUT bytes bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = restoration, pg_temp AS $$
      SELECT require_ticket(_owner);
      SELECT coalesce(sum(a.base_bytes + coalesce(last.total - first.before, 0) + coalesce(draft.bytes, 0)), 0)::bigint
      FROM archive a
      LEFT JOIN LATERAL (SELECT total FROM batch b WHERE b.archive = a.archive
        ORDER BY after DESC LIMIT 1) AS last ON true
      LEFT JOIN LATERAL (SELECT total - octet_length(body) AS before FROM batch b WHERE b.archive = a.archive
        ORDER BY after LIMIT 1) AS first ON true
      LEFT JOIN LATERAL (SELECT sum(octet_length(body)) AS bytes FROM part p
        WHERE p.archive = a.archive AND p.attempt IS DISTINCT FROM a.base_attempt) AS draft ON true
      WHERE a.owner = _owner
    $$;

    """
}
