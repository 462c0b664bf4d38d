"""Released models: predictions, JSON, SQL, and what they say."""
