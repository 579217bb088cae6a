-- a fraction takes all digits before a year, which then has too few
-- on: some
SELECT to_timestamp('12.1232019', 'ss.SSSSyyyy')
