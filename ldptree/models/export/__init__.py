"""A released model as text that other programs run or draw: SQL, Graphviz and SVG."""
