"""Pages, one file each; Streamlit runs them as scripts."""
