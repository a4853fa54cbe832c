"""Reports made from a result's folder alone: one file a kind of report. Nothing is launched from here."""
