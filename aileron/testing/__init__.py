"""What other packages' tests may use: contract mixins, memory implementations, kits."""
