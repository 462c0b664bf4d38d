"""What a work folder keeps for good: who was charged, campaigns, released checks, and the seal over them."""
