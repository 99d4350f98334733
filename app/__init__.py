"""The front end of GRAFT Lab: Streamlit pages over `graft_core`, installed as `graft_app`."""
