"""What every learner needs: targets, weights, costs, parameters, folds, threads, progress."""
