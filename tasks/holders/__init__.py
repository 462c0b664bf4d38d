"""The holders before any question: who reports, in which shard, and what they show."""
