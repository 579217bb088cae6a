-- a date compared with timestamps
SELECT id FROM e WHERE dt < ts AND dt > tn OR dt = DATE'1970-01-01'
