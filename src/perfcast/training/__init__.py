"""Training of neural predictors: one loader, one loss, and Lightning for every device."""
