"""`opentabs test --ui`: runs tests again and again, and shows them in a page."""
