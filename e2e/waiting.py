"""How long tests wait."""

PATIENT = 40.0  # s; the bound of every wait, far above what any takes
PATIENT_MS = PATIENT * 1000  # for Playwright
