-- The floor: the definitions of `verification.vocabulary.anomalies` in plain Spark SQL, one query per anomaly, with the
-- joins that its sentence names. Every SELECT is a job of its own and begins at the files. The views `log`,
-- `uncommitted`, `committed`, `acks`, `operations`, `ends`, `group_offsets`, `open_producers` and `coordinator_states`
-- are the dataframes of `verification.sources.schema`. Each query returns the columns of `findings.FoundViolation`.

CREATE OR REPLACE TEMP VIEW owned AS
SELECT o.process, o.operation, max_by(i.process, i.completed_ns) AS owner
FROM operations o JOIN operations i ON o.transactional_id = i.transactional_id
    AND i.action = 'init' AND i.outcome = 'ok' AND i.completed_ns < o.decided_ns
GROUP BY o.process, o.operation;

CREATE OR REPLACE TEMP VIEW data AS
SELECT *, coalesce(valid AND identity_run = run, false) AS genuine,
    CASE WHEN control IS NOT NULL THEN NULL WHEN NOT transactional THEN 'commit' ELSE coalesce(
        last(CASE WHEN control IN ('commit', 'abort') THEN control END, true) OVER (
            PARTITION BY topic_index, partition, producer_id ORDER BY offset DESC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 'open') END AS outcome
FROM log;

CREATE OR REPLACE TEMP VIEW visible AS
SELECT DISTINCT d.process, d.operation, d.index, d.count
FROM data d JOIN committed c ON d.topic_index = c.topic_index AND d.partition = c.partition AND d.offset = c.offset
WHERE d.genuine AND d.outcome = 'commit';

CREATE OR REPLACE TEMP VIEW seen AS
SELECT process, operation, count(*) AS seen, max(count) AS carried FROM visible GROUP BY process, operation;

CREATE OR REPLACE TEMP VIEW hung AS
SELECT topic_index, partition, producer_id, min(offset) AS offset,
    min(CASE WHEN process IS NOT NULL THEN struct(offset, process, operation, index) END) AS first
FROM (SELECT topic_index, partition, producer_id, offset, process, operation, index FROM data WHERE outcome = 'open'
    UNION ALL SELECT topic_index, partition, producer_id, offset, NULL, NULL, NULL FROM open_producers) open
WHERE producer_id NOT IN (
    SELECT producer_id FROM coordinator_states WHERE state IN ('Ongoing', 'PrepareCommit', 'PrepareAbort'))
GROUP BY topic_index, partition, producer_id;

-- Each promised record, compared with the log.
WITH promised AS (
    SELECT process, operation, explode(sequence(0, records - 1)) AS index
    FROM operations WHERE told = 'committed' AND records > 0
    UNION
    SELECT a.process, a.operation, a.index
    FROM acks a JOIN operations o ON a.process = o.process AND a.operation = o.operation WHERE plain AND a.outcome = 'ok'
)
SELECT 'lost-write' AS anomaly, p.process, p.operation, p.index, a.topic_index, a.partition, a.offset, NULL AS observer
FROM promised p
    LEFT ANTI JOIN data d ON p.process = d.process AND p.operation = d.operation AND p.index = d.index
        AND d.genuine AND d.outcome = 'commit'
    LEFT ANTI JOIN data e ON p.process = e.process AND p.operation = e.operation AND e.outcome = 'open'
    LEFT JOIN acks a ON p.process = a.process AND p.operation = a.operation AND p.index = a.index AND a.outcome = 'ok'
    LEFT JOIN operations o ON p.process = o.process AND p.operation = o.operation
    LEFT JOIN seen s ON p.process = s.process AND p.operation = s.operation
WHERE o.plain OR s.seen IS NULL;

SELECT 'torn-transaction', s.process, s.operation, NULL, NULL, NULL, NULL, NULL
FROM seen s JOIN operations o ON s.process = o.process AND s.operation = o.operation
WHERE told IN ('committed', 'unknown') AND seen < CASE WHEN records > 0 THEN records ELSE carried END;

SELECT 'hidden-committed', d.process, d.operation, d.index, d.topic_index, d.partition, d.offset, NULL
FROM data d
    LEFT ANTI JOIN committed c ON d.topic_index = c.topic_index AND d.partition = c.partition AND d.offset = c.offset
    LEFT ANTI JOIN (SELECT s.process, s.operation FROM seen s
        JOIN operations o ON s.process = o.process AND s.operation = o.operation WHERE told IS NOT NULL) s
        ON d.process = s.process AND d.operation = s.operation
WHERE d.genuine AND d.outcome = 'commit';

SELECT DISTINCT 'aborted-read', d.process, d.operation, d.index, d.topic_index, d.partition, d.offset, 'committed'
FROM data d JOIN committed c ON d.topic_index = c.topic_index AND d.partition = c.partition AND d.offset = c.offset
    LEFT JOIN operations o ON d.process = o.process AND d.operation = o.operation
WHERE d.genuine AND (d.outcome = 'abort' OR told = 'aborted');

SELECT 'zombie-write', process, operation, place.index, place.topic_index, place.partition, place.offset, NULL
FROM (
    SELECT d.process, d.operation, min(struct(topic_index, partition, offset, index)) AS place
    FROM (SELECT *, max(producer_epoch) OVER (PARTITION BY topic_index, partition, producer_id ORDER BY offset
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS epoch_before FROM data) d
        LEFT JOIN owned w ON d.process = w.process AND d.operation = w.operation
    WHERE genuine AND d.outcome = 'commit' AND (owner <> d.process OR producer_epoch < epoch_before AND producer_id >= 0)
    GROUP BY d.process, d.operation
);

SELECT 'duplicate', process, operation, index, topic_index, partition, offset, NULL
FROM (SELECT d.*, row_number() OVER (
        PARTITION BY d.process, d.operation, d.index ORDER BY topic_index, partition, offset) AS copy
    FROM data d JOIN operations o ON d.process = o.process AND d.operation = o.operation
    WHERE genuine AND d.outcome = 'commit' AND source_offset = -1)
WHERE copy = 2;

SELECT 'duplicate', process, operation, index, topic_index, partition, offset, NULL
FROM (SELECT *, row_number() OVER (PARTITION BY source_partition, source_offset, intended_topic_index
        ORDER BY topic_index, partition, offset) AS copy
    FROM data WHERE genuine AND outcome = 'commit' AND source_offset <> -1)
WHERE copy = 2;

SELECT 'offset-without-output', i.process, i.operation, i.index, i.topic_index, i.partition, i.offset, NULL
FROM data i
    JOIN committed c ON i.topic_index = c.topic_index AND i.partition = c.partition AND i.offset = c.offset
    JOIN group_offsets g ON i.topic_index = g.topic_index AND i.partition = g.partition AND i.offset < g.offset
    LEFT JOIN (SELECT source_partition, source_offset, count(DISTINCT intended_topic_index) AS outputs
        FROM data WHERE genuine AND outcome = 'commit' AND source_offset <> -1
        GROUP BY source_partition, source_offset) o ON i.partition = o.source_partition AND i.offset = o.source_offset
    CROSS JOIN runs
WHERE i.outcome = 'commit' AND coalesce(outputs, 0) < runs.fan_out;

SELECT 'output-without-offset', d.process, d.operation, d.index, d.topic_index, d.partition, d.offset, NULL
FROM data d LEFT JOIN group_offsets g ON d.source_partition = g.partition
WHERE genuine AND outcome = 'commit' AND source_offset <> -1 AND source_offset >= coalesce(greatest(g.offset, 0), 0);

SELECT 'reordered-write', process, operation, index, topic_index, partition, offset, NULL
FROM (SELECT *, max(send_order) OVER (PARTITION BY topic_index, partition, process ORDER BY offset
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS highest,
        row_number() OVER (PARTITION BY topic_index, partition, process, send_order ORDER BY offset) AS copy
    FROM data WHERE genuine AND outcome = 'commit'
        AND topic_index = intended_topic_index AND partition = intended_partition)
WHERE send_order < highest AND copy = 1;

-- `verification.checks.numbering` says which number is due. Every log begins at offset 0, and no history lasts a day.
SELECT 'broken-sequence', process, operation, index, topic_index, partition, offset, NULL
FROM (SELECT *, max(CASE WHEN control IS NULL OR control IN ('commit', 'abort') THEN producer_epoch END) OVER earlier
            AS epoch_highest,
        max(CASE WHEN control IS NULL THEN struct(producer_epoch, offset, sequence) END) OVER earlier AS latest
    FROM data WINDOW earlier AS (PARTITION BY topic_index, partition, producer_id ORDER BY offset
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
WHERE control IS NULL AND producer_id >= 0 AND sequence >= 0 AND producer_epoch >= epoch_highest
    AND sequence <> CASE WHEN latest.producer_epoch = producer_epoch
        THEN (CAST(latest.sequence AS BIGINT) + 1) & 2147483647 ELSE 0 END;

SELECT 'phantom-record', CASE WHEN genuine THEN d.process END, CASE WHEN genuine THEN d.operation END,
    CASE WHEN genuine THEN d.index END, d.topic_index, d.partition, d.offset, NULL
FROM data d LEFT JOIN operations o ON d.process = o.process AND d.operation = o.operation
WHERE control IS NULL AND (NOT genuine OR o.process IS NULL
    OR d.index >= CASE WHEN records > 0 THEN records ELSE d.count END
    OR topic_index <> intended_topic_index OR partition <> intended_partition);

SELECT DISTINCT 'inconsistent-offset', given.process, given.operation, given.index,
    given.topic_index, given.partition, given.offset, NULL
FROM (SELECT topic_index, partition, offset, process, operation, index, digest, identity_digest FROM committed
    UNION ALL
    SELECT topic_index, partition, offset, process, operation, index, digest, identity_digest FROM uncommitted) given
    LEFT JOIN log l ON given.topic_index = l.topic_index AND given.partition = l.partition AND given.offset = l.offset
WHERE l.offset IS NULL OR l.control IS NOT NULL OR given.digest <> l.digest
    OR given.identity_digest <> l.identity_digest;

SELECT 'poll-skip', d.process, d.operation, d.index, d.topic_index, d.partition, d.offset, 'uncommitted'
FROM log d
    LEFT ANTI JOIN uncommitted u ON d.topic_index = u.topic_index AND d.partition = u.partition AND d.offset = u.offset
    JOIN ends e ON d.topic_index = e.topic_index AND d.partition = e.partition AND d.offset < e.high_watermark
WHERE control IS NULL;

SELECT 'nonmonotonic-poll', first(process), first(operation), first(index), topic_index, partition, offset, 'committed'
FROM committed GROUP BY topic_index, partition, offset HAVING count(*) > 1;

SELECT 'nonmonotonic-poll', first(process), first(operation), first(index), topic_index, partition, offset, 'uncommitted'
FROM uncommitted GROUP BY topic_index, partition, offset HAVING count(*) > 1;

SELECT 'hung-transaction', first.process, first.operation, first.index, topic_index, partition, offset, NULL FROM hung;

SELECT 'decided-late', process, operation, index, topic_index, partition, offset, NULL
FROM (SELECT *, lead(control) OVER turns AS next_control, lead(process) OVER turns AS next_process,
        lead(operation) OVER turns AS next_operation
    FROM data WINDOW turns AS (PARTITION BY topic_index, partition, producer_id ORDER BY offset)) d
    LEFT SEMI JOIN operations o ON d.process = o.process AND d.operation = o.operation
    LEFT SEMI JOIN operations n ON d.next_process = n.process AND d.next_operation = n.operation
WHERE genuine AND transactional AND control IS NULL AND next_control IS NULL AND outcome <> 'open'
    AND (process <> next_process OR operation <> next_operation);

SELECT 'stuck-lso', NULL, NULL, NULL, e.topic_index, e.partition, e.last_stable_offset, NULL
FROM ends e LEFT ANTI JOIN hung h ON e.topic_index = h.topic_index AND e.partition = h.partition
WHERE last_stable_offset < high_watermark;
