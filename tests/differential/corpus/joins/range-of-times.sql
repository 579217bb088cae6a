-- events within an hour of an event of the same person
SELECT a.id, b.id FROM events a JOIN events b
  ON a.person = b.person AND b.moment > a.moment AND b.moment <= a.moment + INTERVAL 1 HOUR
