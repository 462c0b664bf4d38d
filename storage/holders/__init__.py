"""Who a holder is, and what keeps the holders' zone theirs: names, digests of rows, the secret, file modes."""
