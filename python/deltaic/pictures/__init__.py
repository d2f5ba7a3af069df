"""Pictures of a table as SVG: where its files lie over two columns, their sizes, its history. Nothing here
reads a data file."""
