-- Links between hosts, as counts.

-- name: count_host_links
-- Adds to the counts. A host that leads to very many others keeps those it named first. In the order of the key, so
-- that two workers never wait for each other in a circle.
INSERT INTO host_link (from_host, to_host, links)
SELECT new.from_host, new.to_host, new.links
FROM (SELECT one.from_host, one.to_host, one.links, known.to_host IS NOT NULL AS known,
             row_number() OVER (PARTITION BY one.from_host, known.to_host IS NULL ORDER BY one.links DESC) AS place
      FROM unnest(%(from_host)b::text[], %(to_host)b::text[], %(links)b::int8[]) AS one (from_host, to_host, links)
      LEFT JOIN host_link AS known ON known.from_host = one.from_host AND known.to_host = one.to_host) AS new
WHERE new.known OR new.place + (SELECT count(*) FROM host_link AS of_host WHERE of_host.from_host = new.from_host)
                   <= %(most)b::int4
ORDER BY new.from_host, new.to_host
ON CONFLICT (from_host, to_host) DO UPDATE SET links = host_link.links + excluded.links
