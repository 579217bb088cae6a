-- ORDER BY decimals, dates, timestamps, booleans and binaries
SELECT id, b, bin, d384, dt, ts FROM e ORDER BY b DESC, bin, d384 DESC, dt, ts, id LIMIT 50
