"""Methods that need gradients only."""
