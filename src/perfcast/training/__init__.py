"""Training of neural predictors: one loader, one Lightning module, one loop."""
