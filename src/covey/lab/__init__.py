"""The laboratory: every table and figure of the papers, run again on this implementation, as Spark jobs.

One file a paper (`bdd_filtering`, `modified_bdds`, `pruning`, `negative_space`), one function a table or figure;
`workloads` draws what they need, `running` deals their points out to Spark and keeps what is finished, `report` writes
the page. It may import every other room but the console and the command line.
"""
