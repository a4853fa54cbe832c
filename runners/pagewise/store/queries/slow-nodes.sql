-- Which node is slow: how far its times are from the median of all nodes, for each kernel and configuration.
WITH nodes AS (
    SELECT hostname, cpu, kernel, compiler, hugepages, prefetch, stores, loop, threads,
           median(seconds) AS seconds, count(*) AS runs
    FROM runs GROUP BY ALL
), middles AS (
    SELECT cpu, kernel, compiler, hugepages, prefetch, stores, loop, threads, count(*) AS nodes,
           median(seconds) AS middle, mad(seconds) AS mad
    FROM nodes GROUP BY ALL HAVING nodes >= 3
)
SELECT hostname, kernel, compiler, hugepages, prefetch, stores, loop, runs, nodes,
       round(seconds / middle, 3) AS time_to_middle, round(0.6745 * (seconds - middle) / mad, 1) AS z
FROM nodes JOIN middles USING (cpu, kernel, compiler, hugepages, prefetch, stores, loop, threads)
WHERE time_to_middle > 1.05 AND (mad = 0 OR z > 3.5)
ORDER BY time_to_middle DESC, hostname, kernel, compiler, hugepages, prefetch, stores, loop;
