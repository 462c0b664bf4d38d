"""The parts of a work folder that are kept for good, with charges, campaigns, released checks, and a seal over them."""
