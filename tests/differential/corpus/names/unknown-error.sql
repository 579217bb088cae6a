-- an unknown name is an error
SELECT nothing FROM x
