"""Graph to plan: the passes, buffers in slots, the plan's bytes.

``pipeline.py`` lists the stages; ``plan.py`` writes the bytes that ``pk_plan_create`` reads,
``plan_info.py`` reads them back for the runtime and for messages, ``records.py`` holds the layout
of both.
"""
