"""A test for each promise that the product makes of runs, by its number; the mutants break each of their guards."""
