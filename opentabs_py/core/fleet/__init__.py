"""What a fleet decides: which worker takes a call, who is still there, what arrives in order."""
