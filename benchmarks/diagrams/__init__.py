"""The papers' tables on decision diagrams, measured."""
