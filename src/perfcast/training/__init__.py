"""Training of neural predictors: one loader, one loss, a loop for one device and Lightning for several."""
