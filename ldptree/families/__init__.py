"""One way to learn each: what is asked, and what is made of the answers."""
