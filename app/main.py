"""Entry point of the app: navigation, the batch on the table, and the page that was asked for."""

from __future__ import annotations

import streamlit as st

from graft_app import urlstate

st.set_page_config(page_title="GRAFT Lab", page_icon=":material/account_tree:", layout="wide")

PAGES = [
    st.Page("pages/findings.py", title="Findings", url_path="findings", default=True),
    st.Page("pages/graph.py", title="Graph", url_path="graph"),
]

page = st.navigation(PAGES, position="top")
urlstate.carry_over(page.title)
page.run()
