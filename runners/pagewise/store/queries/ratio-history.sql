-- How the ratio thp : none changed over the dates and kernel versions of each node.
SELECT kernel, compiler, kernel_release, date_trunc('day', created)::DATE AS day,
       count(DISTINCT hostname) AS nodes, count(*) AS results,
       round(median(time_ratio), 4) AS time_ratio, round(min(time_ratio), 4) AS least,
       round(max(time_ratio), 4) AS most
FROM ratios
WHERE hugepages = 'thp' AND prefetch = 'hardware' AND stores = 'regular' AND loop = 'explicit'
GROUP BY ALL
ORDER BY kernel, compiler, day, kernel_release;
