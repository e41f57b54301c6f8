"""Help to choose: rank candidates, vary characteristics of a machine, find measured machines that are like it."""
