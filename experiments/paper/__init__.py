"""The paper, reproduced: its tables and figures beside the published numbers, and harder tests of its claims.

Experiments are declared in `declarations`; an experiment more is one declaration. Each of its `trials` fits one of the
`algorithms`; `outcomes` gathers their rows, `exhibits` and `claims` make tables, figures and sentences of them.
"""
