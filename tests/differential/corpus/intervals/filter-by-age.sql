-- a filter by an interval between two columns
SELECT a.id, b.id FROM events a JOIN events b ON a.person = b.person AND b.id = a.id + 1 WHERE b.moment - a.moment > INTERVAL 29 MINUTES
