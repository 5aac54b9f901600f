"""The core from Python: ``native.py`` holds the library, ``session.py`` plans, params, tables and sessions, ``request.py`` the
steps of one foreign call, ``eager.py`` one kernel alone, ``device.py`` where it runs.
"""
