"""What the experiments run on: subscriptions and events, drawn by seeds, as Spark jobs or in one process.

Row i of a workload depends on its seed and on i alone (`blocks`), so it is the same whatever the number of rows,
partitions or machines. Each module has a pure function for one block of rows, and one that makes a DataFrame of them.
"""
