"""What can be taken away: pictures, pages, tables, a report, commands and training weights, all self-contained."""
