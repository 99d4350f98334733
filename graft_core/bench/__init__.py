"""What `graft bench` measures: synthetic batches, peers, and one row per line of the table of speeds."""
