"""Language models trained at several sizes and lengths: losses and accuracies of each trained model."""
