"""The commands `covey spark ...`, the demonstration on Spark, and how they find a session, read and write.

PySpark is imported when a command runs, not when the command line is read.
"""
