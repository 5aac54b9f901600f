"""The engine: the loop, checkpoints, run directories, evaluation and prediction.

    fit (loop.py)  ->  requests.py (which steps)  ->  machine.py (plan, parameters, session)
                   ->  checkpoint.py, rundir.py, eventlog.py (what stays)  ->  display.py (what is seen)

Modules are imported from where they are defined. None of them knows a recipe, a network or an entry by its name.
"""
