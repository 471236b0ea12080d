"""What makes parts of the project from its code; run by the Makefile."""
