"""Entry point of the app: navigation, the batch on the table, and the page that was asked for."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from graft_app import urlstate

ASSETS = Path(__file__).parent / "assets"  # pictures are files: Streamlit fetches named icons from another host

st.set_page_config(page_title="GRAFT Lab", page_icon=ASSETS / "icon.svg", layout="wide")
st.logo(ASSETS / "logo.svg", size="large", icon_image=ASSETS / "icon.svg")
st.html(ASSETS / "style.css")

PAGES = {
    "": [
        st.Page("screens/findings.py", title="Findings", default=True),
        st.Page("screens/graph.py", title="Graph", url_path="graph"),
    ],
    "More": [
        st.Page("screens/compare.py", title="Compare", url_path="compare"),
        st.Page("screens/rollouts.py", title="Rollouts", url_path="rollouts"),
        st.Page("screens/states.py", title="States", url_path="states"),
        st.Page("screens/live.py", title="Live", url_path="live"),
        st.Page("screens/open.py", title="Open", url_path="open"),
    ],
}

page = st.navigation(PAGES, position="top")
urlstate.carry_over(page.title)
page.run()
