"""Is what is claimed true? What labels are said to be, sources, annotators, slices, many sharp rows.

What is said of labels is judged by `cells`, which are made of `real_tables` and simulated ones: `audits` measures one,
`summaries` makes tables of the rows. The other parts list their jobs and judge one after the other. All of it runs in
processes of one thread each. What was used to design by, data sets and simulated worlds, stands apart from what judges.
"""
