-- Time and bandwidth by the setting of the hardware prefetchers: for all runs of a session, or compared in it: the curves of A64FX's distances.
SELECT hostname, m.kernel, m.compiler, m.hugepages, m.prefetch, m.stores, prefetchers_off AS off,
       r.manifest->>'$.prefetchers.adjusted' AS adjusted, nullif(regexp_extract(m.run_options, 'prefetchers=([^,]+)', 1), '') AS compared,
       m.run_options AS options, count(*) AS runs,
       round(median(m.seconds), 6) AS seconds, round(median(m.metrics['bandwidth_stream_gb_per_s']), 3) AS gb_per_s
FROM runs AS m JOIN results AS r USING (result, hostname)
WHERE kind IN ('kernels', 'programs')
GROUP BY ALL
ORDER BY hostname, m.kernel, m.compiler, m.hugepages, m.prefetch, m.stores, off, adjusted, compared, options;
