-- Programs and suites by page policy: time, peak memory and p99 as ratios to the baseline; the newest result of each.
WITH newest AS (
    SELECT result, name, hostname FROM results WHERE kind = 'program'
    QUALIFY row_number() OVER (PARTITION BY name, hostname ORDER BY created DESC) = 1
), used AS (
    SELECT result, hugepages, median(metrics['peak_memory_gib']) AS peak, median(metrics['p99']) AS p99
    FROM records WHERE excluded IS NULL AND series IN ('compare', 'aa')
    GROUP BY ALL
)
SELECT name AS program, hostname, c.hugepages AS policy, c.rounds, round(c.time_ratio, 3) AS time_ratio,
       round(c.low, 3) AS low, round(c.high, 3) AS high, c.verdict, round(u.peak / b.peak, 3) AS memory_ratio,
       round(u.p99 / b.p99, 3) AS p99_ratio, c.excluded
FROM newest
JOIN cells AS c USING (result)
JOIN cells AS base ON base.result = c.result AND base.is_baseline
LEFT JOIN used AS u ON u.result = c.result AND u.hugepages = c.hugepages
LEFT JOIN used AS b ON b.result = c.result AND b.hugepages = base.hugepages
WHERE NOT c.is_baseline
ORDER BY program, hostname, c.time_ratio NULLS LAST, policy;
