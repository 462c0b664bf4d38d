"""The holders before any question, to decide who reports, in which shard, and what they show."""
