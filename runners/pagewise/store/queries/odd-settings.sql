-- Which node has other settings than most of its kind: kernel, transparent huge pages, governor, SMT, memory.
WITH latest AS (
    SELECT * FROM results WHERE hostname IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY hostname ORDER BY created DESC) = 1
), settings AS (
    UNPIVOT (
        SELECT hostname, cpu, kernel_release, thp, thp_defrag, governors::VARCHAR AS governors,
               smt::VARCHAR AS smt, round(memory_bytes / 1e9)::VARCHAR AS memory_gb
        FROM latest
    ) ON kernel_release, thp, thp_defrag, governors, smt, memory_gb INTO NAME setting VALUE value
), usual AS (
    SELECT cpu, setting, mode(value) AS usual, count(*) AS nodes FROM settings GROUP BY ALL
)
SELECT hostname, setting, value, usual, nodes
FROM settings JOIN usual USING (cpu, setting)
WHERE value <> usual
ORDER BY setting, hostname;
