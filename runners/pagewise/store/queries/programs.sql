-- Programs and suites by page policy: time, peak memory and p99 as ratios to the baseline; the newest result of each.
WITH measured AS (
    SELECT DISTINCT result, hostname, created, kernel, 
           CASE WHEN min(kernel) OVER of = max(kernel) OVER of THEN name ELSE kernel END AS program
    FROM results JOIN cells USING (result)
    WHERE kind = 'programs' WINDOW of AS (PARTITION BY result)
), newest AS (
    SELECT * FROM measured QUALIFY row_number() OVER (PARTITION BY program, hostname ORDER BY created DESC) = 1
), used AS (
    SELECT result, module, run_placement AS place, run_options AS options,
           median(metrics['peak_memory_gib']) AS peak, median(metrics['p99']) AS p99
    FROM runs GROUP BY ALL
)
SELECT program, hostname, c.flags AS build, c.hugepages AS policy, c.run_placement AS placement,
       c.run_options AS options, c.rounds, round(c.time_ratio, 3) AS time_ratio,
       round(c.low, 3) AS low, round(c.high, 3) AS high, c.verdict, round(u.peak / b.peak, 3) AS memory_ratio,
       round(u.p99 / b.p99, 3) AS p99_ratio, c.excluded
FROM newest
JOIN cells AS c USING (result, kernel)
JOIN cells AS base ON base.result = c.result AND base.kernel = c.kernel AND base.is_baseline
LEFT JOIN used AS u ON u.result = c.result AND u.module = c.module
    AND u.place IS NOT DISTINCT FROM c.run_placement AND u.options IS NOT DISTINCT FROM c.run_options
LEFT JOIN used AS b ON b.result = c.result AND b.module = base.module
    AND b.place IS NOT DISTINCT FROM base.run_placement AND b.options IS NOT DISTINCT FROM base.run_options
WHERE NOT c.is_baseline
ORDER BY program, hostname, c.time_ratio NULLS LAST, build, policy, placement, c.run_options;
