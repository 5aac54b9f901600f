"""The command line: `app.py` and one file a command."""
