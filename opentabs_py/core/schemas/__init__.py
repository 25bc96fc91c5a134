"""JSON Schemas: validation, its cost, and its errors in plain words."""
