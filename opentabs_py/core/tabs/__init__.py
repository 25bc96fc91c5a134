"""Which browser, tab and document a call gets; the tabs that agents see."""
