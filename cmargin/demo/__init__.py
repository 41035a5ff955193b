"""The demo: our classifiers beside scikit-learn's on bundled data, a table and three plots."""
