"""The holders' database: charges, campaigns, released checks, and what tells that a part of a work folder was lost."""
