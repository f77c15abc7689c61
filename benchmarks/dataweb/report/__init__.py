"""What a run found, as tables, plots and verdicts, in Markdown and HTML."""
