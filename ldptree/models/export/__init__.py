"""Export a released model as text that other programs run or draw, in SQL, Graphviz or SVG."""
