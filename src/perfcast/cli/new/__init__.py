"""Write the files of a new predictor, dataset or domain."""
