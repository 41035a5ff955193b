"""What a search for penalties is made of: which penalties, which folds, how a fold is scored, what is chosen."""
