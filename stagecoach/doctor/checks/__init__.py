"""One module for each thing that is looked at."""
