"""What pages are made of: the header, tables, the graph, details of one moment."""
